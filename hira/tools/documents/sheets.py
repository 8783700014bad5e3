"""Workbooks (.xlsx), and rows of any table as self-contained lines: "Region: North | Sales: 120"."""

import csv
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import BytesIO, StringIO
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO
from xml.etree.ElementTree import Element, iterparse

from hira.core.errors import ToolError
from hira.tools.documents.archive import Archive, open_archive
from hira.tools.documents.document import Document, Part, add_title, fits, words_in

NUMBER = re.compile(r"^[-+(]?[$€£¥]?\s*\d[\d\s.,']*(?:[eE][-+]?\d+)?\s*[%$€£¥]?\)?$")
_YEAR = re.compile(r"^(?:19|20)\d\d$")
_NAME = 60
_LONG_NAME = 20
"""Words of a first cell that is repeated."""
_BAR = " | "
_PREVIEW = 30
_DELIMITERS = ",;\t|"
_TOLD = re.compile(r"sep=(.)\n")  # a line of Excel's

Row = Sequence[str]


def header_of(rows: Sequence[Row], *, expected: bool = False) -> Row | None:
    """Return the first row if it names the columns: words or years, all different, no gap except at the left.

    Two columns of words may be "name, value" lines; they have a header only if one is `expected` (CSV), or if a column
    below it consists of numbers.
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
    """Return one line per row that is not empty, each cell after its column's name, if there is a header."""
    header = header_of(rows, expected=expected)
    if header is None:
        return [line for row in rows if (line := " | ".join(_flat(cell) for cell in row).strip(" |"))]
    names = [*map(_shorten, header)]
    return [line for row in rows[1:] if (line := format_row(names, row))] or [" | ".join(header)]


def _shorten(name: str) -> str:
    """Return a column's name as every row shows it."""
    return _flat(name)[:_NAME]


def format_row(header: Row, row: Row) -> str:
    """Return a row on one line; the names of the header are short (`_shorten`), because every row repeats them."""
    names = [*header, *[""] * (len(row) - len(header))]
    cells = ((name, _flat(cell)) for name, cell in zip(names, row, strict=False))
    return " | ".join(f"{name}: {cell}" if name else cell for name, cell in cells if cell)


def split_row(line: str) -> list[str]:
    """Return a row as lines of at most a passage, each with the first cell, which names the row."""
    first, *cells = line.split(_BAR)
    if fits(line) or words_in(first) > _LONG_NAME:
        return [line]
    lines = [first]
    for cell in cells:
        if lines[-1] != first and not fits(f"{lines[-1]}{_BAR}{cell}"):
            lines.append(first)
        lines[-1] += f"{_BAR}{cell}"
    return lines


def _flat(cell: str) -> str:
    return " ".join(cell.split())


def read_csv(text: str, delimiter: str = "") -> tuple[str, tuple[int, ...]]:
    """Return a CSV file as lines of a table, and the number of each row, the header being 1. Detects a delimiter."""
    if told := _TOLD.match(text):
        text, delimiter = text[told.end() :], told[1]
    rows = csv.reader(StringIO(text, newline=""), delimiter=delimiter or _delimiter(text))
    numbered = ((number, row) for number, row in enumerate(rows, 1) if any(row))
    lines: list[str] = []
    places = array("L")
    try:
        first = list(islice(numbered, 2))
        header = header_of([row for _, row in first], expected=True)
        names = [*map(_shorten, header or ())]
        for number, row in chain(first[1:] if header else first, numbered):
            parts = split_row(format_row(names, row)) if header else [" | ".join(map(_flat, row)).strip(" |")]
            lines += parts
            places.extend([number] * len(parts))
        return "\n".join(lines), tuple(places)
    except csv.Error:  # a quote that never closes, a cell beyond the module's limit: the plain lines suffice
        return text, tuple(range(1, text.count("\n") + 2))


