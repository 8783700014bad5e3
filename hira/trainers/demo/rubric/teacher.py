"""The teacher of the rubric demo: writes rubrics in the workflow's own form, and guesses what they should ask for.

Its lessons teach a model what a rubric is, and the teacher's faults with it: half of what it asks for matters to nobody
who reads such a report, weights are guessed, and a third of its rubrics is not valid. What reinforcement has to find
out is what to ask for, how much it counts, and to write it without a fault.
"""

import json
import random
from dataclasses import dataclass

from hira.agents.rubrics.rubric import WEIGHTS, Kind
from hira.core.policy import Completion, Request, Watch
from hira.trainers.demo.rubric.world import ASPECTS, FLAWS

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

    model = "teacher"

    def __init__(self, chance: random.Random, cares: dict[str, int], faults: Faults) -> None:
        self.chance = chance
        self.cares = [one for one, much in cares.items() if much > 0]
        self.faults = faults

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        del request, watch
        return Completion(written(self.items()), model=self.model)

    async def aclose(self) -> None:
        """There is nothing to let go of."""

    def items(self) -> list[dict[str, object]]:
        """Six to nine aspects, always in the same order, and a flaw."""
        chance = self.chance
        many = 5 if self._fails(self.faults.few) else chance.randint(6, 9)
        other = [one for one in ASPECTS if one not in self.cares]
        subjects: list[str] = []
        for _ in range(many):
            known = [one for one in (other if self._fails(self.faults.beside) else self.cares) if one not in subjects]
            subjects.append(chance.choice(known or [one for one in ASPECTS if one not in subjects]))
        if self._fails(self.faults.twice):
            subjects[-1] = subjects[0]
        subjects.sort(key=ASPECTS.index)
        return [self._item(one, chance.choice(KINDS)) for one in subjects] + [self._item(chance.choice(FLAWS), "error")]

    def _item(self, subject: str, kind: Kind) -> dict[str, object]:
        kinds = [one for one in WEIGHTS if one != kind] if self._fails(self.faults.weighed) else [kind]
        return item(subject, kind, self.chance.choice(WEIGHTS[self.chance.choice(kinds)]))

    def _fails(self, often: float) -> bool:
        return self.chance.random() < often


def item(subject: str, kind: Kind, weight: int) -> dict[str, object]:
    said = f"The report has {subject}." if kind == "error" else f"The report gives the {subject} by a figure."
    return {
        "title": f"{'Without' if kind == 'error' else 'Tells of'} {subject}",
        "description": f"{kind.title()} Criterion: {said}",
        "weight": weight,
    }


def written(items: list[dict[str, object]]) -> str:
    """The rubric as a reply, an item a line."""
    return '{"items": [\n' + ",\n".join(map(json.dumps, items)) + "\n]}"
