"""People's preferences between two reports, and how well a way of scoring reports agrees with them (rubrics paper,
sections 3.2 and 4.1, appendix E)."""

import math
import random
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hira.agents.run_context import RunContext
from hira.core.concurrency import together
from hira.core.errors import DialectError, UsageError, did_you_mean
from hira.core.window import CONCURRENCY, map_concurrently
from hira.evaluation.files import require_columns, rows_of
from hira.evaluation.record import Record, read
from hira.evaluation.report import format_table
from hira.evaluation.rewards.report_judge import find_faults, pairwise, pointwise, score_pair
from hira.evaluation.rewards.rubrics import write_general
from hira.evaluation.run import RECORDS
from hira.evaluation.scorers import begin_judgement, open_judge
from hira.evaluation.statistics import Interval, bootstrap, cohens_d, wilson
from hira.runtime.settings import Settings
from hira.workflows.mams.rubrics import Rubric, generate

NEEDED = ("query", "accepted", "rejected")
SHARES = (8, 1, 1)
"""The ratio of training, validation and test (section 4.1)."""


@dataclass(frozen=True, slots=True)
class Preference:
    """A triple (q, r_acc, r_rej). Splits are balanced by `topic`."""

    id: str
    query: str
    accepted: str
    rejected: str
    topic: str = ""


def pairs_of(path: Path) -> list[Preference]:
    """Return the pairs of a file. Raises `UsageError` with the row of a pair that lacks a part or has the same report
    twice."""
    by_id: dict[str, Preference] = {}
    for number, row in enumerate(rows_of(path), 1):
        where = f"row {number} of {path}"
        preferred = str(row.get("preferred")).strip().lower()
        order = {"first": ("first", "second"), "second": ("second", "first")}.get(preferred)
        columns = {**row, "accepted": row.get(order[0]), "rejected": row.get(order[1])} if order else row
        query, accepted, rejected = require_columns(columns, NEEDED, where)
        if accepted == rejected:
            raise UsageError("accepted and rejected are the same report", where=where, fix="remove the row")
        name = str(row.get("id") or number)
        if name in by_id:
            raise UsageError(f"the id {name!r} is used twice", where=where, fix="give each pair its own, or none")
        by_id[name] = Preference(name, query, accepted, rejected, str(row.get("topic") or ""))
    if not by_id:
        raise UsageError("there are no preferences", where=f"in {path}")
    return list(by_id.values())


def split(pairs: Sequence[Preference], shares: Sequence[int] = SHARES, *, seed: int = 0) -> list[list[Preference]]:
    """Split the pairs by these shares, with each topic split alike; pairs of one query stay together, so that no part
    has a query of another."""
    topics: dict[str, dict[str, list[Preference]]] = defaultdict(lambda: defaultdict(list))
    for pair in pairs:
        topics[pair.topic][pair.query].append(pair)
    parts: list[list[Preference]] = [[] for _ in shares]
    chance = random.Random(seed)
    for topic in sorted(topics):
        queries = sorted(topics[topic])
        chance.shuffle(queries)
        held = [0.0] * len(shares)
        for query in queries:
            smallest = min(range(len(shares)), key=lambda part: ((held[part] + 1) / shares[part], part))
            held[smallest] += 1
            parts[smallest] += topics[topic][query]
    order = {pair.id: index for index, pair in enumerate(pairs)}
    return [sorted(part, key=lambda pair: order[pair.id]) for part in parts]


@dataclass(frozen=True, slots=True)
class Effect:
    """The paired Cohen's d. `low` or `high` is None if d has no such bound, because in too many draws of the bootstrap
    all margins are equal."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class OrderAgreement:
    """The agreement of a way of scoring with people."""

    way: str
    pairs: int
    unscored: int
    """The number of pairs without a margin, which are in no other figure."""
    ties: int
    """They count as wrong."""
    accuracy: Interval | None
    """The share of pairs whose accepted report has the higher score. The paper calls it AUC, which it equals only
    without ties."""
    auc: float | None
    """The same with a tie as a half."""
    d: Effect | None
    """The paired Cohen's d; None for a way without scores, and if all margins are equal."""


