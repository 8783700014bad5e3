"""A model learns to write the rubrics that tell which of two reports people prefer, from random weights on a CPU.

    python examples/training/machines.py --seed 2

The recipe is that of the rubrics paper (section 3.3): several rubrics for each query are compared with one another by
R = R_pref + R_llm + R_fmt. Readers want to know certain things, and certain things matter of each kind of machine. Some
combinations of reader and machine are held out: what they call for is known from other queries. The teacher guesses
what a rubric should ask for, and a third of its rubrics is not valid. Both judges are programs: no language model that
can judge runs on a CPU next to this one. Prompts, JSON, scores and GRPO are the real ones.

Expected of held-out queries at temperature 1, stated after seeds 0 to 2 and before any other: valid rubrics ≥ 85 %; of
all pairs at least 15 points more in the right order, an invalid rubric counting as wrong; valid rubrics, each tried on
100 pairs, order at least 2 points more of them; the judge's mark up by 0.5 of 4 or more; a larger Cohen's d. The model
learns above all validity and the judge's mark; the order of valid rubrics rises by a few points (seed 1: 61 to 70 %,
seed 2: 62 to 67 %), because naming what the reader wants, which the judge rewards, orders reports too. The results are
in benchmarks/results/training_demo_rubric.md.
"""

import json
import random
import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hira.agents.run_context import RoleConfig
from hira.agents.trajectory import Rollout
from hira.cli.training.demo import run
from hira.core.policy import Completion, Request, Watch
from hira.evaluation.rewards.answers import Reward, RolloutScore
from hira.evaluation.rewards.rubrics import BEST, preference, read_rubric
from hira.policies.offline import OfflineRequest as Seen
from hira.policies.offline import read_request
from hira.runtime.settings import Settings
from hira.trainers.configuration import RewardConfig
from hira.trainers.demo.recipe import Command, DemoRecipe, DemoSizes, Reply
from hira.trainers.demo.tiny import TinyShape, find_phrases, make_tokenizer
from hira.trainers.demonstrations import list_messages
from hira.trainers.recipes import RUBRIC, Judges, hybrid_reward
from hira.trainers.rollouts import Problem
from hira.trainers.rows import Row
from hira.workflows.mams import RubricWriting
from hira.workflows.mams.rubrics import WEIGHTS, Kind, Rubric, Scores

if TYPE_CHECKING:
    from hira.trainers.sft import Changed


READERS: Mapping[str, Mapping[str, int]] = {
    "buyer": {"price": 5, "warranty": 5, "lifespan": 4, "size": 3},
    "engineer": {"mass": 5, "fuel": 5, "repair": 4, "noise": 3},
    "inspector": {"safety": 5, "permit": 5, "maker": 4, "disposal": 3},
    "teacher": {"history": 5, "origin": 5, "maker": 4, "safety": 3},
    "farmer": {"repair": 5, "fuel": 5, "lifespan": 4, "storage": 3},
    "insurer": {"safety": 5, "lifespan": 5, "price": 4, "storage": 3},
}
"""What readers care for, and how much: the same in all worlds, and known to the judge."""
MACHINES = "pump kettle saw lamp drill fan mower heater".split()
NAMES = (
    "Adela Bertil Corin Dagny Eskil Fenja Gorm Hedvig Ivar Jorun Kettil Liv "
    "Magnus Nanna Orm Petra Quirin Runa Sigurd Torun Ulf Vigdis Wenzel Ylva"
).split()
ASPECTS = (
    "price noise mass lifespan origin maker safety permit repair cleaning fuel size warranty storage disposal history"
).split()
FLAWS = "advertising repetition hearsay".split()

OF_MACHINE = (4, 3)
"""How much two aspects matter, or matter more, of a kind of machine; which they are is drawn for each world."""
OF_FLAW = 3
LEVELS = ((0.0, 0.4), (0.5, 0.25), (1.0, 0.35))
"""How far a report treats an aspect (not at all, in passing, by a figure), and how often. Both reports of a pair are of
one length: what differs is which aspects they treat."""
FLAWED = 0.25
CLEAR = 5
"""How far apart the reports of a pair are at least: by one thing that the reader wants most. Which of two reports is
preferred by less says little of a rubric, however good."""
DOUBT = 2.0
"""How noisy preferences are: the scale of a logistic distribution, in the unit of the cares."""


