"""RACE: a report against a reference, criterion by criterion (DeepResearch Bench, section 3.1).

Each of four dimensions has weighted criteria for its query; a judge rates both reports on every criterion; the score is
the target's share of both totals, so that 0.5 is as good as the reference.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field

from hira.agents.conversation import Conversation
from hira.agents.run_context import RunContext, together
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.evaluation.rewards.answer_judge import ask_judge

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

    Raises `ValueError` for a dimension without criteria or with weights that add up to nothing.
    """
    weights, criterions = value.get("dimension_weight"), value.get("criterions")
    if not isinstance(weights, Mapping) or not isinstance(criterions, Mapping) or not weights:
        raise ValueError("criteria have dimension_weight and criterions")
    found = []
    for name, weight in weights.items():
        own = tuple(
            Criterion(str(one["criterion"]), str(one.get("explanation", "")), float(one["weight"]))
            for one in criterions.get(name, ())
        )
        if not own or not 0 < sum(one.weight for one in own) < math.inf:
            raise ValueError(f"the dimension {name!r} has no criteria with a weight")
        if not math.isfinite(float(weight)):
            raise ValueError(f"the dimension {name!r} has the weight {weight}")
        found.append(Dimension(str(name), float(weight), own))
    return tuple(found)


def race(dimensions: Sequence[Dimension], ratings: Mapping[str, Ratings]) -> Race:
    """Return the shares: within a dimension Σ w·rating / Σ w, over dimensions Σ weight · that, then target / (target +
    reference)."""
    target = {one.name: _mean(one.criteria, ratings[one.name].target) for one in dimensions}
    reference = {one.name: _mean(one.criteria, ratings[one.name].reference) for one in dimensions}
    total = sum(one.weight * target[one.name] for one in dimensions)
    against = sum(one.weight * reference[one.name] for one in dimensions)
    shares = {one.name: _share(target[one.name], reference[one.name]) for one in dimensions}
    return Race(shares, _share(total, against))


def _mean(criteria: Sequence[Criterion], ratings: Sequence[float]) -> float:
    earned = sum(one.weight * rating for one, rating in zip(criteria, ratings, strict=True))
    return earned / sum(one.weight for one in criteria)


def _share(target: float, reference: float) -> float:
    """Return the target's share; 0.5 if both are 0."""
    return target / (target + reference) if target + reference else 0.5


class _CriterionRating(BaseModel):
    number: int
    first: float = Field(ge=0, le=BEST)
    second: float = Field(ge=0, le=BEST)


class _WrittenRatings(BaseModel):
    ratings: list[_CriterionRating]


async def judge_race(
    context: RunContext, query: str, dimensions: Sequence[Dimension], target: str, reference: str
) -> Race | None:
    """Return the race by the role `judge`, with one conversation per dimension, concurrently; None if one fails."""
    found = await together(
        [_dimension(context.conversation("judge", one.name), query, one, target, reference) for one in dimensions]
    )
    ratings = {one.name: rated for one, rated in zip(dimensions, found, strict=True) if rated}
    return race(dimensions, ratings) if len(ratings) == len(dimensions) else None


async def _dimension(
    conversation: Conversation, query: str, dimension: Dimension, target: str, reference: str
) -> Ratings | None:
    wanted = set(range(1, len(dimension.criteria) + 1))

    def wrong(read: _WrittenRatings) -> str:
        numbers = [one.number for one in read.ratings]
        return "" if sorted(numbers) == sorted(wanted) else f"Rate each of the criteria 1 to {len(wanted)} once."

    listed = "\n".join(f"{at}. {one.text}: {one.explanation}" for at, one in enumerate(dimension.criteria, 1))
    shown = {
        "query": sanitize(query),
        "dimension": sanitize(dimension.name.replace("_", " ")),
        "criteria": sanitize(listed),
    }
    prompt = RACE.fill(**shown, first=sanitize(target), second=sanitize(reference), best=BEST)
    read = await ask_judge(conversation, prompt, _WrittenRatings, wrong=wrong)
    if read is None:
        return None
    ordered = sorted(read.ratings, key=lambda one: one.number)
    return Ratings(tuple(one.first for one in ordered), tuple(one.second for one in ordered))