def _delimiter(text: str) -> str:
    """Detect the delimiter that cuts most of the first lines into the same number of columns, and into most columns."""
    lines = [line for line in text[:20_000].splitlines() if line.strip()][:_PREVIEW]

    def fit(delimiter: str) -> tuple[float, int]:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=delimiter)]
        except csv.Error:
            return 0.0, 0
        usual = max(set(widths), key=widths.count, default=1)
        return (widths.count(usual) / len(widths), usual) if usual > 1 else (0.0, 0)

    return max(_DELIMITERS, key=fit)


S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
RELATED = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_MAIN = "xl/workbook.xml"
_DATES = frozenset([*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)])
_PERCENT = frozenset([9, 10])
_QUOTED = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.|_.')
_CELL = re.compile(r"([A-Z]+)(\d+)")
_EPOCH = datetime(1899, 12, 30)  # noqa: DTZ001 - a sheet knows no zone
_LAST_DAY = 2_958_465
_LAST_COLUMN = 16_384
_HEADER_WITHIN = 5
_FEW_COLUMNS = 2


@dataclass(frozen=True, slots=True)
class _Book:
    """Tables that the cells refer to: shared texts, and the kind of number that each style shows."""

    texts: list[str]
    kinds: list[str]


def read_xlsx(path: Path, data: BinaryIO) -> Document:
    with open_archive(path, data, _MAIN, "an Excel workbook: it contains no sheets") as archive:
        root, targets = archive.xml(_MAIN), archive.relations(_MAIN)
        texts = [_string(element) for element in archive.xml("xl/sharedStrings.xml", optional=True).iter(f"{S}si")]
        book = _Book(texts, _kinds(archive))
        parts = []
        waiting = set(archive.names)  # each sheet is read once, however often it is named
        for sheet in root.iter(f"{S}sheet"):
            kind, target = targets.get(sheet.get(f"{RELATED}id", ""), ("", ""))
            if kind == "worksheet" and target in waiting:
                waiting.remove(target)
                hidden = ", hidden" if sheet.get("state", "visible") != "visible" else ""
                text = "\n".join(_lines(_cells(archive, target, book)))
                parts.append(Part(text, f"sheet {sheet.get('name', '')}{hidden}"))
        return add_title(path, tuple(parts), archive.property("title"))


def _string(element: Element) -> str:
    """Return the text of all runs, without the phonetic readings in Japanese sheets."""
    runs = [piece for child in element if child.tag in (f"{S}r", f"{S}t") for piece in child.iter(f"{S}t")]
    return "".join(run.text or "" for run in runs)


def _kinds(archive: Archive) -> list[str]:
    """Return the kind of number that each cell style shows: "date", "percent" or "" for others."""
    root = archive.xml("xl/styles.xml", optional=True)
    formats = {element.get("numFmtId", ""): element.get("formatCode", "") for element in root.iter(f"{S}numFmt")}
    kinds = []
    for style in root.iterfind(f"{S}cellXfs/*"):
        number = style.get("numFmtId", "0")
        code = _QUOTED.sub("", formats.get(number, "")).partition(";")[0].lower()
        known = int(number) if number.isdecimal() else -1
        if known in _DATES or re.search(r"[ymdhs]", code.replace("general", "")):
            kinds.append("date")
        else:
            kinds.append("percent" if known in _PERCENT or "%" in code else "")
    return kinds


def _cells(archive: Archive, name: str, book: _Book) -> Iterator[tuple[int, dict[int, str]]]:
    """Yield the rows with content: row number, and column number → text. Read piece by piece, to bound the memory."""
    data = archive.read_without_doctype(name)
    number = 0
    for _, element in iterparse(BytesIO(data)):  # noqa: S314 - `read_without_doctype` has refused every declaration of entities
        if element.tag != f"{S}row":
            continue
        given = element.get("r", "")
        number = int(given) if given.isdecimal() else number + 1
        row: dict[int, str] = {}
        column = 0
        for cell in element.iter(f"{S}c"):
            place = _CELL.fullmatch(cell.get("r", ""))
            column = 0 if place else column + 1
            for letter in place[1] if place else "":
                column = column * 26 + ord(letter) - 64
            if column > _LAST_COLUMN:
                raise ToolError(f"{archive.path.name} is damaged: {name!r} has a cell in column {column}")
            if text := archive.count_text(_value(cell, book)):
                row[column] = text
        element.clear()
        yield number, row


