"""Ways of saying which of two reports is better: by a rubric of the query, by general rubrics, by a score for each
report, by showing both (the baselines of section 4.1)."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Literal

from hira.agents.rubrics.rubric import Rubric
from hira.agents.rubrics.writer import generate
from hira.agents.run_context import RunContext, together
from hira.agents.trajectory import Rollout
from hira.core.concurrency import map_concurrently
from hira.core.errors import DialectError
from hira.evaluation.preferences.pairs import Pair
from hira.evaluation.rewards.report import GENERAL
from hira.evaluation.rewards.rubric_judge import pairwise, pointwise, score

Way = Callable[[RunContext, Pair], Awaitable[float | None]]
"""The margin of the accepted report over the rejected one; None if it cannot be had."""
Generator = Callable[[RunContext, str], Awaitable[Rubric | None]]
SIGNS = frozenset({"pairwise"})
"""Ways whose margins are signs and no differences of scores."""


async def write_rubric(team: RunContext, query: str) -> Rubric | None:
    """The rubric that the role `rubric` writes for the query."""
    try:
        return await generate(team.conversation("rubric"), query)
    except DialectError:
        return None


async def general(team: RunContext, query: str) -> Rubric | None:
    del team, query
    return GENERAL


def by_rubric(generator: Generator) -> Way:
    async def margin(team: RunContext, pair: Pair) -> float | None:
        rubric = await generator(team, pair.query)
        if rubric is None:
            return None
        reports = (("a", pair.accepted), ("b", pair.rejected))
        accepted, rejected = await together([score(team, rubric, pair.query, one, name) for name, one in reports])
        if accepted.normalised is None or rejected.normalised is None:
            return None
        return accepted.normalised - rejected.normalised

    return margin


async def by_points(team: RunContext, pair: Pair) -> float | None:
    """Each report has a rating of its own, from 1 to 10, on the line from 0 to 1."""
    conversations = [team.conversation("judge", name) for name in "ab"]
    reports = (pair.accepted, pair.rejected)
    accepted, rejected = await together(
        [pointwise(one, pair.query, report) for one, report in zip(conversations, reports, strict=True)]
    )
    return None if accepted is None or rejected is None else (accepted - rejected) / 9


async def by_pair(team: RunContext, pair: Pair) -> float | None:
    """Both are shown, in both orders: 1 or -1 where the verdicts agree, 0 where the order decided."""
    first, second = [team.conversation("judge", name) for name in "ab"]
    told: list[Literal["first", "second"] | None] = await together(
        [
            pairwise(first, pair.query, pair.accepted, pair.rejected),
            pairwise(second, pair.query, pair.rejected, pair.accepted),
        ]
    )
    if None in told:
        return None
    return ((told[0] == "first") - (told[0] == "second") + (told[1] == "second") - (told[1] == "first")) / 2


WAYS: dict[str, Way] = {
    "general": by_rubric(general),
    "pointwise": by_points,
    "pairwise": by_pair,
    "rubric": by_rubric(write_rubric),
}


async def margins(
    way: Way, pairs: Sequence[Pair], team: RunContext, concurrency: int = 8
) -> AsyncGenerator[tuple[str, float | None], None]:
    """The margin of each pair by its id, as they come; each pair has a team of its own."""

    async def one(pair: Pair) -> tuple[str, float | None]:
        own = RunContext(team.cast, Rollout("", pair.query, "preferences"), budget=team.budget, events=team.events)
        return pair.id, await way(own, pair)

    async with aclosing(map_concurrently(pairs, concurrency, one)) as found:
        async for each in found:
            yield each
