"""The lessons of the rubric demo: the careless teacher's rubrics, and the tokenizer that is learned from them."""

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hira.agents.trajectory import Rollout
from hira.evaluation.rewards.hybrid import read_rubric
from hira.runtime.settings import Settings
from hira.trainers.demo.model import Shape
from hira.trainers.demo.playing import played
from hira.trainers.demo.recipe import Shown
from hira.trainers.demo.rubric import world
from hira.trainers.demo.rubric.teacher import CARELESS, Faults, Teacher
from hira.trainers.demo.rubric.world import ASPECTS, FLAWS, MACHINES, NAMES, READERS
from hira.trainers.demo.tokens import phrases, tokenizer
from hira.trainers.lessons import spoken
from hira.trainers.rollouts import Problem
from hira.trainers.rows import Row
from hira.workflows.rubric import RubricWriting

if TYPE_CHECKING:
    from hira.trainers.sft import Changed

WORKFLOW = RubricWriting()
SHAPE = Shape(window=512)
"""Room for a second try with the list of all that is wrong in the first, which is read letter by letter."""
PAIRS, HELD_OUT = 8, 8
"""Pairs for each reader and kind of machine, in training and held out."""


def settings_of(folder: Path) -> Settings:
    """Runs of the demo use nothing."""
    del folder
    return Settings(model="offline", workflow="direct", sandbox="off")


def show(folder: Path, seed: int, times: int, faults: Faults = CARELESS) -> Shown:
    """The pairs of that seed's world as files, and its teacher's rubrics: `times` a query of training."""
    here = world.made(seed)
    problems = here.problems(PAIRS, held_out=False)
    write(folder / "pairs.jsonl", problems)
    write(folder / "pairs_held_out.jsonl", here.problems(HELD_OUT, held_out=True))

    def teacher(chance: random.Random, problem: Problem) -> Teacher:
        reader, machine, _ = problem.id.split("-")
        return Teacher(chance, here.cares(reader, machine), faults)

    rollouts = asyncio.run(played(settings_of(folder), WORKFLOW, problems, times, seed, teacher))
    valid = sum(read_rubric(record) is not None for record in rollouts) / len(rollouts)
    told = f"{len(rollouts)} rubrics of a careless teacher for {len(problems)} queries"
    return Shown(rollouts, f"{told}, {100 * valid:.0f} % of them valid")


def learn_tokenizer(rollouts: Sequence[Rollout]) -> Any:
    """The tokenizer of these rollouts: all that reports tell of is a token, and so are the phrases between."""
    names = [*NAMES, *MACHINES, *READERS, *ASPECTS, *FLAWS]
    conversations = [spoken(one) for record in rollouts for one in record.trajectories.values()]
    return tokenizer(
        phrases(conversations, names, sorted({record.question for record in rollouts})), names, SHAPE.window
    )


def write(path: Path, problems: Sequence[Problem]) -> None:
    """The pairs as `recipe = "rubric"` reads them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {"id": one.id, "query": one.question, "accepted": one.references[0], "rejected": one.references[1]}
        for one in problems
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def renamed(tokenizer_: Any) -> "Changed":
    """Makes other lessons of one: the same rubric for a machine of another name."""
    ids = [tokenizer_(name, add_special_tokens=False)["input_ids"][0] for name in NAMES]

    def changed(row: Row, chance: random.Random) -> Row:
        other = dict(zip(ids, chance.sample(ids, len(ids)), strict=True))
        return replace(row, prompt=tuple(other.get(one, one) for one in row.prompt))

    return changed