@dataclass(frozen=True, slots=True)
class Report:
    """How far it treats each aspect, from 0 to 1, and which flaws it has."""

    subject: str
    treats: Mapping[str, float]
    flaws: frozenset[str]

    @property
    def text(self) -> str:
        """The report as it is read: a sentence for each aspect that it treats, and for each flaw."""
        sentences = [
            FIGURE.format(aspect) if far == 1 else PASSING.format(aspect) for aspect, far in self.treats.items() if far
        ]
        return f"# {self.subject}\n\n{' '.join([*sentences, *(FLAW.format(flaw) for flaw in sorted(self.flaws))])}"


FIGURE, PASSING, FLAW = "The {} is given by a figure [1].", "The {} is told in passing.", "This sentence is {}."


@dataclass(frozen=True)
class World:
    """What matters of each kind of machine. What a reader cares for is added to it."""

    seed: int
    machines: Mapping[str, Mapping[str, int]]

    def cares(self, reader: str, machine: str) -> dict[str, int]:
        """What matters in a report on such a machine for such a reader, with how much; flaws less than nothing."""
        weights: dict[str, int] = {}
        for part in (READERS[reader], self.machines[machine]):
            for aspect, much in part.items():
                weights[aspect] = weights.get(aspect, 0) + much
        return weights | dict.fromkeys(FLAWS, -OF_FLAW)

    def worth(self, report: Report, reader: str, machine: str) -> float:
        cares = self.cares(reader, machine)
        flawed = sum(cares[flaw] for flaw in report.flaws)
        return flawed + sum(cares.get(aspect, 0) * far for aspect, far in report.treats.items())

    def combinations(self, *, held_out: bool) -> list[tuple[str, str]]:
        """Readers with kinds of machines: three quarters to train on, a quarter held out, each of both in either."""
        return [
            (reader, machine)
            for (index, reader), (other, machine) in product(enumerate(READERS), enumerate(MACHINES))
            if ((index + other + self.seed) % 4 == 0) is held_out
        ]

    def problems(self, times: int, *, held_out: bool) -> list[Problem]:
        """So many pairs for each combination. The references are the report that was preferred, then the other."""
        edge = len(NAMES) * 3 // 4
        names = NAMES[edge:] if held_out else NAMES[:edge]
        chance = random.Random(f"{self.seed} {held_out}")  # noqa: S311 - pairs that can be repeated
        return [
            self._pair(f"{reader}-{machine}-{index}", chance.choice(names), reader, machine, chance)
            for reader, machine in self.combinations(held_out=held_out)
            for index in range(times)
        ]

    def _pair(self, id_: str, name: str, reader: str, machine: str, chance: random.Random) -> Problem:
        apart = 0.0
        while abs(apart) < CLEAR:
            levels = chance.choices(*zip(*LEVELS, strict=True), k=len(ASPECTS))
            first, other = (_report(f"The {machine} {name}", levels, chance) for _ in range(2))
            apart = self.worth(first, reader, machine) - self.worth(other, reader, machine)
        likely = 1 / (1 + exp(-apart / DOUBT))
        accepted, rejected = (first, other) if chance.random() < likely else (other, first)
        return Problem(id_, query_of(reader, machine, name), (accepted.text, rejected.text))


def query_of(reader: str, machine: str, name: str) -> str:
    """The query."""
    return f"Write a report on the {machine} {name} for the {reader}."


def make_world(seed: int) -> World:
    """A world of that seed."""
    chance = random.Random(seed)  # noqa: S311 - a world that can be repeated
    machines = {
        machine: dict(zip(chance.sample(ASPECTS, len(OF_MACHINE)), OF_MACHINE, strict=True)) for machine in MACHINES
    }
    return World(seed, machines)


def _report(subject: str, levels: Sequence[float], chance: random.Random) -> Report:
    """A report of that many figures and passing words, about whichever aspects, in any order."""
    order = chance.sample(ASPECTS, len(ASPECTS))
    flaws = frozenset(flaw for flaw in FLAWS if chance.random() < FLAWED)
    return Report(subject, dict(zip(order, chance.sample(levels, len(levels)), strict=True)), flaws)


