"""Plan-and-Solve (HiRA, appendix): one plan at the start, carried out step by step by HiRA's experts.

For each step the coordinator's model chooses the expert, as in HiRA. The plan never changes and nothing is distilled:
each step sees the earlier results in the experts' own words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pydantic import BaseModel

from hira.agents.approved import ask_approval
from hira.agents.coordinator import Coordinator
from hira.agents.expert import Expert
from hira.agents.experts import EXPERTS
from hira.agents.loop import Loop
from hira.agents.planner import describe_experts
from hira.agents.record import ask_for_record
from hira.agents.run_context import RunContext, format_files
from hira.agents.trajectory import Finding, Subtask
from hira.core.errors import DialectError
from hira.core.events import SubtaskIssued
from hira.core.messages import Filled, user
from hira.core.policy import Usage
from hira.core.prompts import Prompt, is_copied
from hira.core.sanitize import sanitize
from hira.workflows.bound import Sizes
from hira.workflows.hira import HiRA

PLAN = Prompt(__file__, "plan_and_solve_plan")
RESULT = Prompt(__file__, "remarks", "plan_and_solve_result")
ANSWER = Prompt(__file__, "plan_and_solve_answer")
PLANNER = "planner"


class SolutionPlan(BaseModel):
    steps: list[str]


async def plan_steps(context: RunContext, question: str, experts: Sequence[Expert], most: int) -> list[str]:
    """Ask for a plan of at most `most` steps. Return the question as the only step if no plan can be read, or if all
    steps merely repeat the prompt."""
    shown = {"today": context.rollout.today, "experts": describe_experts(experts), "most": most}
    prompt = PLAN.fill(**shown, task=sanitize(question), files=format_files(context.files))
    instructions = PLAN.fill(**shown, task="", files="")
    try:
        plan = await ask_for_record(context.conversation(PLANNER), user(prompt), SolutionPlan)
    except DialectError:
        return [question]
    return [" ".join(step.split()) for step in plan.steps if not is_copied(step, instructions)][:most] or [question]


@dataclass(frozen=True)
class PlanAndSolve:
    """`max_subtasks`: steps of a plan at most (as HiRA's subtasks: 10)."""

    approves: ClassVar[bool] = True

    max_subtasks: int = 10
    experts: Sequence[Expert] = field(default=EXPERTS)
    name: str = "plan-and-solve"

    @property
    def roles(self) -> frozenset[str]:
        return HiRA(experts=self.experts).roles

    @property
    def takes_tools(self) -> frozenset[str]:
        return HiRA(experts=self.experts).takes_tools

    async def run(self, question: str, context: RunContext) -> str:
        experts = HiRA(experts=self.experts).available(context)
        coordinator = Coordinator(context, experts, distils=False)
        steps = await plan_steps(context, question, experts, self.max_subtasks)
        plan = [Subtask(str(number), step) for number, step in enumerate(steps, 1)]
        for step in plan:
            context.events(SubtaskIssued(step.id, step.text))

        async def carry_out(steps: Sequence[Subtask]) -> Sequence[Finding]:
            done = [await coordinator.delegate([step], context.rollout.memory) for step in steps if not context.stopped]
            return [finding for findings in done for finding in findings]

        await ask_approval(plan, context, carry_out)
        brought = [(finding.subtask.text, finding.conclusion) for finding in context.rollout.findings]
        shown = "\n\n".join(RESULT.fill(step=sanitize(step), result=sanitize(result)) for step, result in brought)
        loop = Loop(context.conversation(PLANNER), [], limit=1, final=True)
        results = Filled(shown, RESULT.section, {"pairs": brought})
        loop.conversation.say(user(ANSWER.fill(task=sanitize(question), brought=results)))
        return (await loop.run()).answer

    def bound(self, sizes: Sizes) -> Mapping[str, Usage]:
        """As HiRA's, with two parts for its planner: the plan, asked for twice at most, and the answer."""
        most = self.max_subtasks
        answer = sizes.prompt + most * sizes.reply
        planner = Usage(2, 2 * sizes.prompt + sizes.reply, 2 * sizes.reply) + Usage(6, 6 * answer, 6 * sizes.reply)
        return sizes.bound_hierarchy(most, self.experts) | {PLANNER: planner}