def agreement(way: str, margins: Sequence[float | None], *, scored: bool = True, draws: int = 2_000) -> OrderAgreement:
    """Return the figures of margins S(accepted) - S(rejected), None for a report without a score. `scored` is False if
    margins are only signs. The intervals are Wilson's and, of d, the percentile bootstrap's."""
    known = [margin for margin in margins if margin is not None]
    ties = sum(margin == 0 for margin in known)
    right = sum(margin > 0 for margin in known)
    if not known:
        return OrderAgreement(way, len(margins), len(margins), 0, None, None, None)
    effect = None
    if scored and len(known) > 1:
        d = bootstrap(known, cohens_d, draws=draws)
        low, high = (bound if math.isfinite(bound) else None for bound in (d.low, d.high))
        effect = Effect(d.value, low, high) if math.isfinite(d.value) else None
    auc = (right + ties / 2) / len(known)
    return OrderAgreement(way, len(margins), len(margins) - len(known), ties, wilson(right, len(known)), auc, effect)


def format_agreements(agreements: Sequence[OrderAgreement]) -> str:
    """Format the figures as in the paper's Table 1, in Markdown, with ties and unscored pairs."""
    body = []
    for agreement in agreements:
        accuracy, effect = agreement.accuracy, agreement.d
        low = "−∞" if effect is None or effect.low is None else f"{effect.low:.2f}"
        high = "∞" if effect is None or effect.high is None else f"{effect.high:.2f}"
        cells = [
            agreement.way,
            f"{100 * accuracy.value:.2f}" if accuracy else "–",
            f"{100 * accuracy.low:.1f} to {100 * accuracy.high:.1f}" if accuracy else "–",
            f"{effect.value:.3f}" if effect else "–",
            f"{low} to {high}" if effect else "–",
            f"{agreement.ties} of {agreement.pairs - agreement.unscored}",
            str(agreement.unscored),
        ]
        body.append(cells)
    head = ["way of scoring", "Pref. Acc.", "95 %", "Cohen's d", "95 %", "ties", "unscored"]
    return "\n".join(format_table(head, body))


Way = Callable[[RunContext, Preference], Awaitable[float | None]]
"""Returns the margin of the accepted report over the rejected one; None if a judge or a generator fails."""
Generator = Callable[[RunContext, str], Awaitable[Rubric | None]]
"""Writes the rubric for a query; None if it cannot be read."""
SIGNS = frozenset({"pairwise"})
"""Ways whose margins are signs, not differences of scores."""


def by_rubric(generator: Generator) -> Way:
    """Score both reports by one rubric: S of eq. 2, on which eq. 7 is defined; None if there is no rubric or its
    weights add up to 0."""

    async def margin(context: RunContext, pair: Preference) -> float | None:
        rubric = await generator(context, pair.query)
        if rubric is None:
            return None
        accepted, rejected = await score_pair(context, rubric, pair.query, (pair.accepted, pair.rejected))
        if accepted.weighted_mean is None or rejected.weighted_mean is None:
            return None
        return accepted.weighted_mean - rejected.weighted_mean

    return margin


async def ask_for_rubric(context: RunContext, query: str) -> Rubric | None:
    try:
        return await generate(context.conversation("rubric"), query)
    except DialectError:
        return None


async def by_points(context: RunContext, pair: Preference) -> float | None:
    """Rate each report separately, from 1 to 10, scaled to 0 to 1."""
    judges = [context.conversation("judge", name) for name in "ab"]
    shown = zip(judges, (pair.accepted, pair.rejected), strict=True)
    accepted, rejected = await together([pointwise(judge, pair.query, report) for judge, report in shown])
    return None if accepted is None or rejected is None else (accepted - rejected) / 9


