"""`hira-train demo --model smollm2`: a pretrained model learns to name the source of every statement.

The workflow is `rag`, as `hira ask --workflow rag --docs` runs it. A question asks for two facts of two towns, so the
answer is two statements, each followed by the id of its own page. A small model reads the facts and leaves the ids out,
mixes them up, or copies whole pages. Some dozen conversations of a careless teacher show it the form, with the
teacher's faults; reinforcement finds out which of its ways are paid for. The towns of the exam are in no training
question.

Expected, before the runs of the reported seeds: of held-out questions at temperature 1, with both facts right and each
cited rightly, about none by the pretrained model, at most 20 % after the lessons and at least 60 % after
reinforcement; greedy at least 70 %. What was found is in benchmarks/results/training_pretrained.md.
"""

import asyncio
import random
import re
from dataclasses import dataclass
from pathlib import Path

from hira.agents.trajectory import Rollout
from hira.core.policy import Completion, Request, Watch, cut_at_stop
from hira.evaluation.rewards.match import contains
from hira.evaluation.rewards.reward import Reward, Score
from hira.policies.offline.request import read_request
from hira.runtime.settings import Settings
from hira.trainers.demo.matpo.world import HILLS, PEOPLE, RIVERS, TOWNS
from hira.trainers.demo.playing import played
from hira.trainers.demo.recipe import Asked, DemoRecipe, Shown, Sizes
from hira.trainers.recipes.grpo import RECIPE
from hira.trainers.rollouts import Problem
from hira.workflows.baselines.rag import Rag

