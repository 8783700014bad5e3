"""The demos' lessons: a teacher plays rollouts of the real workflow."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from hira.agents.run_context import together
from hira.agents.trajectory import Rollout
from hira.core.policy import Policy
from hira.runtime.factory import open_session
from hira.runtime.settings import Settings
from hira.trainers.demo.recipe import DAY
from hira.trainers.rollouts import Problem, teams_of
from hira.trainers.seeding import seed_of
from hira.workflows.workflow import Workflow, rollout

AT_ONCE = 16
Teaches = Callable[[random.Random, Problem], Policy]
"""Makes the teacher of one rollout: the random numbers that it draws its faults from, and the problem."""


async def played(
    settings: Settings, workflow: Workflow, problems: Sequence[Problem], times: int, seed: int, teacher: Teaches
) -> list[Rollout]:
    """The teacher's rollouts: `times` of each problem."""
    if not problems:
        return []
    stand_in = teacher(random.Random(seed), problems[0])  # noqa: S311
    team = await open_session(settings, policies={"*": stand_in}, workflow=workflow)
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(problem: Problem, number: int) -> Rollout:
        chance = random.Random(seed_of(seed, "teacher", problem.id, number))  # noqa: S311 - lessons of that seed
        policy = teacher(chance, problem)
        async with gate, teams_of(team)(f"{problem.id}-{number}", problem, lambda _: None) as opened:
            opened.rollout.began = DAY
            opened.cast = {role: replace(part, policy=policy) for role, part in opened.cast.items()}
            return await rollout(workflow, problem.question, opened)

    try:
        return await together([one(problem, number) for problem in problems for number in range(times)])
    finally:
        await team.aclose()