FULL, HALF, NONE = 10, 5, 1
"""Ratings of an item: given by a figure, told in passing, not there."""
_SUBJECT = re.compile(rf"\b({'|'.join([*ASPECTS, *FLAWS])})\b")
_READER = re.compile(rf"\b({'|'.join(READERS)})\b")
_ITEM = re.compile(r"^- .* \(([+-]\d+)\): (.*)$", re.MULTILINE)


class Judge:
    """Rates items and judges rubrics, of any world."""

    model = "judge of the demo"

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        del watch
        seen = read_request(request)
        told = {"rubric_rate": rated, "rubric_quality": judged}[seen.prompt](seen)
        return Completion(json.dumps(told), model=self.model)

    async def aclose(self) -> None:
        """There is nothing to let go of."""


def judged(seen: Seen) -> dict[str, object]:
    """From 0 to 4: up to 3 for what the reader wants, half a point each for a fault and for a weight of 5."""
    items = [(int(weight), subject(text)) for weight, text in _ITEM.findall(seen.value("rubric"))]
    reader = _READER.search(seen.value("query"))
    wants = READERS[reader[0]].keys() if reader else frozenset()
    named = {about for weight, about in items if weight > 0}
    weights = {weight for weight, _ in items}
    covered = len(named & wants) / len(wants) if wants else 0.0
    form = (min(weights, default=0) < 0) + (5 in weights)
    return {"reason": "by what it names", "reward": 3 * covered + form / 2, "confidence": 100}


def rated(seen: Seen) -> dict[str, object]:
    """How far a report treats what an item names; 1 for an item that names nothing of this world."""
    about = subject(seen.value("criterion"))
    return {"reason": f"by what it says of {about or 'nothing'}", "rating": rating(about, seen.value("report"))}


def rating(about: str, report: str) -> int:
    """Of a report for an item about that aspect or flaw; "" is about nothing."""
    if not about:
        return NONE
    full = FIGURE.format(about) in report or FLAW.format(about) in report
    return FULL if full else HALF if PASSING.format(about) in report else NONE


def subject(text: str) -> str:
    """The aspect or flaw that an item speaks of, the first of several."""
    match = _SUBJECT.search(text)
    return match[0] if match else ""


KINDS: tuple[Kind, ...] = ("key", "important", "optional")


@dataclass(frozen=True, slots=True)
class Faults:
    """How often the teacher does each thing wrong: asks for something that does not matter, gives an item a weight that
    does not go with its kind, names something twice in a rubric, writes too few items."""

    beside: float = 0.5
    weighed: float = 0.02
    twice: float = 0.08
    few: float = 0.15


CARELESS = Faults()


class Teacher:
    """Writes one rubric. `cares` is what matters to people, of which it asks for some; `chance` makes its faults."""

    def __init__(self, chance: random.Random, cares: dict[str, int], faults: Faults) -> None:
        self.chance = chance
        self.cares = [aspect for aspect, much in cares.items() if much > 0]
        self.faults = faults

    def reply(self, request: Request) -> Completion:
        del request
        return Completion(written(self.items()))

    def items(self) -> list[dict[str, object]]:
        """Six to nine aspects, always in the same order, and a flaw."""
        chance = self.chance
        many = 5 if self._fails(self.faults.few) else chance.randint(6, 9)
        other = [aspect for aspect in ASPECTS if aspect not in self.cares]
        subjects: list[str] = []
        for _ in range(many):
            known = [
                aspect
                for aspect in (other if self._fails(self.faults.beside) else self.cares)
                if aspect not in subjects
            ]
            subjects.append(chance.choice(known or [aspect for aspect in ASPECTS if aspect not in subjects]))
        if self._fails(self.faults.twice):
            subjects[-1] = subjects[0]
        subjects.sort(key=ASPECTS.index)
        return [self._item(subject, chance.choice(KINDS)) for subject in subjects] + [
            self._item(chance.choice(FLAWS), "error")
        ]

    def _item(self, subject: str, kind: Kind) -> dict[str, object]:
        kinds = [weight for weight in WEIGHTS if weight != kind] if self._fails(self.faults.weighed) else [kind]
        return item(subject, kind, self.chance.choice(WEIGHTS[self.chance.choice(kinds)]))

    def _fails(self, often: float) -> bool:
        return self.chance.random() < often