MONTHS = "January February March April May June July August September October November December".split()
FACTS = {
    "river": ("The river {value} flows through {town}.", "which river flows through {town}", RIVERS),
    "hill": ("The hill {value} stands above {town}.", "which hill stands above {town}", HILLS),
    "mayor": ("{value} is the mayor of {town}.", "who is the mayor of {town}", PEOPLE),
    "fair": ("{value} is the month of the fair of {town}.", "in which month is the fair of {town}", MONTHS),
}
"""Of each town: how its page says it, how it is asked for, and the values that it may have."""
TRAINED = len(TOWNS) * 3 // 4
QUESTIONS, HELD_OUT, LESSONS = 96, 24, 48
REPLY = 64
"""Tokens of a reply at most; the right answer takes about 30."""
_SENTENCE = re.compile(r"(?<=[.!?\]])\s+(?=[A-Z])")
_MARK = re.compile(r"\[(s\d+)\]")


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact of a town, which a question asks for."""

    town: str
    kind: str
    value: str

    @property
    def sentence(self) -> str:
        return FACTS[self.kind][0].format(value=self.value, town=self.town)

    @property
    def asked(self) -> str:
        return FACTS[self.kind][1].format(town=self.town)


def world(seed: int) -> dict[str, list[Fact]]:
    """The facts of all towns."""
    chance = random.Random(seed)  # noqa: S311 - a world that can be made again
    return {town: [Fact(town, kind, chance.choice(one[2])) for kind, one in FACTS.items()] for town in TOWNS}


def questions(seed: int, *, held_out: bool) -> dict[str, tuple[Fact, Fact]]:
    """Questions with the two facts that they ask for, of two towns each."""
    chance, here = random.Random(f"{seed} {held_out}"), world(seed)  # noqa: S311 - questions that can be asked again
    towns, many = (TOWNS[TRAINED:], HELD_OUT) if held_out else (TOWNS[:TRAINED], QUESTIONS)
    found: dict[str, tuple[Fact, Fact]] = {}
    while len(found) < many:
        (one, other), kinds = chance.sample(towns, 2), chance.sample(range(len(FACTS)), 2)
        pair = here[one][kinds[0]], here[other][kinds[1]]
        asked = f"{pair[0].asked}, and {pair[1].asked}?"
        found[asked[0].upper() + asked[1:]] = pair
    return found


def problems(seed: int, *, held_out: bool = False) -> list[Problem]:
    """References are the value and the town of the first fact, then of the second."""
    kind = "held" if held_out else "train"
    return [
        Problem(f"{kind}{at}", question, tuple(part for fact in pair for part in (fact.value, fact.town)))
        for at, (question, pair) in enumerate(questions(seed, held_out=held_out).items())
    ]


@dataclass(frozen=True, slots=True)
class Faults:
    """How often the teacher leaves the id of a statement out, gives that of the other page, tells another fact of the
    town, and leaves the second statement out."""

    uncited: float = 0.5
    swapped: float = 0.15
    misread: float = 0.1
    short: float = 0.15


class Teacher:
    """Answers from the documents that it is shown, carelessly."""

    model = "teacher"

    def __init__(
        self, chance: random.Random, facts: tuple[Fact, Fact], here: dict[str, list[Fact]], faults: Faults
    ) -> None:
        self.chance = chance
        self.facts = facts
        self.here = here
        self.faults = faults

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        del watch
        shown = read_request(request).value("documents")
        ids = {title: id_ for id_, title in re.findall(r"\[(s\d+)\] (\w+) \(", shown)}
        told = [self._statement(fact, ids) for fact in self.facts]
        if self._fails(self.faults.short):
            told = told[:1]
        return cut_at_stop(Completion(" ".join(told), model=self.model), request.stop)

    async def aclose(self) -> None:
        """There is nothing to let go of."""

    def _statement(self, fact: Fact, ids: dict[str, str]) -> str:
        if self._fails(self.faults.misread):
            fact = self.chance.choice([one for one in self.here[fact.town] if one != fact])
        if fact.town not in ids or self._fails(self.faults.uncited):
            return fact.sentence
        town = self.chance.choice(list(ids)) if self._fails(self.faults.swapped) else fact.town
        return f"{fact.sentence.removesuffix('.')} [{ids[town]}]."

    def _fails(self, often: float) -> bool:
        return self.chance.random() < often


async def cited(rollout: Rollout, references: tuple[str, ...]) -> Score:
    """Half for the facts that are told and half for those that are cited rightly, less a quarter where more is told;
    `accuracy` is 1 where both facts are told in two sentences, each with its own page and no other."""
    titles = {one.id: one.title for one in rollout.sources.read.values()}
    sentences = [one for one in _SENTENCE.split(rollout.answer.strip()) if one]
    told, sourced = 0.0, 0.0
    for value, town in zip(references[::2], references[1::2], strict=True):
        own = next((one for one in sentences if contains(one, value) and contains(one, town)), "")
        told += bool(own) / 2
        sourced += bool(own and [titles.get(id_) for id_ in _MARK.findall(own)] == [town]) / 2
    brief = len(sentences) == len(references) // 2
    parts = {"accuracy": float(sourced == 1 and brief), "told": told, "sourced": sourced, "brief": float(brief)}
    return Score(max(0.0, told / 2 + sourced / 2 - (0 if len(sentences) <= len(references) // 2 else 0.25)), parts)


def settings_of(folder: Path) -> Settings:
    return Settings(
        model="offline", docs=(folder / "documents",), workflow="rag", sandbox="off", max_reply_tokens=REPLY
    )


def show(folder: Path, seed: int, times: int, faults: Faults = Faults()) -> Shown:
    """The documents of that seed's towns, and the teacher's answers: `times` to each of some dozen questions."""
    here, asked = world(seed), questions(seed, held_out=False)
    (folder / "documents").mkdir(parents=True, exist_ok=True)
    for town, facts in here.items():
        text = " ".join(fact.sentence for fact in facts)
        (folder / "documents" / f"{town}.md").write_text(f"# {town}\n\n{text}\n", encoding="utf-8")

    def teacher(chance: random.Random, problem: Problem) -> Teacher:
        return Teacher(chance, asked[problem.question], here, faults)

    rollouts = asyncio.run(played(settings_of(folder), Rag(), problems(seed)[:LESSONS], times, seed, teacher))
    return Shown(rollouts, f"{len(rollouts)} answers of a careless teacher over {len(here)} pages")


def reward() -> Reward:
    return cited


def ask(seed: int) -> list[Asked]:
    """Questions about towns that nobody asked about in training."""
    held = questions(seed, held_out=True)
    return [
        Asked(("ask", question), f"known: {one.value}, {other.value}")
        for question, (one, other) in list(held.items())[:2]
    ]


CITED = DemoRecipe(
    name="cited",
    about="GRPO on cited answers",
    recipe=RECIPE,
    workflow=Rag(),
    settings=settings_of,
    show=show,
    problems=problems,
    held_out=lambda seed: problems(seed, held_out=True),
    reward=reward,
    asked=ask,
    pretrained=True,
    sizes=Sizes(
        lessons=1,
        learning=12,
        batch=8,
        learning_rate=5e-4,
        updates=12,
        questions=4,
        attempts=6,
        rate=2e-4,
        rank=16,
        exam=1,
    ),
    small=Sizes(
        lessons=1, learning=1, batch=2, learning_rate=5e-4, updates=1, questions=1, attempts=2, rank=4, exam=1, thin=12
    ),
    examined="held-out questions with both facts right and cited rightly",
    curves={"right and cited in training": "reward/accuracy", "facts cited rightly": "reward/sourced"},
    figures={
        f"{part}, {told}": (f"{name}/{one}",)
        for name, told in (("sampled", "temperature 1"), ("greedy", "greedy"))
        for part, one in (("facts told", "told"), ("facts cited rightly", "sourced"), ("two sentences", "brief"))
    },
)
