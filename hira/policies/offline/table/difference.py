"""The difference between two cells or columns: "more in 2022 than in 2021", "rose from May to June"."""

import re
from collections.abc import Iterator

from hira.policies.offline.table.cells import TOKEN, number
from hira.policies.offline.table.operations import DOWN, MOVES, UP
from hira.policies.offline.table.reading import understanding
from hira.policies.offline.table.rows import Row
from hira.policies.offline.table.sheet import Sheet

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
_MOVED = re.compile(rf"\b(?:{MOVES}|growth)(?:e?d|s)?\b(?: (?:in|of)\b)?", re.IGNORECASE)
_RISEN = re.compile(rf"\b(?:{UP}|growth)(?:e?d|s)?\b", re.IGNORECASE)
_FALLEN = re.compile(rf"\b(?:{DOWN})(?:e?d|s)?\b", re.IGNORECASE)
_MORE = re.compile(
    r"\b(?:more|greater|higher|larger|bigger|longer|heavier|taller|deeper|wider|dearer)\b", re.IGNORECASE
)
_AUXILIARY = re.compile(r"\b(?:do|does|did|has|have|had|is|are|was|were|in|on|at|of|for)\b", re.IGNORECASE)
_SPAN = re.compile(r"\b(?:from|between)\s+(?P<one>\S+)\s+(?:to|and)\s+(?P<other>\S+)\s*$", re.IGNORECASE)
_BETWEEN = re.compile(
    r"\bdifference (?:(?:in|of) (?P<what>.+?) )?between (?P<head>.+?) and (?P<tail>.+)$", re.IGNORECASE
)
_LEADS = re.compile(r"^(?:(?:in|on|at|for|of|from|to|the|that)\b\s*)+|^(?:does|did|do|has|have)\b\s*", re.IGNORECASE)
_ENDS = re.compile(r"\s+(?:does|did|do|has|have|had|is|was|are|were)$", re.IGNORECASE)


def difference(question: str, sheet: Sheet) -> str:
    """One line with both figures and their difference; empty if they are not two of one row each, or not clear.

    What is said to have risen, or to be more, has to be more.
    """
    found: dict[tuple[str, str], tuple[float, float]] = {}
    asked = _BY.sub("How", question).strip(" ?.")
    for first, second in _pairs(asked):
        one, other = _figure(first, sheet), _figure(second, sheet)
        if one and other and one[0] != other[0]:
            found[one[0], other[0]] = one[1], other[1]
    if len(found) != 1:
        return ""
    (told, values), *_ = found.items()
    if _sign(asked) * (values[0] - values[1]) < 0:
        return ""
    ordered = sorted(zip(values, told, strict=True), key=lambda pair: -pair[0])
    (high, above), (low, below) = ordered
    return f"{above}: {high:.10g}, {below}: {low:.10g}, difference = {high - low:.10g}"


def _sign(question: str) -> int:
    """1 if the first figure is said to be more than the second, -1 if it is said to be less, 0 if neither."""
    compared = _COMPARED.search(question) if _THAN.match(question) else None
    if compared:
        return 1 if _MORE.fullmatch(compared[0]) else -1
    if not _SPAN.search(question):
        return 0
    return 1 if _RISEN.search(question) else -1 if _FALLEN.search(question) else 0


def _pairs(question: str) -> Iterator[tuple[str, str]]:
    """Two questions for one figure each. What stands behind "than" takes the place of something before it."""
    if match := _BETWEEN.search(question):
        yield from _exchanged(f"how many {match['what'] or ''} {_LEADS.sub('', match['head'])}", match["tail"])
    elif match := _THAN.match(question):
        head = _COMPARED.sub(lambda found: _MEASURES.get(found[0].lower(), ""), match["head"])
        yield from _exchanged(head, match["tail"])
        for verb in _AUXILIARY.finditer(match["tail"]) if match["head"].lower().startswith("how") else ():
            rest = match["tail"][verb.start() :]
            if own := match["tail"][: verb.start()].strip():
                yield f"{head} {rest}", f"How many {own} {rest}"
    elif match := _SPAN.search(question):
        head = _MOVED.sub(" ", question[: match.start()])
        head = re.sub(r"^(?:what (?:is|was) (?:the )?)", "How many ", head, flags=re.IGNORECASE)
        yield f"{head} in {match['other']}", f"{head} in {match['one']}"


def _exchanged(head: str, tail: str) -> Iterator[tuple[str, str]]:
    tail = _ENDS.sub("", _LEADS.sub("", tail.strip()))
    size, places = len(TOKEN.findall(tail)), list(TOKEN.finditer(head))
    for length in {size, size - 1, size + 1} - {0}:
        for at in range(len(places) - length + 1):
            start, end = places[at].start(), places[at + length - 1].end()
            if head[start].isdigit() == tail[0].isdigit() and head[start].isupper() == tail[0].isupper():
                yield head, f"{head[:start]}{tail}{head[end:]}"


def _figure(question: str, sheet: Sheet) -> tuple[str, float] | None:
    """What one of the two questions is about, and its figure, if it is that of one row."""
    asking = understanding(question, sheet, "number")
    if asking is None or not asking.column:
        return None
    held: list[tuple[float, Row]] = [
        (value, row) for row in asking.kept() if (value := number(row.get(asking.column, ""))) is not None
    ]
    return (f"{asking.column}{asking.where()}", held[0][0]) if len(held) == 1 else None
