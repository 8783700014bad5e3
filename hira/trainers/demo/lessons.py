"""The demo's lessons: the teacher plays rollouts of the real workflow, and the tokenizer is learned from them."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hira.casting import crew
from hira.policies.local.template import Template
from hira.settings import Settings
from hira.team import together
from hira.trainers.demo.model import WINDOW
from hira.trainers.demo.teacher import Faults, Teacher
from hira.trainers.demo.tokens import phrases, tokenizer
from hira.trainers.demo.world import KINDS
from hira.trainers.lessons import lessons_of, spoken
from hira.trainers.rollouts import Problem, teams_of
from hira.trainers.rows import Row
from hira.trainers.seeding import seed_of
from hira.trajectory import Rollout
from hira.workflows.workflow import Workflow, rollout

AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Taught:
    """What the teacher's rollouts came to: the tokenizer, the rows, and how often the teacher was right."""

    tokenizer: Any
    rows: list[Row]
    right: float


def settings_of(documents: Path) -> Settings:
    """What runs of the demo can use: the search over its documents."""
    return Settings(model="offline", docs=(documents,), workflow="matpo", sandbox="off")


async def played(
    documents: Path, workflow: Workflow, problems: Sequence[Problem], times: int, seed: int, faults: Faults, day: float
) -> list[Rollout]:
    """The teacher's rollouts: `times` of each problem."""
    team = await crew(settings_of(documents), policies={"*": Teacher(random.Random(seed), faults)}, workflow=workflow)  # noqa: S311
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(problem: Problem, number: int) -> Rollout:
        teacher = Teacher(random.Random(seed_of(seed, "teacher", problem.id, number)), faults)  # noqa: S311
        async with gate, teams_of(team)(f"{problem.id}-{number}", problem, lambda _: None) as opened:
            opened.rollout.began = day
            opened.cast = {role: replace(part, policy=teacher) for role, part in opened.cast.items()}
            return await rollout(workflow, problem.question, opened)

    try:
        return await together([one(problem, number) for problem in problems for number in range(times)])
    finally:
        await team.aclose()


def taught(rollouts: Sequence[Rollout], problems: Sequence[Problem]) -> Taught:
    names = [name for names in KINDS for name in names]
    conversations = [spoken(one) for record in rollouts for one in record.trajectories.values()]
    inserted = {record.question for record in rollouts}
    inserted |= {finding.subtask.text for record in rollouts for finding in record.findings}
    made = tokenizer(phrases(conversations, names, sorted(inserted)), names, WINDOW)
    template = Template(made)
    rows = [row for record in rollouts for row in lessons_of(record, template)]
    answers = {problem.question: problem.references[0] for problem in problems}
    right = sum(record.answer.split(" [")[0] == answers[record.question] for record in rollouts)
    return Taught(made, rows, right / len(rollouts))
