"""Judges of reports: item by item by a rubric, without one, and of rubrics themselves (rubrics paper, eq. 2, appendices
C.2 and C.12), and by RACE (appendix C.13). A judge that fails gives None, never 0: an unjudged report is not bad."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hira.agents.run_context import Conversation, RunContext
from hira.core.concurrency import together
from hira.core.prompts import Prompt
from hira.evaluation.rewards.answer_judge import ask_judge, fill_words
from hira.workflows.mams.rubrics import Rubric, RubricItem, Scores

RATE = Prompt(__file__, "rubric_rate")
QUALITY = Prompt(__file__, "rubric_quality")
POINTWISE = Prompt(__file__, "rubric_pointwise")
PAIRWISE = Prompt(__file__, "rubric_pairwise")
FAULTS = Prompt(__file__, "report_faults")


class ItemRating(BaseModel):
    reason: str = ""
    rating: int = Field(ge=1, le=10)


class Quality(BaseModel):
    """The quality of a rubric: `reward` from 0 to 4 (R_llm of eq. 1), the judge's confidence in percent, and its
    reason."""

    reason: str = ""
    reward: float = Field(ge=0, le=4)
    confidence: Annotated[int, Field(ge=0, le=100)] = 100


class ReportFaults(BaseModel):
    """The faults for which a report is no candidate (section 3.2), each a sentence; empty without any."""

    factual: str = ""
    citations: str = ""
    superficial: str = ""


class Better(BaseModel):
    reason: str = ""
    better: Literal["A", "B"]


async def score(context: RunContext, rubric: Rubric, query: str, report: str, under: str = "") -> Scores:
    """Score a report by a rubric: the role `judge` rates each item in a separate conversation, concurrently. `under`
    names the report, if one context scores several."""
    names = [f"{under}/{number}" if under else str(number) for number in range(1, len(rubric.items) + 1)]
    judges = [context.conversation("judge", name) for name in names]
    rated = zip(judges, rubric.items, strict=True)
    return Scores(rubric, tuple(await together([rate(judge, item, query, report) for judge, item in rated])))


async def score_pair(
    context: RunContext, rubric: Rubric, query: str, reports: tuple[str, ...]
) -> tuple[Scores, Scores]:
    first, second = await together(
        [score(context, rubric, query, report, name) for name, report in zip("ab", reports, strict=True)]
    )
    return first, second


async def rate(conversation: Conversation, item: RubricItem, query: str, report: str) -> int | None:
    """Return how far one item is true of a report, from 1 to 10, whether that is good or bad; None if the judge
    failed."""
    prompt = fill_words(RATE, query=query, title=item.title, criterion=item.criterion, report=report)
    rated = await ask_judge(conversation, prompt, ItemRating)
    return rated.rating if rated else None


async def quality(conversation: Conversation, query: str, rubric: Rubric) -> Quality | None:
    """Return the quality of a rubric for a query, independent of any report; None if the judge failed."""
    items = "\n".join(f"- {item.title} ({item.weight:+d}): {item.description}" for item in rubric.items)
    return await ask_judge(conversation, fill_words(QUALITY, query=query, rubric=items), Quality)


async def pointwise(conversation: Conversation, query: str, report: str) -> int | None:
    """Return the quality of a report without a rubric, from 1 to 10; None if the judge failed."""
    rated = await ask_judge(conversation, fill_words(POINTWISE, query=query, report=report), ItemRating)
    return rated.rating if rated else None


async def find_faults(conversation: Conversation, query: str, report: str) -> tuple[str, ...]:
    """Return the faults that keep a report from being shown to people; none if the judge failed."""
    found = await ask_judge(conversation, fill_words(FAULTS, query=query, report=report), ReportFaults)
    return tuple(filter(None, (found.factual, found.citations, found.superficial))) if found else ()


async def pairwise(
    conversation: Conversation, query: str, first: str, second: str
) -> Literal["first", "second"] | None:
    """Return which of two reports is better, in the order shown; None if the judge failed. Also ask in the other order
    to see whether the order decided."""
    prompt = fill_words(PAIRWISE, query=query, first=first, second=second)
    judged = await ask_judge(conversation, prompt, Better)
    return None if judged is None else "first" if judged.better == "A" else "second"


# RACE: a report against a reference, criterion by criterion (DeepResearch Bench, section 3.1). Each of four dimensions
# has weighted criteria for its query; a judge rates both reports on every criterion; the score is the target's share of
# both totals, so that 0.5 is as good as the reference.

RACE = Prompt(__file__, "race_rate")
BEST = 10


@dataclass(frozen=True, slots=True)
class Criterion:
    text: str
    explanation: str
    weight: float


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension, such as insight, with its weight in the total."""

    name: str
    weight: float
    criteria: tuple[Criterion, ...]


