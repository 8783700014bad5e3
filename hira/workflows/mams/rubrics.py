"""Rubrics for reports: weighted items of one query, what makes them valid, and how ratings become a score (Lv and
others, "Learning Query-Specific Rubrics from Human Preferences for DeepResearch Report Generation", section 3.3).

`generate` asks a model for a rubric, `hira.evaluation.rewards.report_judge` for ratings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from hira.agents.record import ask_for_record
from hira.agents.run_context import Conversation
from hira.core.messages import user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.evidence.references import language

FEWEST, MOST = 7, 20
WORST, BEST = 1, 10
"""Of a rating, on the scale that a judge is given (eq. 2)."""

Kind = Literal["key", "important", "optional", "error"]
PREFIXES: Mapping[Kind, tuple[str, ...]] = {
    "key": ("key criterion", "关键标准"),
    "important": ("important criterion", "重要标准"),
    "optional": ("optional criterion", "可选标准"),
    "error": ("error criterion", "错误标准"),
}
"""The prefixes of an item's description, each before a colon (appendix C.1)."""
WEIGHTS: Mapping[Kind, tuple[int, ...]] = {"key": (5,), "important": (3, 4), "optional": (1, 2), "error": (-1, -2)}
"""The weights that an item of a kind may have (appendix C.1, "Category Definitions")."""
KEYS = frozenset({"title", "description", "weight"})


@dataclass(frozen=True, slots=True)
class RubricItem:
    """One thing to look for in a report. A negative weight is that of a fault that should not be found."""

    title: str
    description: str
    weight: int

    @property
    def kind(self) -> Kind | None:
        """The kind that the description names, None if it names none."""
        head = self.description.replace("：", ":").partition(":")[0].strip(" *\"'‘’“”「」").casefold()
        return next((kind for kind, prefixes in PREFIXES.items() if head in prefixes), None)

    @property
    def criterion(self) -> str:
        """The description without its prefix."""
        if self.kind is None:
            return self.description
        return self.description.replace("：", ":", 1).partition(":")[2].strip(" *")


@dataclass(frozen=True, slots=True)
class Rubric:
    """The items for one query. `of` makes one only of what is valid."""

    items: tuple[RubricItem, ...]

    @property
    def weights(self) -> tuple[int, ...]:
        return tuple(item.weight for item in self.items)

    @classmethod
    def of(cls, value: object) -> "Rubric":
        """The rubric in a list of objects as JSON has them, or in an object that holds one as its `items`. Raises
        `ValueError` with all that is wrong with it."""
        value = value.get("items") if isinstance(value, Mapping) else value
        if wrong := faults(value):
            raise ValueError("; ".join(wrong))
        assert isinstance(value, list)  # noqa: S101 - faults() has looked
        return cls(
            tuple(
                RubricItem(entry["title"].strip(), entry["description"].strip(), int(entry["weight"]))
                for entry in value
            )
        )

    def json(self) -> list[dict[str, Any]]:
        return [{"title": item.title, "description": item.description, "weight": item.weight} for item in self.items]


def faults(value: object) -> list[str]:
    """Describe what keeps a value from being a rubric, one line each, for its author; empty for a valid one.

    A valid rubric has 7 to 20 items of exactly title, description and weight, each with one of the prefixes and a
    weight that fits it, no title twice, and a positive sum of the positive weights.
    """
    if not isinstance(value, list):
        return ["a rubric is a list of items"]
    faults_seen = [] if FEWEST <= len(value) <= MOST else [f"there are {len(value)} items; write {FEWEST} to {MOST}"]
    faults_seen += [f"item {place}: {fault}" for place, entry in enumerate(value, 1) if (fault := _find_fault(entry))]
    titles = [
        entry["title"].strip().casefold() for entry in value if isinstance(entry, Mapping) and _text(entry.get("title"))
    ]
    faults_seen += [f"the title {title!r} is used twice" for title in dict.fromkeys(titles) if titles.count(title) > 1]
    weights = [entry["weight"] for entry in value if isinstance(entry, Mapping) and _number(entry.get("weight"))]
    if not faults_seen and sum(weight for weight in weights if weight > 0) <= 0:
        faults_seen.append("no item has a positive weight; a report must be able to earn something")
    return faults_seen