def _letters(column: int) -> str:
    letters = ""
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def _value(cell: Element, book: _Book) -> str:
    """Return a cell's text followed by its formula: `700 (=SUM(D2:D6))`."""
    kind, raw = cell.get("t", "n"), cell.findtext(f"{S}v") or ""
    if kind == "s":
        shown = book.texts[int(raw)] if raw.isdecimal() and int(raw) < len(book.texts) else raw
    elif kind == "inlineStr":
        inline = cell.find(f"{S}is")
        shown = "" if inline is None else _string(inline)
    elif kind == "b":
        shown = {"1": "TRUE", "0": "FALSE"}.get(raw, raw)
    else:
        shown = _number(raw, cell.get("s", "0"), book) if kind == "n" else raw
    shown = " ".join(shown.split())
    formula = cell.find(f"{S}f")
    if formula is None or not formula.text:
        return shown
    return f"{shown or 'not computed'} (={formula.text})"


def _number(raw: str, style: str, book: _Book) -> str:
    kind = book.kinds[int(style)] if style.isdecimal() and int(style) < len(book.kinds) else ""
    try:
        value = float(raw)
    except ValueError:
        return raw
    if kind == "date" and 0 <= value < _LAST_DAY:
        moment = _EPOCH + timedelta(seconds=round(value * 86_400))
        if value < 1:
            return moment.strftime("%H:%M:%S")
        return moment.strftime("%Y-%m-%d" if value == int(value) else "%Y-%m-%d %H:%M:%S")
    # a spreadsheet computes with 15 digits: 0.1 + 0.2 is stored as 0.30000000000000004 and means 0.3
    return f"{value * 100:.12g}%" if kind == "percent" else f"{value:.15g}"


def _lines(rows: Iterator[tuple[int, dict[int, str]]]) -> Iterator[str]:
    """Yield the sheet as lines: of each table first "columns: A = Region, …", then "row 2: Region: North | …".

    Rows stay as sparse as in the file: a few cells far apart take no more memory than the cells.
    """
    table: list[tuple[int, dict[int, str]]] = []
    for number, row in rows:
        if table and (not row or number > table[-1][0] + 1):
            yield from _table(table)
            table = []
        if row:
            table.append((number, row))
    if table:
        yield from _table(table)


def _table(table: Sequence[tuple[int, dict[int, str]]]) -> Iterator[str]:
    columns = sorted({column for _, row in table for column in row})
    rows = [[row.get(column, "") for column in columns] for _, row in table]
    # only tables of two columns need their lower rows to decide
    size = len(rows) if len(columns) <= _FEW_COLUMNS else 2
    starts = range(min(_HEADER_WITHIN, len(table) - 1))  # titles and remarks may precede the header
    headers = ((start, heading) for start in starts if (heading := header_of(rows[start : start + size])))
    start, header = next(headers, (-1, None))
    for number, row in table[: start if header else 0]:
        yield f"row {number}: " + " | ".join(row[column] for column in sorted(row))
    if header:
        named = zip(map(_letters, columns), header, strict=True)
        yield "columns: " + ", ".join(f"{letters} = {name or '(no name)'}" for letters, name in named)
    names = dict(zip(columns, map(_shorten, header or map(_letters, columns)), strict=True))
    for number, row in table[start + 1 :]:
        cells = sorted(row)
        line = format_row([names[column] for column in cells], [row[column] for column in cells])
        yield from (f"row {number}: {part}" for part in split_row(line))