@dataclass(frozen=True, slots=True)
class Ratings:
    """The ratings of both reports in one dimension: from 0 to 10 for each criterion, in their order."""

    target: tuple[float, ...]
    reference: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Race:
    """The target's share by dimension and overall, each from 0 to 1."""

    dimensions: Mapping[str, float]
    overall: float


def criteria_of(value: Mapping[str, Any]) -> tuple[Dimension, ...]:
    """Return the criteria of a mapping in the benchmark's format: `dimension_weight` and `criterions` by dimension.
    Raises `ValueError` for a dimension without criteria or with weights that add up to nothing."""
    weights, criterions = value.get("dimension_weight"), value.get("criterions")
    if not isinstance(weights, Mapping) or not isinstance(criterions, Mapping) or not weights:
        raise ValueError("criteria have dimension_weight and criterions")
    dimensions = []
    for name, weight in weights.items():
        criteria = tuple(
            Criterion(str(criterion["criterion"]), str(criterion.get("explanation", "")), float(criterion["weight"]))
            for criterion in criterions.get(name, ())
        )
        if not criteria or not 0 < sum(criterion.weight for criterion in criteria) < math.inf:
            raise ValueError(f"the dimension {name!r} has no criteria with a weight")
        if not math.isfinite(float(weight)):
            raise ValueError(f"the dimension {name!r} has the weight {weight}")
        dimensions.append(Dimension(str(name), float(weight), criteria))
    return tuple(dimensions)


def race(dimensions: Sequence[Dimension], ratings: Mapping[str, Ratings]) -> Race:
    """Return the shares: within a dimension Σ w·rating / Σ w, over dimensions Σ weight · that, then target / (target +
    reference)."""
    total = against = 0.0
    shares = {}
    for dimension in dimensions:
        rated = ratings[dimension.name]
        target, reference = (_mean(dimension.criteria, marks) for marks in (rated.target, rated.reference))
        shares[dimension.name] = _share(target, reference)
        total += dimension.weight * target
        against += dimension.weight * reference
    return Race(shares, _share(total, against))


def _mean(criteria: Sequence[Criterion], ratings: Sequence[float]) -> float:
    earned = sum(criterion.weight * rating for criterion, rating in zip(criteria, ratings, strict=True))
    return earned / sum(criterion.weight for criterion in criteria)


def _share(target: float, reference: float) -> float:
    """Return the target's share; 0.5 if both are 0."""
    return target / (target + reference) if target + reference else 0.5


class _CriterionRating(BaseModel):
    number: int
    first: float = Field(ge=0, le=BEST)
    second: float = Field(ge=0, le=BEST)


class _WrittenRatings(BaseModel):
    ratings: list[_CriterionRating]


@cache
def _shape_ratings(criteria: int) -> type[_WrittenRatings]:
    """Return the record of the ratings of N criteria. Its schema has an entry for each, so that a small judge whose
    server enforces it leaves no criterion out and comes to an end."""
    rating = _CriterionRating.model_json_schema()
    entries = [
        {**rating, "properties": {**rating["properties"], "number": {"const": number}}}
        for number in range(1, criteria + 1)
    ]
    listed = {"type": "array", "prefixItems": entries, "minItems": criteria, "maxItems": criteria}

    class AllRatings(_WrittenRatings):
        model_config = ConfigDict(json_schema_extra=lambda schema: schema["properties"].update(ratings=listed))

    return AllRatings


async def judge_race(
    context: RunContext, query: str, dimensions: Sequence[Dimension], target: str, reference: str
) -> Race | None:
    """Return the race by the role `judge`, with one conversation per dimension, concurrently; None if one fails."""
    judges = [(context.conversation("judge", dimension.name), dimension) for dimension in dimensions]
    judged = await together([_dimension(judge, query, part, target, reference) for judge, part in judges])
    ratings = {dimension.name: rated for dimension, rated in zip(dimensions, judged, strict=True) if rated}
    return race(dimensions, ratings) if len(ratings) == len(dimensions) else None


async def _dimension(
    conversation: Conversation, query: str, dimension: Dimension, target: str, reference: str
) -> Ratings | None:
    wanted = list(range(1, len(dimension.criteria) + 1))

    def wrong(read: _WrittenRatings) -> str:
        numbers = sorted(rating.number for rating in read.ratings)
        return "" if numbers == wanted else f"Rate each of the criteria 1 to {len(wanted)} once."

    listed = [f"{number}. {part.text}: {part.explanation}" for number, part in enumerate(dimension.criteria, 1)]
    criteria, name = "\n".join(listed), dimension.name.replace("_", " ")
    shown = {"query": query, "dimension": name, "criteria": criteria, "best": BEST}
    prompt = fill_words(RACE, **shown, first=target, second=reference)
    read = await ask_judge(conversation, prompt, _shape_ratings(len(dimension.criteria)), wrong=wrong)
    if read is None:
        return None
    ordered = sorted(read.ratings, key=lambda rating: rating.number)
    return Ratings(tuple(pair.first for pair in ordered), tuple(pair.second for pair in ordered))