def _find_fault(entry: object) -> str:
    """Describe the fault in the shape of an item, or else that of its content; empty if it has none."""
    if not isinstance(entry, Mapping):
        return "it is not an object"
    if set(entry) != KEYS:
        return f"its keys are {', '.join(sorted(map(str, entry))) or 'none'}; they must be title, description, weight"
    if not _text(entry["title"]) or not _text(entry["description"]):
        return "title and description must be non-empty strings"
    if not _number(entry["weight"]):
        return f"its weight is {entry['weight']!r}; it must be an integer"
    return _find_misfit(RubricItem(entry["title"], entry["description"], int(entry["weight"])))


def _find_misfit(item: RubricItem) -> str:
    if item.kind is None:
        return f"its description begins with none of {', '.join(f'{kind.title()} Criterion:' for kind in PREFIXES)}"
    if not item.criterion:
        return "its description has nothing after the prefix"
    if item.weight in WEIGHTS[item.kind]:
        return ""
    allowed = " or ".join(map(str, WEIGHTS[item.kind]))
    return f"its weight is {item.weight}, but one that begins with {item.kind.title()} Criterion weighs {allowed}"


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _number(value: object) -> bool:
    """Return whether the value is a whole number, including `5.0` but neither True nor False."""
    return not isinstance(value, bool) and isinstance(value, int | float) and value == value // 1


def value_of(rating: int) -> float:
    """v of eq. 2: a rating of 1 to 10 on the line from 0 to 1."""
    if not WORST <= rating <= BEST:
        raise ValueError(f"a rating is from {WORST} to {BEST}, not {rating}")
    return (rating - WORST) / (BEST - WORST)


def weighted_mean(weights: Sequence[float], values: Sequence[float]) -> float:
    """S exactly as in eq. 2: Σ w·v / Σ w.

    With negative weights it is no longer a mean: weights 5, 5, 4, -2, -1 give 1.27 to a perfect report. It is undefined
    for Σ w = 0 (`ValueError`), and for Σ w < 0 it prefers the worse report. `normalised` has neither fault.
    """
    total = sum(weights)
    if total == 0:
        raise ValueError("the weights add up to 0, for which eq. 2 has no value")
    return _sum_weighted(weights, values) / total


def normalise_score(weights: Sequence[float], values: Sequence[float]) -> float:
    """A score from 0 to 1 for any weights: (Σ w·v - Σ_{w<0} w) / Σ |w|.

    1 where all that is wanted is there and no fault is, 0 for the opposite. It grows with Σ w·v, so that it orders two
    reports as eq. 2 does wherever Σ w > 0. `ValueError` if no weight differs from 0.
    """
    size = sum(map(abs, weights))
    if size == 0:
        raise ValueError("all weights are 0, so nothing can be earned")
    return (_sum_weighted(weights, values) - sum(weight for weight in weights if weight < 0)) / size


def _sum_weighted(weights: Sequence[float], values: Sequence[float]) -> float:
    return sum(weight * value for weight, value in zip(weights, values, strict=True))


@dataclass(frozen=True, slots=True)
class Scores:
    """A report by a rubric: a rating from 1 to 10 for each item, None where the judge failed.

    A score is None if any rating is: reports are compared by all items or not at all, and no failure counts as 0.
    """

    rubric: Rubric
    ratings: tuple[int | None, ...]

    @property
    def values(self) -> tuple[float, ...] | None:
        """v of each item, None if one is missing."""
        known = [value_of(rating) for rating in self.ratings if rating is not None]
        return tuple(known) if len(known) == len(self.ratings) else None

    @property
    def weighted_mean(self) -> float | None:
        """Eq. 2; also None where it is not defined."""
        if self.values is None or not sum(self.rubric.weights):
            return None
        return weighted_mean(self.rubric.weights, self.values)

    @property
    def normalised(self) -> float | None:
        return None if self.values is None else normalise_score(self.rubric.weights, self.values)


WRITER = "rubric"
"""The role that writes rubrics."""
GENERATE = Prompt(__file__, "rubric_generate")


class WrittenRubric(BaseModel):
    """A rubric as a model writes it. One object, because servers hold a model to a schema of an object, not of a list;
    what its items lack is for `faults` to say."""

    model_config = ConfigDict(extra="forbid")
    items: list[dict[str, Any]]


async def generate(conversation: Conversation, query: str) -> Rubric:
    """The rubric that the role writes for the query; one that is not valid is asked for once more, with all its faults.

    Raises `DialectError` if the second is not valid either.
    """
    prompt = GENERATE.fill(query=sanitize(query), fewest=FEWEST, most=MOST, language=language(query))
    written = await ask_for_record(
        conversation, user(prompt), WrittenRubric, wrong=lambda rubric: "; ".join(faults(rubric.items))
    )
    return Rubric.of(written.items)
