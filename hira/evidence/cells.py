"""The cells of a row of a table, with the numbers that they mean."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from hira.core.patterns import compile_lazily


class Cell(NamedTuple):
    """A cell of a table: the name of its column, empty if unknown, and its text."""

    name: str
    text: str


_SCALE = compile_lazily(r"\b(thousand|million|billion|trillion)s?\b", re.IGNORECASE)
CHANGING = compile_lazily(rf"{_SCALE.pattern}|\(\d[\d.,]*\)", re.IGNORECASE)
"""A magnitude, or the parentheses of a loss: they make the number of a cell another one."""
_FIGURE = compile_lazily(r"[-−–]?\d[\d.,]*|\(\d[\d.,]*\)")
_ROW_LABEL = compile_lazily(r"\Arow \d+: ")
"""The number of a row, as hira writes it before its cells."""
_LETTERS = compile_lazily(r"[A-Z]{1,3}")


def read_cells(row: str, header: str) -> list[Cell]:
    """Return the cells of a row under a header, or of one that names its columns if that is empty."""
    cells = _split_row(_ROW_LABEL.sub("", row))
    if header:
        names = _split_row(header)
        return [_scale(Cell(names[n] if n < len(names) else "", cell)) for n, cell in enumerate(cells)]
    parts = [cell.partition(": ") for cell in cells]
    letters = [name for name, _, value in parts if value and _LETTERS.fullmatch(name)]
    in_order = letters == sorted(letters, key=lambda name: (len(name), name))
    if len(letters) == len(parts) and in_order and len(letters[0]) == 1:  # of a sheet without a header
        return [_scale(Cell("", value)) for _, _, value in parts]
    return [_scale(Cell(name, value) if value else Cell("", name)) for name, _, value in parts]


def _scale(cell: Cell) -> Cell:
    """Return a number under "Budget (thousand EUR)" as thousands, and one in parentheses as a loss."""
    if not _FIGURE.fullmatch(cell.text):
        return cell
    number = f"-{cell.text[1:-1]}" if cell.text[0] == "(" else cell.text
    scale = _SCALE.search(cell.name)
    return Cell(_SCALE.sub("", cell.name), f"{number} {scale[1]}") if scale else Cell(cell.name, number)


def scale_cells(parts: Sequence[str]) -> str:
    """Return a text of parts whose cells ("Salary (thousand EUR): 82", "Profit: (15)") are read as those of a row."""
    cells = [part.partition(": ") for part in parts]
    scaled = [(name, colon, *_scale(Cell(name, value))) for name, colon, value in cells]
    return ", ".join(f"{column}{colon}{cell}" if colon else name for name, colon, column, cell in scaled)


def _split_row(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().removeprefix("|").removesuffix("|").split("|")]
