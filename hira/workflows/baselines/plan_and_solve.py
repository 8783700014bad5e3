"""Plan-and-Solve (HiRA, appendix): a plan is made at once, then carried out step by step by HiRA's experts.

For each step the coordinator's model chooses the expert, as in HiRA. The plan never changes, nothing is distilled: a
step is told the results of those before it in the experts' own words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from hira.agents.approved import ask_approval
from hira.agents.baselines.plan_and_solve import PLANNER, plan_steps, write_conclusion
from hira.agents.coordinator import Coordinator
from hira.agents.expert import Expert
from hira.agents.experts import EXPERTS
from hira.agents.run_context import RunContext
from hira.agents.trajectory import Finding, Subtask
from hira.core.events import SubtaskIssued
from hira.core.memory import Fact
from hira.core.policy import Usage
from hira.evidence import find_cited
from hira.workflows.bound import Sizes, hierarchical
from hira.workflows.hira import HiRA


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

    async def run(self, question: str, team: RunContext) -> str:
        experts = HiRA(experts=self.experts).available(team)
        coordinator = Coordinator(team, experts, distils=False)
        steps = await plan_steps(team, question, experts, self.max_subtasks)
        plan = [Subtask(str(number), step) for number, step in enumerate(steps, 1)]
        for step in plan:
            team.events(SubtaskIssued(step.id, step.text))

        async def carried_out(steps: Sequence[Subtask]) -> Sequence[Finding]:
            return [await self._step(step, coordinator, team) for step in steps if not team.stopped]

        await ask_approval(plan, team, carried_out)
        return await write_conclusion(team, question, team.rollout.findings)

    async def _step(self, step: Subtask, coordinator: Coordinator, team: RunContext) -> Finding:
        memory = team.rollout.memory
        (finding,) = await coordinator.delegate([step], memory)
        if finding.ok:
            told = " ".join(finding.conclusion.split())
            memory.add_fact(Fact(told, tuple(find_cited(told)), finding.subtask.id))
        return finding

    def bound(self, sizes: Sizes) -> Mapping[str, Usage]:
        """As HiRA's, with two parts for its planner: the plan, asked for twice at most, and the answer."""
        most = self.max_subtasks
        answer = sizes.prompt + most * sizes.reply
        planner = Usage(2, 2 * sizes.prompt + sizes.reply, 2 * sizes.reply) + Usage(6, 6 * answer, 6 * sizes.reply)
        return hierarchical(most, self.experts, sizes) | {PLANNER: planner}
