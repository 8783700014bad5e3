"""Tables of PDF pages as rows that name their columns, which are found by the gaps between characters."""

import ctypes
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import Any, BinaryIO, NamedTuple

from hira.tools.documents.sheets import NUMBER, header_of, lines_of

_MOST = 20_000
"""Characters of a page that is looked at; drawings and maps have more."""
_SAME_LINE, _SPACE, _COLUMN, _APART = 0.4, 0.12, 0.7, 3.0
"""In heights of a character: how far one of the same line may be off, from where on a gap is a space, or separates two
columns, and how far apart two lines of one table may be."""
_FEWEST = 3
_HEADER_WITHIN = 5
_CROSSING = 0.1
"""The share of rows that may cross the gap between two columns."""
_MISPLACED = 0.02
"""The share of a table's characters that its text may lack or add."""
_FILLED, _FILLED_WITH_WORDS = 0.6, 0.9
"""The share of rows that need more than a single cell, in a table with a column of numbers and in one of words."""
_LONGEST_CELL, _LONGEST_NUMBERED = 25, 40
"""Characters of a cell on average, in a table of words and in one with numbers; prose in columns has more."""


class _Character(NamedTuple):
    middle: float
    height: float
    left: float
    right: float
    text: str


class _Cell(NamedTuple):
    left: float
    right: float
    text: str


class _Line(NamedTuple):
    """A line of text: its middle and height, and its cells, from left to right."""

    middle: float
    height: float
    cells: tuple[_Cell, ...]


class Table(NamedTuple):
    """A table: its rows as text, and the characters that the page shows in their place, without spaces."""

    rows: tuple[str, ...]
    shown: str


@contextmanager
def open_pages(data: BinaryIO) -> Iterator[Callable[[int], list[Table]]]:
    """Open a PDF file for its tables: the context is a function from the number of a page to its tables. A file that
    pypdfium2 cannot open, or cannot read at some page, has no tables there: its text is read by another library."""
    if find_spec("pypdfium2") is None:
        yield lambda _: []
        return
    pypdfium2: Any = import_module("pypdfium2")  # no types to import: it is an extra
    data.seek(0)
    try:
        document = pypdfium2.PdfDocument(data.read())
    except pypdfium2.PdfiumError:
        yield lambda _: []
        return

    def find(number: int) -> list[Table]:
        try:
            page = document[number - 1]
        except (pypdfium2.PdfiumError, IndexError):
            return []
        try:
            return [table for lines in _split_runs(_read_lines(page)) if (table := _read_table(lines))]
        finally:
            page.close()

    with closing(document):
        yield find