def item(subject: str, kind: Kind, weight: int) -> dict[str, object]:
    statement = f"The report has {subject}." if kind == "error" else f"The report gives the {subject} by a figure."
    return {
        "title": f"{'Without' if kind == 'error' else 'Tells of'} {subject}",
        "description": f"{kind.title()} Criterion: {statement}",
        "weight": weight,
    }


def written(items: list[dict[str, object]]) -> str:
    """The rubric as a reply, an item a line."""
    return '{"items": [\n' + ",\n".join(map(json.dumps, items)) + "\n]}"


WORKFLOW = RubricWriting()
SHAPE = TinyShape(window=512)
"""Room for a second try with the list of all that is wrong in the first, which is read letter by letter."""
PAIRS, HELD_OUT = 8, 8
"""Pairs for each reader and kind of machine, in training and held out."""


def settings_of(folder: Path) -> Settings:
    """Runs of the demo use nothing."""
    del folder
    return Settings(model="offline", workflow="direct", sandbox="off")


def write_pairs(folder: Path, seed: int) -> None:
    """The pairs of that seed's world as files."""
    write(folder / "pairs.jsonl", problems(seed, held_out=False))
    write(folder / "pairs_held_out.jsonl", problems(seed, held_out=True))


def play_teacher(seed: int, chance: random.Random, problem: Problem) -> Reply:
    reader, machine, _ = problem.id.split("-")
    return Teacher(chance, make_world(seed).cares(reader, machine), CARELESS).reply


def learn_tokenizer(rollouts: Sequence[Rollout]) -> Any:
    """The tokenizer of these rollouts: all that reports tell of is a token, and so are the phrases between."""
    names = [*NAMES, *MACHINES, *READERS, *ASPECTS, *FLAWS]
    conversations = [list_messages(trajectory) for record in rollouts for trajectory in record.trajectories.values()]
    return make_tokenizer(
        find_phrases(conversations, names, sorted({record.question for record in rollouts})), names, SHAPE.window
    )


