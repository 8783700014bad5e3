"""Plan-and-Solve: a plan made before anything is known, and the answer made of what its steps brought."""

from collections.abc import Sequence

from pydantic import BaseModel

from hira.agents.baselines.alone import run_to_answer
from hira.agents.expert import Expert, format_files
from hira.agents.loop import Loop
from hira.agents.planner import staff
from hira.agents.record import record
from hira.agents.run_context import RunContext
from hira.agents.trajectory import Finding
from hira.core.errors import DialectError
from hira.core.messages import Filled, user
from hira.core.prompts import Prompt, is_copied
from hira.core.sanitize import sanitize

PLAN = Prompt(__file__, "plan_and_solve_plan")
RESULT = Prompt(__file__, "plan_and_solve_result")
ANSWER = Prompt(__file__, "plan_and_solve_answer")
PLANNER = "planner"


class Plan(BaseModel):
    steps: list[str]


async def plan_steps(team: RunContext, question: str, experts: Sequence[Expert], most: int) -> list[str]:
    """At most so many steps, which nothing changes later; the question itself where no plan can be read, or where all
    steps only repeat the prompt."""
    shown = {"today": team.rollout.today, "experts": staff(experts, describe=True), "most": most}
    prompt = PLAN.fill(**shown, task=sanitize(question), files=format_files(team.files))
    instructions = PLAN.fill(**shown, task="", files="")
    try:
        plan = await record(team.conversation(PLANNER), user(prompt), Plan)
    except DialectError:
        return [question]
    return [" ".join(step.split()) for step in plan.steps if not is_copied(step, instructions)][:most] or [question]


async def write_conclusion(team: RunContext, question: str, findings: Sequence[Finding]) -> str:
    """The answer from what the steps brought."""
    brought = [(one.subtask.text, one.conclusion) for one in findings]
    shown = "\n\n".join(RESULT.fill(step=sanitize(step), result=sanitize(result)) for step, result in brought)
    loop = Loop(team.conversation(PLANNER), [], limit=1, final=True)
    loop.conversation.say(
        user(ANSWER.fill(task=sanitize(question), brought=Filled(shown, RESULT.name, {"pairs": brought})))
    )
    return await run_to_answer(loop, question)
