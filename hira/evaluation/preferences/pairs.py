"""Preference data: JSON lines with a query, the report that people accepted, and the one that they rejected."""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hira.core.errors import UsageError
from hira.evaluation.files import rows_of

NEEDED = ("query", "accepted", "rejected")
SHARES = (8, 1, 1)
"""Of training, validation and test (section 4.1)."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A triple (q, r_acc, r_rej). `topic` is what splits are balanced by."""

    id: str
    query: str
    accepted: str
    rejected: str
    topic: str = ""


def pairs_of(path: Path) -> list[Pair]:
    """The pairs of a file. Raises `UsageError`, with its row, for one that lacks a part or prefers a report to
    itself."""
    found: dict[str, Pair] = {}
    for at, row in enumerate(rows_of(path), 1):
        where = f"row {at} of {path}"
        parts = [str(row.get(name) or "").strip() for name in NEEDED]
        if not all(parts):
            missing = NEEDED[parts.index("")]
            raise UsageError(f"there is no {missing!r}", where=where, fix=f"each needs {', '.join(NEEDED)}")
        if parts[1] == parts[2]:
            raise UsageError("accepted and rejected are the same report", where=where, fix="remove the row")
        name = str(row.get("id") or at)
        if name in found:
            raise UsageError(f"the id {name!r} is used twice", where=where, fix="give each pair its own, or none")
        found[name] = Pair(name, parts[0], parts[1], parts[2], str(row.get("topic") or ""))
    if not found:
        raise UsageError("there are no preferences", where=f"in {path}")
    return list(found.values())


def split(pairs: Sequence[Pair], shares: Sequence[int] = SHARES, *, seed: int = 0) -> list[list[Pair]]:
    """The pairs in parts of these shares, each topic shared out alike; pairs of one query stay together, so that no
    part has seen the queries of another."""
    topics: dict[str, dict[str, list[Pair]]] = defaultdict(lambda: defaultdict(list))
    for pair in pairs:
        topics[pair.topic][pair.query].append(pair)
    parts: list[list[Pair]] = [[] for _ in shares]
    chance = random.Random(seed)
    for topic in sorted(topics):
        queries = sorted(topics[topic])
        chance.shuffle(queries)
        held = [0.0] * len(shares)
        for query in queries:
            at = min(range(len(shares)), key=lambda one: ((held[one] + 1) / shares[one], one))
            held[at] += 1
            parts[at] += topics[topic][query]
    order = {pair.id: at for at, pair in enumerate(pairs)}
    return [sorted(part, key=lambda pair: order[pair.id]) for part in parts]
