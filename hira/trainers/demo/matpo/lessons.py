"""The lessons of the MATPO demo: rollouts of the careless teacher, and the tokenizer that is learned from them."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hira.agents.trajectory import Rollout
from hira.runtime.settings import Settings
from hira.trainers.demo.matpo import world
from hira.trainers.demo.matpo.teacher import CARELESS, Faults, Teacher
from hira.trainers.demo.matpo.world import KINDS
from hira.trainers.demo.model import SHAPE
from hira.trainers.demo.playing import played
from hira.trainers.demo.recipe import Shown
from hira.trainers.demo.tokens import READ, phrases, tokenizer
from hira.trainers.lessons import spoken
from hira.trainers.rollouts import Problem
from hira.workflows.matpo import MATPO

WORKFLOW = MATPO(max_subtasks=4, worker_calls=3)
"""The paper's workflow with its recap and summaries, and room for the two subtasks that a question takes."""


def settings_of(folder: Path) -> Settings:
    """What runs of the demo can use: the search over its documents."""
    return Settings(model="offline", docs=(folder / "documents",), workflow="matpo", sandbox="off")


def show(folder: Path, seed: int, times: int, faults: Faults = CARELESS) -> Shown:
    """The documents of that seed's world, and its teacher's lessons: `times` a question."""
    here = world.made(seed)
    here.write(folder / "documents")
    problems = here.problems(held_out=False)
    rollouts = by_teacher(folder, problems, times, seed, faults)
    answers = {problem.question: problem.references[0] for problem in problems}
    right = sum(record.answer.split(" [")[0] == answers[record.question] for record in rollouts) / len(rollouts)
    told = f"{len(rollouts)} rollouts of a careless teacher over {len(here.documents())} documents"
    return Shown(rollouts, f"{told}, {100 * right:.0f} % of them right")


def by_teacher(folder: Path, problems: Sequence[Problem], times: int, seed: int, faults: Faults) -> list[Rollout]:
    """The teacher's rollouts over the documents of the folder."""
    return asyncio.run(
        played(settings_of(folder), WORKFLOW, problems, times, seed, lambda chance, _: Teacher(chance, faults))
    )


def learn_tokenizer(rollouts: Sequence[Rollout]) -> Any:
    """The tokenizer of these rollouts: names are tokens, and so are the phrases between them."""
    names = [name for names in KINDS for name in names]
    conversations = [spoken(one) for record in rollouts for one in record.trajectories.values()]
    inserted = {record.question for record in rollouts}
    inserted |= {finding.subtask.text for record in rollouts for finding in record.findings}
    return tokenizer(phrases(conversations, names, sorted(inserted)), [*names, *READ], SHAPE.window)
