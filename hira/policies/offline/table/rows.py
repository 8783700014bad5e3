"""The rows of a table: dictionaries of text, keyed by column, from a file or from lines that show them."""

import csv
import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path

Row = dict[str, str]
Rows = list[Row]


def located(name: str, roots: Sequence[str]) -> Path:
    """The file of that name: as it is, one of the roots itself, or below one of them."""
    path = Path(name)
    below = [place for root in map(Path, roots) for place in (root / path, root.parent / path)]
    found = [place for place in (path, *below) if place.is_file()]
    return (found or [Path(root) for root in roots if Path(root).name == path.name] or [path])[0]


def from_file(path: Path) -> Rows:
    """The rows of a CSV or TSV file."""
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    head = text.partition("\n")[0]
    delimiter = max(",;\t|", key=head.count)
    header, *rows = list(csv.reader(text.splitlines(keepends=True), delimiter=delimiter)) or [[]]
    return [_row(distinct(header), cells) for cells in rows if any(cells)]


def _row(header: Sequence[str], cells: Sequence[str]) -> Row:
    return {name: cell.strip() for name, cell in zip_longest(header, cells[: len(header)], fillvalue="") if name}


def distinct(header: Sequence[str]) -> list[str]:
    """The names of columns; one that stands there twice is told apart, so that neither is meant by it alone."""
    names = [name.strip() for name in header]
    return [
        f"{name} ({names[: at + 1].count(name)})" if name and names.count(name) > 1 else name
        for at, name in enumerate(names)
    ]


def from_lines(lines: Iterable[str]) -> Rows:
    """The rows in lines such as "City: Bern | Inhabitants: 134,000" or "| Bern | 134,000 |"; others are left out.

    The row of a sheet has its number before it ("row 2: City: Bern | …") and may hold formulas ("12 (=A1+1)").
    """
    rows: Rows = []
    header: list[str] = []
    for line in (re.sub(r"^row \d+: ", "", line.strip()) for line in lines):
        cells = [re.sub(r" \(=.*\)$", "", cell.strip()) for cell in line.strip("|").split("|")]
        named = [cell.split(": ", 1) for cell in cells if ": " in cell]
        if not line.startswith("|"):
            rows += [{name.strip(): cell.strip() for name, cell in named}] if len(named) > 1 else []
        elif not header:
            header = distinct(cells)
        elif line.strip("|-: "):
            rows.append(dict(zip(header, cells, strict=False)))
    return rows
