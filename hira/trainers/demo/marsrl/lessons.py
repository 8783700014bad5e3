"""The lessons of the MarsRL demo: rollouts of the careless teacher, and the tokenizer that is learned from them."""

import asyncio
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hira.agents.trajectory import Rollout
from hira.core.messages import Message
from hira.runtime.settings import Settings
from hira.trainers.demo.marsrl.teacher import CARELESS, Faults, Teacher
from hira.trainers.demo.marsrl.world import NUMBERS, WEEK, problems, task_of
from hira.trainers.demo.model import SHAPE
from hira.trainers.demo.playing import played
from hira.trainers.demo.recipe import Shown
from hira.trainers.demo.tokens import tokenizer
from hira.trainers.lessons import spoken
from hira.trainers.rollouts import Problem
from hira.trainers.rows import Row
from hira.workflows.marsrl import MarsRL

WORKFLOW = MarsRL(rounds=3, tries=1, search=False)
"""The steps that training has: Solver, Verifier1, Corrector1, Verifier2, Corrector2, and a last review."""
TIMES = {"verifier": 2}
"""How often a lesson is dealt before all others have been: a report compares once, where it counts three times."""
OPTIONS = {"rounds": WORKFLOW.rounds, "tries": WORKFLOW.tries, "search": WORKFLOW.search}
_CUT = re.compile("|".join([*WEEK, *(rf"\b{number}\b" for number in NUMBERS)]))


def settings_of(folder: Path) -> Settings:
    """What runs of the demo can use: nothing. They reason."""
    del folder
    return Settings(model="offline", workflow="marsrl", sandbox="off")


def show(folder: Path, seed: int, times: int, faults: Faults = CARELESS) -> Shown:
    """The teacher's lessons: `times` a question."""
    asked = problems(seed, held_out=False)
    rollouts = by_teacher(folder, asked, times, seed, faults)
    right = sum(record.answer == task_of(record.question).answer for record in rollouts) / len(rollouts)
    return Shown(rollouts, f"{len(rollouts)} rollouts of a careless teacher, {100 * right:.0f} % of them right")


def by_teacher(folder: Path, asked: Sequence[Problem], times: int, seed: int, faults: Faults) -> list[Rollout]:
    return asyncio.run(
        played(settings_of(folder), WORKFLOW, asked, times, seed, lambda chance, _: Teacher(chance, faults))
    )


def learn_tokenizer(rollouts: Sequence[Rollout]) -> Any:
    """The tokenizer of these rollouts: days and numbers are tokens, and so is what is between them."""
    conversations = [spoken(one) for record in rollouts for one in record.trajectories.values()]
    return tokenizer(pieces(message for messages in conversations for message in messages), WEEK, SHAPE.window)


def pieces(messages: Iterable[Message]) -> list[str]:
    """What stands between days and numbers: of what roles write line by line, of prompts what stands around that."""
    found: dict[str, None] = {}
    for message in messages:
        texts = [message.text]
        for value in map(str, message.values.values()):
            texts = [part for text in texts for part in text.split(value)] if value else texts
        own = [message.text] if message.role == "assistant" else [str(value) for value in message.values.values()]
        lines = [line for text in own for part in _CUT.split(text) for line in re.findall(r"[^\n]*\n|[^\n]+", part)]
        found.update(dict.fromkeys([*lines, *([] if message.role == "assistant" else texts)]))
    return [piece for piece in found if len(piece) > 1]


def shifted(tokenizer_: Any) -> Callable[[Row, random.Random], Row]:
    """Makes other lessons of one: the same with every day as many days later."""
    ids = [_id(tokenizer_, day) for day in WEEK]

    def changed(row: Row, chance: random.Random) -> Row:
        later = chance.randrange(len(WEEK))
        other = {one: ids[(at + later) % len(ids)] for at, one in enumerate(ids)}

        def exchanged(some: Sequence[int]) -> tuple[int, ...]:
            return tuple(other.get(one, one) for one in some)

        return replace(row, prompt=exchanged(row.prompt), completion=exchanged(row.completion))

    return changed


def _id(tokenizer_: Any, text: str) -> int:
    (one,) = tokenizer_(text, add_special_tokens=False)["input_ids"]
    return int(one)
