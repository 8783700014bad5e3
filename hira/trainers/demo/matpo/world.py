"""The world of the demo: people, towns, rivers and hills, told in documents; questions that take two documents each."""

import random
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from hira.trainers.rollouts import Problem

PEOPLE = (
    "Adela Bertil Corin Dagny Eskil Fenja Gorm Hedvig Ivar Jorun Kettil Liv "
    "Magnus Nanna Orm Petra Quirin Runa Sigurd Torun Ulf Vigdis Wenzel Ylva"
).split()
TOWNS = (
    "Aldrum Brevik Calden Dorsten Elmshag Farlund Grindal Holmsey Isfeld Jarrow Kolmar Lunden "
    "Melby Norvik Ostrand Pelham Querum Rossby Selje Tarnow Ulvik Vardal Wexham Zehden"
).split()
RIVERS = "Arle Brenta Cress Dovra Eider Fulda Glomma Havel Isna Jagst Kocher Lahn".split()
HILLS = "Askfell Birka Croft Durrfell Ettinger Frauen Galten Horgen Ilmfell Jura Kalven Lochnar".split()
KINDS: tuple[tuple[str, ...], ...] = (tuple(PEOPLE), tuple(TOWNS), tuple(RIVERS), tuple(HILLS))
"""Names by kind: within one, any name may stand for any other."""

LINKS = {"born": "was born", "works": "works"}
THINGS = {"river": "flows through", "hill": "stands above"}


@dataclass(frozen=True, slots=True)
class World:
    """Who was born and works where, and what river and hill each town has. The last quarter of the people is held
    out: nobody asks about them in training."""

    town: dict[tuple[str, str], str]
    thing: dict[tuple[str, str], str]

    def documents(self) -> dict[str, str]:
        """A page for each person and each town, by the file's name."""
        people = {
            one: f"{one} was born in {self.town[one, 'born']}. {one} works in {self.town[one, 'works']}."
            for one in PEOPLE
        }
        towns = {
            one: f"{one} lies on the river {self.thing[one, 'river']}. "
            f"{one} lies below the hill {self.thing[one, 'hill']}."
            for one in TOWNS
        }
        return {f"{name}.md": f"# {name}\n\n{text}\n" for name, text in (people | towns).items()}

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in self.documents().items():
            folder.joinpath(name).write_text(text, encoding="utf-8")

    def problems(self, *, held_out: bool) -> list[Problem]:
        """The questions of training, or those about the people who are held out."""
        edge = len(PEOPLE) * 3 // 4
        people = PEOPLE[edge:] if held_out else PEOPLE[:edge]
        return [
            Problem(f"{person}-{link}-{thing}", asked(person, link, thing), (self.answer(person, link, thing),))
            for person, link, thing in product(people, LINKS, THINGS)
        ]

    def answer(self, person: str, link: str, thing: str) -> str:
        return self.thing[self.town[person, link], thing]


def asked(person: str, link: str, thing: str) -> str:
    """The question, of two hops: from the person to a town, from the town to what it has."""
    return f"Which {thing} {THINGS[thing]} the town where {person} {LINKS[link]}?"


def made(seed: int) -> World:
    """A world of that seed. Nobody works where they were born."""
    chance = random.Random(seed)  # noqa: S311 - a world that can be made again
    town: dict[tuple[str, str], str] = {}
    for one in PEOPLE:
        town[one, "born"], town[one, "works"] = chance.sample(TOWNS, 2)
    things = {"river": RIVERS, "hill": HILLS}
    thing = {(one, kind): chance.choice(names) for one in TOWNS for kind, names in things.items()}
    return World(town, thing)
