"""The world of the rubric demo: readers who want to know certain things, machines of which certain things matter, and
pairs of reports of which a reader preferred one.

What a report has to tell is what its reader cares for and what matters of that kind of machine. Queries of some
readers about some kinds are held out: what they call for is known from other queries, and has to be put together.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import exp

from hira.trainers.rollouts import Problem

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
        said = [FIGURE.format(one) if far == 1 else PASSING.format(one) for one, far in self.treats.items() if far]
        return f"# {self.subject}\n\n{' '.join([*said, *(FLAW.format(one) for one in sorted(self.flaws))])}"


FIGURE, PASSING, FLAW = "The {} is given by a figure [1].", "The {} is told in passing.", "This sentence is {}."


@dataclass(frozen=True)
class World:
    """What matters of each kind of machine. What a reader cares for is added to it."""

    seed: int
    machines: Mapping[str, Mapping[str, int]]

    def cares(self, reader: str, machine: str) -> dict[str, int]:
        """What matters in a report on such a machine for such a reader, with how much; flaws less than nothing."""
        found: dict[str, int] = {}
        for part in (READERS[reader], self.machines[machine]):
            for one, much in part.items():
                found[one] = found.get(one, 0) + much
        return found | dict.fromkeys(FLAWS, -OF_FLAW)

    def worth(self, report: Report, reader: str, machine: str) -> float:
        cares = self.cares(reader, machine)
        flawed = sum(cares[one] for one in report.flaws)
        return flawed + sum(cares.get(one, 0) * far for one, far in report.treats.items())

    def combinations(self, *, held_out: bool) -> list[tuple[str, str]]:
        """Readers with kinds of machines: three quarters to train on, a quarter held out, each of both in either."""
        return [
            (reader, machine)
            for (at, reader), (other, machine) in product(enumerate(READERS), enumerate(MACHINES))
            if ((at + other + self.seed) % 4 == 0) is held_out
        ]

    def problems(self, times: int, *, held_out: bool) -> list[Problem]:
        """So many pairs for each combination. The references are the report that was preferred, then the other."""
        edge = len(NAMES) * 3 // 4
        names = NAMES[edge:] if held_out else NAMES[:edge]
        chance = random.Random(f"{self.seed} {held_out}")  # noqa: S311 - pairs that can be made again
        return [
            self._pair(f"{reader}-{machine}-{at}", chance.choice(names), reader, machine, chance)
            for reader, machine in self.combinations(held_out=held_out)
            for at in range(times)
        ]

    def _pair(self, id_: str, name: str, reader: str, machine: str, chance: random.Random) -> Problem:
        apart = 0.0
        while abs(apart) < CLEAR:
            levels = chance.choices(*zip(*LEVELS, strict=True), k=len(ASPECTS))
            one, other = (_report(f"The {machine} {name}", levels, chance) for _ in range(2))
            apart = self.worth(one, reader, machine) - self.worth(other, reader, machine)
        likely = 1 / (1 + exp(-apart / DOUBT))
        accepted, rejected = (one, other) if chance.random() < likely else (other, one)
        return Problem(id_, asked(reader, machine, name), (accepted.text, rejected.text))


def asked(reader: str, machine: str, name: str) -> str:
    """The query."""
    return f"Write a report on the {machine} {name} for the {reader}."


def made(seed: int) -> World:
    """A world of that seed."""
    chance = random.Random(seed)  # noqa: S311 - a world that can be made again
    machines = {one: dict(zip(chance.sample(ASPECTS, len(OF_MACHINE)), OF_MACHINE, strict=True)) for one in MACHINES}
    return World(seed, machines)


def _report(subject: str, levels: Sequence[float], chance: random.Random) -> Report:
    """A report of that many figures and passing words, about whichever aspects, in any order."""
    order = chance.sample(ASPECTS, len(ASPECTS))
    flaws = frozenset(one for one in FLAWS if chance.random() < FLAWED)
    return Report(subject, dict(zip(order, chance.sample(levels, len(levels)), strict=True)), flaws)
