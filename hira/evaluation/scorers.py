"""Scorers by the names that `--metric` takes."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from hira.errors import UsageError
from hira.evaluation.metrics import exact_match, match
from hira.evaluation.run import Scorer
from hira.settings import Settings, did_you_mean

BY_WORDS: Mapping[str, Scorer] = {"match": match, "em": exact_match}
"""Scorers that need no model."""


@asynccontextmanager
async def scorer_of(metric: str, settings: Settings, judge: str | None) -> AsyncIterator[Scorer]:
    """The scorer of a metric; `judge` names the model that judges. Raises `UsageError` for a judge without a model."""
    del settings
    if metric not in BY_WORDS:
        raise UsageError(f"unknown metric {metric!r}", fix=did_you_mean(metric, BY_WORDS))
    if judge:
        raise UsageError(f"the metric {metric!r} asks no model", fix="leave out --judge, or choose a judge's metric")
    yield BY_WORDS[metric]