def write(path: Path, problems: Sequence[Problem]) -> None:
    """The pairs as `recipe = "rubric"` reads them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "id": problem.id,
            "query": problem.question,
            "accepted": problem.references[0],
            "rejected": problem.references[1],
        }
        for problem in problems
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def renamed(tokenizer_: Any) -> "Changed":
    """Makes other demonstrations of one: the same rubric for a machine of another name."""
    ids = [tokenizer_(name, add_special_tokens=False)["input_ids"][0] for name in NAMES]

    def changed(row: Row, chance: random.Random) -> Row:
        other = dict(zip(ids, chance.sample(ids, len(ids)), strict=True))
        return replace(row, prompt=tuple(other.get(token, token) for token in row.prompt))

    return changed


TRIALS = 100
"""Pairs on which a rubric is tried, of the same reader and kind of machine."""
Ratings = Mapping[str, int]
"""The rating of a report for an item about each aspect or flaw."""


@dataclass(frozen=True, slots=True)
class Tried:
    """The demo's reward, whose `ordered` is of a valid rubric the share of its query's `pairs` in the right order: the
    ratings of the report that was preferred, then of the other."""

    inner: Reward
    pairs: Mapping[str, Sequence[tuple[Ratings, Ratings]]]

    async def __call__(self, rollout: Rollout, references: tuple[str, ...]) -> RolloutScore:
        score = await self.inner(rollout, references)
        rubric = read_rubric(rollout)
        if rubric is None:
            return score
        return replace(score, parts={**score.parts, "ordered": ordered(rubric, self.pairs[rollout.question])})


def ordered(rubric: Rubric, pairs: Sequence[tuple[Ratings, Ratings]]) -> float:
    """The share of pairs in which the rubric gives the preferred report the higher score."""
    names = [subject(item.criterion) for item in rubric.items]

    def scored(report: Ratings) -> float | None:
        return Scores(rubric, tuple(report[name] for name in names)).normalised

    verdicts = [preference(scored(accepted), scored(rejected)) for accepted, rejected in pairs]
    return sum(verdict == 1.0 for verdict in verdicts) / len(verdicts)


def tried_on(world: World, many: int = TRIALS) -> dict[str, list[tuple[Ratings, Ratings]]]:
    """So many held-out pairs for each reader and kind of machine, under every query about them."""
    by: dict[tuple[str, str], list[tuple[Ratings, Ratings]]] = defaultdict(list)
    for problem in world.problems(many, held_out=True):
        reader, machine, _ = problem.id.split("-")
        accepted, rejected = (_ratings(report) for report in problem.references)
        by[reader, machine].append((accepted, rejected))
    return {query_of(*kind, name): pairs for kind, pairs in by.items() for name in NAMES}


def _ratings(report: str) -> Ratings:
    return {about: rating(about, report) for about in (*ASPECTS, *FLAWS, "")}


ASKED = 2


def problems(seed: int, *, held_out: bool) -> list[Problem]:
    return make_world(seed).problems(HELD_OUT if held_out else PAIRS, held_out=held_out)


@dataclass(frozen=True, slots=True)
class Shares:
    """A hybrid reward that also tells its parts as shares: `valid` is R_fmt + 1, `liked` is R_llm / 4, and `ordered`
    whether R_pref is 1, of valid rubrics only; `accuracy` is that of all."""

    inner: Reward

    async def __call__(self, rollout: Rollout, references: tuple[str, ...]) -> RolloutScore:
        score = await self.inner(rollout, references)
        told = dict(score.parts)
        if "format" in told:
            told["valid"] = 1 + told["format"]
        if "quality" in told:
            told["liked"] = told["quality"] / BEST
        if told.get("valid") and "accuracy" in told:
            told["ordered"] = told["accuracy"]
        return replace(score, parts=told)


REWARD = Shares(hybrid_reward(Judges(RewardConfig(), RoleConfig(Judge()))))
"""The recipe's own reward, with the paper's weights."""


def exam(seed: int) -> Reward:
    """The same, and how valid rubrics order many pairs."""
    return Tried(REWARD, tried_on(make_world(seed)))


def commands(seed: int) -> list[Command]:
    """Queries of readers about machines that nobody asked about in training."""
    here, held_out_commands = make_world(seed), []
    for problem in problems(seed, held_out=True)[:: HELD_OUT * 5][:ASKED]:
        reader, machine, _ = problem.id.split("-")
        cares = sorted(here.cares(reader, machine).items(), key=lambda care: -care[1])
        known = ", ".join(f"{name} {much}" for name, much in cares if much > 0)
        held_out_commands.append(Command(("rubric", problem.question), f"what people care for here: {known}"))
    return held_out_commands


MACHINES_DEMO = DemoRecipe(
    name="machines",
    about="GRPO of a rubric generator",
    recipe=RUBRIC,
    workflow=WORKFLOW,
    settings=settings_of,
    write=write_pairs,
    teacher=play_teacher,
    tokenizer=learn_tokenizer,
    varied=renamed,
    problems=problems,
    reward=REWARD,
    exam=exam,
    commands=commands,
    shape=SHAPE,
    sizes=DemoSizes(demonstrations=3, learning=150, updates=80, rate=3e-3),
    small=DemoSizes(demonstrations=1, learning=55, batch=12, updates=2, questions=2, attempts=4, exam=1, thin=4),
    examined="held-out pairs in the right order",
    curves={
        "pairs in the right order (R_pref is 1)": "reward/accuracy",
        "the judge's mark (R_llm, of 4)": "reward/liked",
        "valid rubrics (R_fmt is 0)": "reward/valid",
    },
    figures={
        "valid rubrics, temperature 1": ("sampled/valid",),
        "pairs that a valid rubric orders rightly, of 100, temperature 1": ("sampled/ordered",),
        "pairs that a valid rubric orders rightly, of 100, greedy": ("greedy/ordered",),
        "the judge's mark, of 4, temperature 1": ("sampled/liked",),
        "paired Cohen's d, temperature 1": ("sampled/d",),
        "paired Cohen's d, greedy": ("greedy/d",),
    },
    note="Learned above all: valid rubrics, and what the judge pays for. They order reports better by a few points.",
)

if __name__ == "__main__":
    sys.exit(run(MACHINES_DEMO))
