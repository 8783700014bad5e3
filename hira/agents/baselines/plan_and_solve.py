"""Plan-and-Solve: a plan made before anything is known, and the answer made of what its steps brought."""

from collections.abc import Sequence

from pydantic import BaseModel

from hira.agents.baselines.alone import answered
from hira.agents.expert import Expert, attached
from hira.agents.loop import Loop
from hira.agents.planner import staff
from hira.agents.record import record
from hira.errors import DialectError
from hira.messages import Filled, user
from hira.prompts import Prompt
from hira.team import Team
from hira.trajectory import Finding
from hira.untrusted import said

PLAN = Prompt(__file__, "plan_and_solve_plan")
RESULT = Prompt(__file__, "plan_and_solve_result")
ANSWER = Prompt(__file__, "plan_and_solve_answer")
PLANNER = "planner"


class Plan(BaseModel):
    steps: list[str]


async def planned(team: Team, question: str, experts: Sequence[Expert], most: int) -> list[str]:
    """At most so many steps, which nothing changes later; the question itself where no plan can be read."""
    prompt = PLAN.fill(
        today=team.rollout.today,
        experts=staff(experts, describe=True),
        most=most,
        task=said(question),
        files=attached(team.files),
    )
    try:
        plan = await record(team.conversation(PLANNER), user(prompt), Plan)
    except DialectError:
        return [question]
    return [" ".join(step.split()) for step in plan.steps if step.strip()][:most] or [question]


async def concluded(team: Team, question: str, findings: Sequence[Finding]) -> str:
    """The answer from what the steps brought."""
    brought = [(one.subtask.text, one.conclusion) for one in findings]
    shown = "\n\n".join(RESULT.fill(step=said(step), result=said(result)) for step, result in brought)
    loop = Loop(team.conversation(PLANNER), [], limit=1, final=True)
    loop.conversation.say(
        user(ANSWER.fill(task=said(question), brought=Filled(shown, RESULT.name, {"pairs": brought})))
    )
    return await answered(loop, question)