def replace_tables(text: str, tables: Sequence[Table]) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a page's text, and whether each is the rows of a table. A table whose characters are not
    together in the text, in whatever order, stays as it is there."""
    places = [index for index, character in enumerate(text) if not character.isspace()]
    shown = "".join(text[index] for index in places)
    begin = 0
    for table in tables:
        first = _locate(table.shown, shown)
        if first is not None and places[first] >= begin:
            yield text[begin : places[first]], False
            yield "\n".join(table.rows), True
            begin = places[first + len(table.shown) - 1] + 1
    yield text[begin:], False


def _locate(table: str, text: str) -> int | None:
    """Return where the text has nearly the same characters as the table, None if nowhere. Their order may differ: a
    cell of several lines is whole in the text, and the lines of a row are whole in the table."""
    size = len(table)
    excess = Counter(text[:size])
    excess.subtract(table)
    distance = sum(map(abs, excess.values()))
    best = (distance, 0)
    for first, (before, after) in enumerate(zip(text, text[size:], strict=False), 1):
        for character, step in ((before, -1), (after, 1)):
            distance += abs(excess[character] + step) - abs(excess[character])
            excess[character] += step
        best = min(best, (distance, first))
    return best[1] if len(text) >= size and best[0] <= _MISPLACED * size else None


def _read_lines(page: Any) -> list[_Line]:
    """Return the lines of a page from its top."""
    pdfium: Any = import_module("pypdfium2.raw")
    text = page.get_textpage()
    box = pdfium.FS_RECTF()
    characters: list[_Character] = []
    try:
        count = pdfium.FPDFText_CountChars(text)
        for index in range(count if count <= _MOST else 0):
            sign = chr(pdfium.FPDFText_GetUnicode(text, index))
            if sign.isspace() or not sign.isprintable() or pdfium.FPDFText_GetCharAngle(text, index):
                continue
            if pdfium.FPDFText_GetLooseCharBox(text, index, ctypes.byref(box)) and box.top > box.bottom:
                middle, height = (box.top + box.bottom) / 2, box.top - box.bottom
                characters.append(_Character(middle, height, box.left, box.right, sign))
    finally:
        text.close()
    lines: list[list[_Character]] = []
    for character in sorted(characters, key=lambda placed: -placed.middle):
        last = lines[-1][0] if lines else None
        if last and last.middle - character.middle <= _SAME_LINE * max(last.height, character.height):
            lines[-1].append(character)
        else:
            lines.append([character])
    return [_cut_line(line) for line in lines]


def _cut_line(characters: list[_Character]) -> _Line:
    height = median(character.height for character in characters)
    cells: list[_Cell] = []
    for character in sorted(characters, key=lambda placed: placed.left):
        gap = character.left - cells[-1].right if cells else 0.0
        if not cells or gap > _COLUMN * height:
            cells.append(_Cell(character.left, character.right, character.text))
        else:
            last = cells[-1]
            text = f"{last.text}{' ' if gap > _SPACE * height else ''}{character.text}"
            cells[-1] = _Cell(last.left, max(character.right, last.right), text)
    return _Line(characters[0].middle, height, tuple(cells))


def _split_runs(lines: Sequence[_Line]) -> Iterator[list[_Line]]:
    """Yield the runs of lines with several cells; a line with a single one belongs to a run if it is inside it."""
    run: list[_Line] = []
    single: list[_Line] = []
    for line in lines:
        last = (single or run)[-1] if run else None
        if last and last.middle - line.middle > _APART * max(last.height, line.height):
            yield run
            run, single = [], []
        if len(line.cells) > 1:
            run += [*(single if run else ()), line]
            single = []
        elif len(single) < 2:
            single.append(line)
        else:
            yield run
            run, single = [], []
    yield run


def _read_table(lines: Sequence[_Line]) -> Table | None:
    """Return the table of a run of lines, None if it is something else."""
    if len(lines) < _FEWEST:
        return None
    columns = _find_columns(lines)
    if len(columns) < 2:
        return None
    rows = [_fill(line, columns) for line in lines]
    for start in range(min(_HEADER_WITHIN, len(rows) - 2)):
        table = _join_continued(rows[start:])
        if header_of(table) and _is_table(table):
            shown = "".join("".join(cell.text.split()) for line in lines[start:] for cell in line.cells)
            return Table(tuple(lines_of(table)), shown)
    return None


def _find_columns(lines: Sequence[_Line]) -> list[tuple[float, float]]:
    """Return the columns between the gaps that at most a few rows cross."""
    edges = sorted(
        (edge, step) for line in lines for cell in line.cells for edge, step in ((cell.left, 1), (cell.right, -1))
    )
    most = _CROSSING * len(lines)
    columns: list[tuple[float, float]] = []
    depth, begin = 0, 0.0
    for edge, step in edges:
        if depth <= most < depth + step:
            begin = edge
        if depth > most >= depth + step:
            columns.append((begin, edge))
        depth += step
    return columns


def _fill(line: _Line, columns: Sequence[tuple[float, float]]) -> list[str]:
    row = [""] * len(columns)
    for cell in line.cells:
        overlaps = [min(cell.right, right) - max(cell.left, left) for left, right in columns]
        index = overlaps.index(max(overlaps))
        row[index] = f"{row[index]} {cell.text}".strip()
    return row


def _join_continued(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Join a row with the lines that continue its cells: they have nothing in the first column, and no number."""
    joined: list[list[str]] = []
    for row in rows:
        if joined and not row[0] and not any(NUMBER.match(cell) for cell in row):
            joined[-1] = [f"{above} {cell}".strip() for above, cell in zip(joined[-1], row, strict=True)]
        else:
            joined.append([*row])
    return joined


def _is_table(rows: Sequence[Sequence[str]]) -> bool:
    cells = [cell for row in rows[1:] for cell in row if cell]
    columns = [[row[index] for row in rows[1:] if row[index]] for index in range(1, len(rows[0]))]
    numbered = any(sum(bool(NUMBER.match(cell)) for cell in column) * 2 > len(column) for column in columns if column)
    if numbered:
        fewest, filled, longest = _FEWEST, _FILLED, _LONGEST_NUMBERED
    else:
        fewest, filled, longest = _FEWEST + 1, _FILLED_WITH_WORDS, _LONGEST_CELL
    rows_filled = sum(sum(map(bool, row)) > 1 for row in rows)
    prose = not numbered and sum(row[0][:1].islower() for row in rows) * 2 > len(rows)
    if prose or len(rows) < fewest or rows_filled < filled * len(rows):
        return False
    return sum(map(len, cells)) <= longest * len(cells)