async def by_pair(context: RunContext, pair: Preference) -> float | None:
    """Compare both reports in both orders: 1 or -1 if the verdicts agree, 0 if the order decided."""
    first, second = [context.conversation("judge", name) for name in "ab"]
    verdicts: list[Literal["first", "second"] | None] = await together(
        [
            pairwise(first, pair.query, pair.accepted, pair.rejected),
            pairwise(second, pair.query, pair.rejected, pair.accepted),
        ]
    )
    if None in verdicts:
        return None
    return float(verdicts == ["first", "second"]) - float(verdicts == ["second", "first"])


WAYS: dict[str, Way] = {
    "general": by_rubric(lambda _, query: write_general(query)),
    "pointwise": by_points,
    "pairwise": by_pair,
    "rubric": by_rubric(ask_for_rubric),
}


async def margins(
    way: Way, pairs: Sequence[Preference], context: RunContext, concurrency: int = CONCURRENCY
) -> AsyncGenerator[tuple[str, float | None], None]:
    """Yield the id and the margin of each pair as they arrive; each pair has a separate run context."""

    async def measure_margin(pair: Preference) -> tuple[str, float | None]:
        return pair.id, await way(begin_judgement(context, pair.query), pair)

    async with aclosing(map_concurrently(pairs, concurrency, measure_margin)) as compared:
        async for each in compared:
            yield each


async def evaluate_preferences(
    path: Path, names: Sequence[str], settings: Settings, concurrency: int = CONCURRENCY
) -> list[OrderAgreement]:
    """Return the figures of each way over the pairs of a file; the role `judge` rates, the role `rubric` writes
    rubrics."""
    if strange := [name for name in names if name not in WAYS]:
        raise UsageError(f"unknown way of scoring {strange[0]!r}", fix=did_you_mean(strange[0], WAYS))
    pairs = pairs_of(path)
    agreements = []
    async with open_judge(settings, None) as context:
        for name in names or WAYS:
            known = {name: margin async for name, margin in margins(WAYS[name], pairs, context, concurrency)}
            agreements.append(agreement(name, [known[pair.id] for pair in pairs], scored=name not in SIGNS))
    return agreements


async def find_sound(records: Sequence[Record], settings: Settings) -> list[Record]:
    """Return the reports without an evident error of fact, an inconsistent citation or superficial aggregation, by the
    role `judge` (section 3.2). A report that the judge fails on stays: people still look at it."""
    async with open_judge(settings, None) as context:

        async def judge(record: Record) -> tuple[Record, bool]:
            conversation = begin_judgement(context, record.question).conversation("judge")
            faults = await find_faults(conversation, record.question, record.answer)
            return record, not faults

        async with aclosing(map_concurrently(records, CONCURRENCY, judge)) as judged:
            kept = {id(record) async for record, sound in judged if sound}
    return [record for record in records if id(record) in kept]


def read_reports(folders: Sequence[Path]) -> list[Record]:
    """Return the scored reports of evaluations; several vary hyper-parameters, each with its own settings."""
    records = [record for folder in folders for record in read(folder / RECORDS)]
    return [record for record in records if record.score.value is not None and record.answer.strip()]


def choose_candidates(reports: Sequence[Record]) -> list[dict[str, str]]:
    """Return the two best-scored reports for each query, for annotation: a person writes `first` or `second` into
    `preferred` (section 3.2, stages 2 and 3). Queries with fewer than two different reports are left out. Raises
    `UsageError` if none is left."""
    by_query: dict[str, list[Record]] = defaultdict(list)
    for record in reports:
        by_query[record.question].append(record)
    rows = []
    for query, records in by_query.items():
        ranked = sorted(records, key=lambda scored: -(scored.score.value or 0.0))
        best = list(dict.fromkeys(scored.answer for scored in ranked))[:2]
        random.Random(query).shuffle(best)
        if len(best) == 2:
            first, second = best
            rows.append({"id": records[0].id, "query": query, "first": first, "second": second, "preferred": ""})
    if not rows:
        fix = "ask with several models or --repeats 2, and --metric rubric, race or fact"
        raise UsageError("there is no query with two scored reports", fix=fix)
    return rows
