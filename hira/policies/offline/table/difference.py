"""The difference between two cells or columns: "more in 2022 than in 2021", "rose from May to June"."""

import re
from collections.abc import Iterator

from hira.policies.offline.table.cells import TOKEN, number
from hira.policies.offline.table.reading import understanding
from hira.policies.offline.table.rows import Row, Rows

_COMPARED = re.compile(
    r"\b(?:more|fewer|less|greater|higher|larger|bigger|longer|lower|smaller|shorter|heavier|lighter|taller|deeper|wider"
    r"|dearer|cheaper)\b",
    re.IGNORECASE,
)
_MEASURES = {
    "longer": "long", "shorter": "long", "heavier": "heavy", "lighter": "heavy", "taller": "tall", "deeper": "deep",
    "wider": "wide", "dearer": "cost", "cheaper": "cost",
}  # fmt: skip
_BY = re.compile(r"\bby how\b", re.IGNORECASE)
_THAN = re.compile(r"^(?P<head>.+?),? than (?P<tail>.+)$", re.IGNORECASE)
_MOVED = re.compile(
    r"\b(?:fall|fell|drop|decline|decrease|shrink|shrank|lose|rise|rose|grow|grew|increase|climb|gain|change|differ)"
    r"(?:e?d|s)?\b",
    re.IGNORECASE,
)
_SPAN = re.compile(r"\b(?:from|between)\s+(?P<one>\S+)\s+(?:to|and)\s+(?P<other>\S+)\s*$", re.IGNORECASE)
_BETWEEN = re.compile(
    r"\bdifference (?:(?:in|of) (?P<what>.+?) )?between (?P<head>.+?) and (?P<tail>.+)$", re.IGNORECASE
)
_LEADS = re.compile(r"^(?:(?:in|on|at|for|of|from|to|the|that)\b\s*)+|^(?:does|did|do|has|have)\b\s*", re.IGNORECASE)
_ENDS = re.compile(r"\s+(?:does|did|do|has|have|had|is|was|are|were)$", re.IGNORECASE)


def difference(question: str, rows: Rows, about: str) -> str:
    """One line with both figures and their difference; empty if they are not two of one row each, or not clear."""
    found: dict[tuple[str, str], tuple[float, float]] = {}
    for first, second in _pairs(_BY.sub("How", question).strip(" ?.")):
        one, other = _figure(first, rows, about), _figure(second, rows, about)
        if one and other and one[0] != other[0]:
            found[one[0], other[0]] = one[1], other[1]
    if len(found) != 1:
        return ""
    (told, values), *_ = found.items()
    ordered = sorted(zip(values, told, strict=True), key=lambda pair: -pair[0])
    (high, above), (low, below) = ordered
    return f"{above}: {high:.10g}, {below}: {low:.10g}, difference = {high - low:.10g}"


def _pairs(question: str) -> Iterator[tuple[str, str]]:
    """Two questions for one figure each. What stands behind "than" takes the place of something before it."""
    if match := _BETWEEN.search(question):
        yield from _exchanged(f"how many {match['what'] or ''} {_LEADS.sub('', match['head'])}", match["tail"])
    elif match := _THAN.match(question):
        head = _COMPARED.sub(lambda found: _MEASURES.get(found[0].lower(), ""), match["head"])
        yield from _exchanged(head, match["tail"])
    elif match := _SPAN.search(question):
        head = _MOVED.sub(" ", question[: match.start()])
        yield f"{head} in {match['other']}", f"{head} in {match['one']}"


def _exchanged(head: str, tail: str) -> Iterator[tuple[str, str]]:
    tail = _ENDS.sub("", _LEADS.sub("", tail.strip()))
    size, places = len(TOKEN.findall(tail)), list(TOKEN.finditer(head))
    for length in {size, size - 1, size + 1} - {0}:
        for at in range(len(places) - length + 1):
            start, end = places[at].start(), places[at + length - 1].end()
            if head[start].isdigit() == tail[0].isdigit() and head[start].isupper() == tail[0].isupper():
                yield head, f"{head[:start]}{tail}{head[end:]}"


def _figure(question: str, rows: Rows, about: str) -> tuple[str, float] | None:
    """What one of the two questions is about, and its figure, if it is that of one row."""
    asking = understanding(question, rows, about, "number")
    if asking is None or not asking.column:
        return None
    held: list[tuple[float, Row]] = [
        (value, row) for row in asking.kept() if (value := number(row.get(asking.column, ""))) is not None
    ]
    return (f"{asking.column}{asking.where()}", held[0][0]) if len(held) == 1 else None
