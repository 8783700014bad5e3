"""The exam of the MarsRL demo by role: each alone on the same made-up solutions before and after, and all together.

What a Verifier and a Corrector are shown in a run hangs on the Solver, which gets better itself. So at each held-out
question the Verifier is also shown a right solution and a wrong one that stay the same, and the Corrector the wrong one
with a true report.
"""

import random
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from hira.agents.marsrl import steps
from hira.agents.marsrl.steps import Review, Solution
from hira.agents.run_context import RunContext
from hira.agents.trajectory import Rollout
from hira.core.errors import BadReply
from hira.core.policy import Usage
from hira.evaluation.rewards.match import exact, extract_answer
from hira.evaluation.rewards.reward import Score
from hira.policies.dialects.answer import final, strip_thought
from hira.policies.dialects.verdict import verdict
from hira.trainers.demo.marsrl.world import Line, Task, report, solution, task_of
from hira.trainers.seeding import seed_of
from hira.workflows.bound import Sizes
from hira.workflows.marsrl import MarsRL

WRONG, RIGHT, REPAIR = 91, 92, 93
"""Steps of what each role does alone: no run comes so far."""
FIRST_REVIEW = 2


@dataclass(frozen=True)
class Alone:
    """Each role by itself, then the workflow, whose answer it is."""

    workflow: MarsRL
    name: str = "marsrl"

    @property
    def roles(self) -> frozenset[str]:
        return self.workflow.roles

    async def run(self, question: str, team: RunContext) -> str:
        task, problem = task_of(question), steps.Problem(question)
        right, wrong = sound(task), flawed(task)
        flagged = Review(correct=False, report=report(right, wrong[-1].end))
        await _tried(steps.verify(problem, Solution(solution(wrong)), team, WRONG))
        await _tried(steps.verify(problem, Solution(solution(right)), team, RIGHT))
        await _tried(steps.correct(problem, Solution(solution(wrong)), flagged, team, REPAIR))
        return await self.workflow.run(question, team)

    def bound(self, sizes: Sizes) -> dict[str, Usage]:
        return self.workflow.bound(sizes)


async def _tried(step: Coroutine[Any, Any, object]) -> None:
    """A role that says nothing has failed its part, and the others are asked all the same."""
    try:
        await step
    except BadReply:
        return


async def by_role(rollout: Rollout, references: tuple[str, ...]) -> Score:
    """1 if the workflow's answer is right, with the parts

    solver             1 if the Solver's own solution is right
    found, accepted    1 if the Verifier flags the wrong solution, and if it accepts the right one
    natural            in the run: 1 if its verdict is true of the Solver's own solution
    repaired           1 if the Corrector makes the wrong solution right
    fixed, harmed      in the run: 1 if a Corrector makes a wrong solution right, and a right one wrong
    """
    gold = references[0]
    parts = {"accuracy": float(exact(extract_answer(rollout.answer), gold))}
    before: bool | None = None
    for name, trajectory in rollout.trajectories.items():
        if not trajectory.turns:
            continue
        step, completion = int(name.split("/")[0]), trajectory.turns[-1].completion
        if trajectory.role == "verifier":
            parts |= _verdict(step, accepts=verdict(completion), right=before)
            continue
        right = completion.finish != "length" and exact(final(strip_thought(completion)), gold)
        if step == REPAIR:
            parts["repaired"] = float(right)
        elif trajectory.role == "solver":
            parts["solver"] = float(right)
        elif before is not None:
            parts["harmed" if before else "fixed"] = float(right is not before)
        if step != REPAIR:
            before = right
    return Score(parts["accuracy"], {"found": 0.0, "accepted": 0.0, "repaired": 0.0, **parts})


def _verdict(step: int, *, accepts: bool | None, right: bool | None) -> dict[str, float]:
    if step == WRONG:
        return {"found": float(accepts is False)}
    if step == RIGHT:
        return {"accepted": float(accepts is True)}
    if step == FIRST_REVIEW and right is not None:
        return {"natural": float(accepts is right)}
    return {}


def sound(task: Task) -> list[Line]:
    """A right solution."""
    lines: list[Line] = []
    for step in task.steps:
        begin = lines[-1].end if lines else task.start
        lines.append(Line(begin, step, step.after(begin)))
    return lines


def flawed(task: Task) -> list[Line]:
    """A solution with one error, from which all the rest follows: it counts on in place of back, or the other way where
    no step goes back."""
    back = [at for at, step in enumerate(task.steps) if step.back]
    at = random.Random(seed_of(0, "flaw", task.question)).choice(back or range(len(task.steps)))  # noqa: S311 - the same
    lines: list[Line] = []
    for place, step in enumerate(task.steps):
        begin = lines[-1].end if lines else task.start
        lines.append(Line(begin, step, (step.turned if place == at else step).after(begin)))
    return lines
