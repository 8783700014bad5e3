"""Rows of a table as lines that stand on their own: "Region: North | Sales: 120"."""

import csv
import re
from collections.abc import Sequence
from io import StringIO
from itertools import chain, islice

NUMBER = re.compile(r"^[-+(]?[$€£¥]?\s*\d[\d\s.,']*(?:[eE][-+]?\d+)?\s*[%$€£¥]?\)?$")
_YEAR = re.compile(r"^(?:19|20)\d\d$")
_NAME = 60
_PREVIEW = 30
_DELIMITERS = ",;\t|"
_TOLD = re.compile(r"sep=(.)\n")  # a line of Excel's

Row = Sequence[str]


def header_of(rows: Sequence[Row], *, expected: bool = False) -> Row | None:
    """The first row if it names the columns: words or years, no two alike, no gap but at the left.

    Two columns of words may be "name, value" lines; they have a header only where one is `expected` (CSV), or where a
    column below it is numbers.
    """
    if len(rows) < 2 or len(rows[0]) < (1 if expected else 2):
        return None
    first = [cell.strip() for cell in rows[0]]
    named = first[1:] if not first[0] else first
    if not named or not all(named) or len(set(named)) < len(named):
        return None
    if any(NUMBER.match(name) and not _YEAR.match(name) for name in named) or _YEAR.match(first[0]):
        return None
    if expected or len(first) > 2:
        return first
    return first if any(NUMBER.match(row[1].strip()) for row in rows[1:] if len(row) > 1) else None


def lines_of(rows: Sequence[Row], *, expected: bool = False) -> list[str]:
    """One line a row, every cell behind its column's name; without a header the cells alone. Empty rows fall away."""
    header = header_of(rows, expected=expected)
    if header is None:
        return [line for row in rows if (line := " | ".join(_flat(cell) for cell in row).strip(" |"))]
    return [line for row in rows[1:] if (line := named_line(header, row))] or [" | ".join(header)]


def named_line(header: Row, row: Row) -> str:
    names = [*header, *[""] * (len(row) - len(header))]
    cells = ((_flat(name)[:_NAME], _flat(cell)) for name, cell in zip(names, row, strict=False))
    return " | ".join(f"{name}: {cell}" if name else cell for name, cell in cells if cell)


def _flat(cell: str) -> str:
    return " ".join(cell.split())


def read_csv(text: str, delimiter: str = "") -> str:
    """The text of a CSV file as lines of a table; `delimiter` is found if it is not known."""
    if told := _TOLD.match(text):
        text, delimiter = text[told.end() :], told[1]
    filled = (
        row for row in csv.reader(StringIO(text, newline=""), delimiter=delimiter or _delimiter(text)) if any(row)
    )
    try:
        first = list(islice(filled, 2))
        header = header_of(first, expected=True)
        if header is None or len(first) == 1:
            return "\n".join(" | ".join(map(_flat, row)).strip(" |") for row in chain(first, filled))
        return "\n".join(named_line(header, row) for row in chain(first[1:], filled))
    except csv.Error:  # a quote that never closes, a cell beyond the module's limit: the bare lines say as much
        return text


def _delimiter(text: str) -> str:
    """The delimiter that cuts the first lines into the same number of columns most often, and into most of them."""
    lines = [line for line in text[:20_000].splitlines() if line.strip()][:_PREVIEW]

    def fit(delimiter: str) -> tuple[float, int]:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=delimiter)]
        except csv.Error:
            return 0.0, 0
        usual = max(set(widths), key=widths.count, default=1)
        return (widths.count(usual) / len(widths), usual) if usual > 1 else (0.0, 0)

    return max(_DELIMITERS, key=fit)
