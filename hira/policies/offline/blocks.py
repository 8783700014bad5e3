"""The tables in a text that was shown: rows that stand together, under the headings above them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from hira.policies.offline import table
from hira.policies.offline.several import asks_several

ROW = " | "
NEAR = 300
"""Characters above a table that may name what it holds."""
_PROSE = 5
_PAIR = 2
_TOLD = re.compile(r"[^\s:,.][^:,.]*: [^,]+(?:, [^:,.]+: [^,]+){2,}")
_LEFT_OUT = "[… "
_COLUMNS = re.compile(r"^columns: ")
_RULE = re.compile(r"^\|[ :|-]*-[ :|-]*\|$")


@dataclass(frozen=True, slots=True)
class Shown:
    """A table as it is shown: what it is called, its lines, and whether some are left out."""

    title: str
    rows: tuple[str, ...]
    partial: bool


@lru_cache(maxsize=256)
def tables(title: str, text: str) -> tuple[Shown, ...]:
    """The tables of a text with this title.

    A long table is shown in pieces with an empty line between them; it is one table all the same.
    """
    found: list[Shown] = []
    heading, rows = "", list[str]()
    partial = _LEFT_OUT in text
    for line in [*(line.strip() for line in text.splitlines()), "#"]:
        if (ROW in line or _RULE.match(line)) and not line.startswith("#"):
            if rows and not _goes_on(rows, line):
                last = [rows.pop()] if _RULE.match(line) else []
                found += _shown(title, heading, rows, partial=partial)
                rows = last
            rows.append(line)
        elif line and not line.startswith(_LEFT_OUT):
            found += _shown(title, heading, rows, partial=partial)
            rows = []
            if not _COLUMNS.match(line):
                told = line.strip(" #.:")
                heading = told if line.startswith("#") or not heading else f"{heading}, {told}"
    return tuple(found)


def _goes_on(rows: Sequence[str], line: str) -> bool:
    """Whether a row belongs to the table of the rows before it: a second rule begins another one."""
    if _RULE.match(line):
        return not any(_RULE.match(row) for row in rows)
    if line.startswith("|") or rows[-1].startswith("|"):
        return line.count("|") == rows[-1].count("|")
    names, others = ({cell.partition(": ")[0] for cell in row.split(ROW)} for row in (line, rows[-1]))
    return bool(names & others)


def _shown(title: str, heading: str, rows: Sequence[str], *, partial: bool) -> list[Shown]:
    ruled = [row for row in rows if _RULE.match(row)]
    if len(rows) - len(ruled) < 2 or len(ruled) > 1:
        return []
    told = ", ".join(dict.fromkeys(part for part in (title, heading[-NEAR:]) if part))
    return [Shown(told, tuple(rows), partial)]


def row_of(line: str, *, noted: bool) -> str:
    """The row of a table that a line is, empty if it is none; a note tells a row with commas between its cells."""
    if ROW in line:
        return line
    return line.rstrip(".").replace(", ", ROW) if noted and _TOLD.fullmatch(line) else ""


def answers(question: str, row: str, texts: Sequence[tuple[str, str]]) -> bool | None:
    """Whether a row of a table answers: every word of the question is understood over the table, and it is the row
    that is asked for, or one of those.

    `texts` are the titles and texts in which the row and others of its table stand. None for a row of sentences, or of
    a name and a value: it is read as a sentence is.
    """
    cells = [cell for cell in row.strip("| ").split("|") if cell.strip()]
    if len(cells) <= _PAIR or any(len(cell.split()) > _PROSE for cell in cells):
        return None
    title, lines = next((one for one in _joined(tuple(texts)) if row in one[1]), ("", (row,)))
    own = table.from_lines([*(lines[:2] if row.startswith("|") else ()), row])
    return bool(own) and own[-1] in _wanted(question, lines, title)


@lru_cache(maxsize=256)
def _wanted(question: str, lines: tuple[str, ...], title: str) -> list[dict[str, str]]:
    """The rows of these that a question is about; remembered, since each of them is asked."""
    return table.rows_for(question, table.from_lines(lines), title, several=asks_several(question))


@lru_cache(maxsize=64)
def _joined(texts: tuple[tuple[str, str], ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The tables of all parts of a document, title and lines: what is shown of one table in several parts is one."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for title, text in texts:
        for one in tables(title, text):
            at = next((at for at, (_, lines) in enumerate(found) if _same(lines, one.rows)), -1)
            if at < 0:
                found.append((one.title, one.rows))
            else:
                found[at] = found[at][0], tuple(dict.fromkeys((*found[at][1], *one.rows)))
    return tuple(found)


def _same(lines: Sequence[str], others: Sequence[str]) -> bool:
    """Whether two tables with a name before each cell are parts of one; those in Markdown are told by their header."""
    if others[0].startswith("|"):
        return lines[0] == others[0]
    return not lines[0].startswith("|") and _goes_on(lines, others[0])
