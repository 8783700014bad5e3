"""The judge of the rubric demo: a program and no language model. It reads the real prompts and answers in their form.

Items are rated by what a report says of what they name. Rubrics are judged by a taste of its own, which people share in
part: it knows what readers want, and nothing of kinds of machines.
"""

import json
import re

from hira.core.policy import Completion, Request, Watch
from hira.policies.offline.request import Asked, read_request
from hira.trainers.demo.rubric.world import ASPECTS, FIGURE, FLAW, FLAWS, PASSING, READERS

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


def judged(seen: Asked) -> dict[str, object]:
    """From 0 to 4: up to 3 for what the reader wants, half a point each for a fault and for a weight of 5."""
    items = [(int(weight), subject(text)) for weight, text in _ITEM.findall(seen.value("rubric"))]
    reader = _READER.search(seen.value("query"))
    wants = READERS[reader[0]].keys() if reader else frozenset()
    named = {about for weight, about in items if weight > 0}
    weights = {weight for weight, _ in items}
    covered = len(named & wants) / len(wants) if wants else 0.0
    form = (min(weights, default=0) < 0) + (5 in weights)
    return {"reason": "by what it names", "reward": 3 * covered + form / 2, "confidence": 100}


def rated(seen: Asked) -> dict[str, object]:
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
    found = _SUBJECT.search(text)
    return found[0] if found else ""
