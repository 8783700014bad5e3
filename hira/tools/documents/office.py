"""Word documents and slides: headings, lists, tables and notes in the order of the text; PDF files, by pypdf."""

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from xml.etree.ElementTree import Element

from hira.core.errors import ToolError
from hira.tools.documents.archive import FALLBACK, Archive, find_outermost, open_archive
from hira.tools.documents.document import Document, Lacking, Part, add_title
from hira.tools.documents.own_files import AUTHOR
from hira.tools.documents.pdf_tables import Table, open_pages, replace_tables
from hira.tools.documents.plain import reflow
from hira.tools.documents.sheets import RELATED, lines_of

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

# pypdf reports every small flaw of a file as a warning, which would be printed in the middle of a run
logging.getLogger("pypdf").addHandler(logging.NullHandler())
_LABEL = 20
"""Characters of a page's label."""
_HYPHENATED = re.compile(r"(?<=[a-zß-ÿ])[-\u00ad]\n(?=[a-zß-ÿ])")


def check_library(path: Path) -> None:
    """Raise `Lacking` if the library that reads PDF files is not installed."""
    if find_spec("pypdf") is None:
        raise Lacking(f"{path.name} needs pypdf: pip install 'hira[pdf]'")


def read_pdf(path: Path, data: BinaryIO) -> Document:
    check_library(path)
    import pypdf

    try:
        reader = pypdf.PdfReader(data)
    except pypdf.errors.PdfReadError:  # pypdf looks through a file whose table of contents is wrong, but not missing
        data.seek(0)
        reader = pypdf.PdfReader(BytesIO(data.read() + b"\nstartxref\n0\n%%EOF\n"))
    if reader.is_encrypted:
        try:
            opened = reader.decrypt("")  # many files have the empty password, only to forbid printing
        except pypdf.errors.DependencyError:
            raise ToolError(f"{path.name} is encrypted; reading it needs: pip install cryptography") from None
        if not opened:
            raise ToolError(f"{path.name} is protected by a password")
    labels = _read_labels(reader)
    with open_pages(data) as pages:
        parts = tuple(
            page_of(page, number, labels.get(number, ""), pages(number)) for number, page in enumerate(reader.pages, 1)
        )
    about = reader.metadata
    if not parts:
        raise ToolError(f"{path.name} is damaged: it holds no pages")
    document = add_title(path, parts, str((about and about.title) or ""))
    return replace(document, is_own=bool(about and about.author == AUTHOR))


def _read_labels(reader: "PdfReader") -> dict[int, str]:
    """Return the printed numbers of the pages where they are not their numbers in the file ("ii", "A-3")."""
    if "/PageLabels" not in reader.root_object:
        return {}
    try:
        labels = {number: " ".join(label.split())[:_LABEL] for number, label in enumerate(reader.page_labels, 1)}
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - the pages of a file with damaged labels still have their numbers
        return {}
    return {number: label for number, label in labels.items() if label and label != str(number)}


def page_of(page: "PageObject", number: int, label: str = "", tables: Sequence[Table] = ()) -> Part:
    """Read one page, with the rows of its tables. If its content cannot be read as text, it can still be looked at."""
    place = f"page {number}, labelled {label}" if label else f"page {number}"
    try:
        text = page.extract_text()
    except MemoryError:  # not a fault of the page, which would be kept as one without text
        raise
    except Exception:  # noqa: BLE001 - one damaged page must not hide the others; it is marked as unread
        return Part("", place, media=True)
    parts = replace_tables(text, tables)
    texts = (part if is_table else reflow(_HYPHENATED.sub("", part)).strip() for part, is_table in parts)
    text = "\n\n".join(texts).strip()
    return Part(text, place, media=not text)


W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_GONE = (FALLBACK, f"{W}pPr", f"{W}del", f"{W}moveFrom")
_UNSAID = (f"{W}strike", f"{W}dstrike", f"{W}vanish")
_OFF = ("0", "false", "off")
_BASES = 10
"""The styles that a style may build on, one on the other."""
_BLANKS = {f"{W}tab": "\t", f"{W}br": "\n", f"{W}cr": "\n", f"{W}noBreakHyphen": "-"}
_DEEPEST = 6
_WIDEST = 200


def read_docx(path: Path, data: BinaryIO) -> Document:
    main = "word/document.xml"
    with open_archive(path, data, main, "a Word document: it contains no text") as archive:
        levels, unsaid = _read_styles(archive)
        body = _remove_unsaid(archive.xml(main), unsaid)
        blocks = _blocks(body, levels, archive)
        for kind in ("footnote", "endnote"):
            root = _remove_unsaid(archive.xml(f"word/{kind}s.xml", optional=True), unsaid)
            notes = ((note.get(f"{W}id", ""), _text(note).strip()) for note in root.iter(f"{W}{kind}"))
            blocks += [f"[^{number}] {note}" for number, note in notes if note]
        text = "\n\n".join(blocks)
        pictures = any(name.startswith("word/media/") for name in archive.names)
        document = add_title(path, (Part(text, media=not text and pictures),), archive.property("title"))
        return replace(document, is_own=archive.property("creator") == AUTHOR)


def _read_value(element: Element, path: str, missing: str = "") -> str:
    """Return the value of the setting at a path such as "pPr/pStyle"."""
    setting = element.find("/".join(f"{W}{name}" for name in path.split("/")))
    return missing if setting is None else setting.get(f"{W}val", missing)


def _read_styles(archive: Archive) -> tuple[dict[str, int], set[str]]:
    """Return the levels of the styles of headings, and the styles whose text is struck out or hidden, or that build on
    such a style, by their ids. Style names are the same in every language version of Word; ids are not."""
    levels: dict[str, int] = {}
    told: dict[str, bool | None] = {}
    bases: dict[str, str] = {}
    for style in archive.xml("word/styles.xml", optional=True).iter(f"{W}style"):
        if key := style.get(f"{W}styleId", ""):
            told[key], bases[key] = _is_unsaid(style), _read_value(style, "basedOn")
            words = _read_value(style, "name").lower().split()
            if words == ["title"]:
                levels[key] = 1
            elif len(words) == 2 and words[0] == "heading" and words[1].isdecimal():
                levels[key] = min(int(words[1]), _DEEPEST)
    for _ in range(_BASES):
        told = {key: told.get(bases[key]) if value is None else value for key, value in told.items()}
    return levels, {key for key, value in told.items() if value}


def _is_unsaid(element: Element) -> bool | None:
    """Return whether a run or a style strikes its text out or hides it, None if it does not say."""
    marks = (element.find(f"{W}rPr/{tag}") for tag in _UNSAID)
    values = [mark.get(f"{W}val", "") not in _OFF for mark in marks if mark is not None]
    return any(values) if values else None


def _remove_unsaid(root: Element, unsaid: set[str]) -> Element:
    """Empty the runs whose text is struck out or hidden, directly or by the style of the run or its paragraph."""
    waiting = [(root, False)]
    while waiting:
        node, is_unsaid = waiting.pop()
        if node.tag == f"{W}p":
            is_unsaid = _read_value(node, "pPr/pStyle") in unsaid
        elif node.tag == f"{W}r":
            own = _is_unsaid(node)
            if own or (own is None and (is_unsaid or _read_value(node, "rPr/rStyle") in unsaid)):
                node.clear()
        waiting += [(child, is_unsaid) for child in node]
    return root


def _blocks(root: Element, levels: dict[str, int], archive: Archive) -> list[str]:
    """Return paragraphs and tables in the order of the text; consecutive list items and rows stay together."""
    blocks: list[str] = []
    for element in find_outermost(root, (f"{W}p", f"{W}tbl")):
        if element.tag == f"{W}tbl":
            repeated = element.find(f"{W}tr/{W}trPr/{W}tblHeader") is not None  # the first rows, on every page
            blocks.append("\n".join(lines_of(_rows(element, archive), expected=repeated)))
            continue
        text = _text(element).strip()
        listed = element.find(f"{W}pPr/{W}numPr") is not None
        outline = _read_value(element, "pPr/outlineLvl")
        level = int(outline) + 1 if outline.isdecimal() else levels.get(_read_value(element, "pPr/pStyle"), 0)
        if text and level:
            blocks.append(f"{'#' * min(level, _DEEPEST)} {' '.join(text.split())}")
        elif text and listed and blocks and blocks[-1].startswith("- "):
            blocks[-1] += f"\n- {text}"
        elif text:
            blocks.append(f"- {text}" if listed else text)
    return [block for block in blocks if block]


def _text(element: Element) -> str:
    """Return the text of an element, without what tracked changes deleted or moved; inner paragraphs end their line."""
    pieces: list[str] = []
    waiting = list(reversed(element))
    while waiting:
        node = waiting.pop()
        if node.tag == f"{W}t":
            pieces.append(node.text or "")
        elif node.tag in _BLANKS:
            pieces.append(_BLANKS[node.tag])
        elif node.tag == f"{W}footnoteReference":
            pieces.append(f"[^{node.get(f'{W}id', '')}]")
        elif node.tag not in _GONE:
            if node.tag == f"{W}p" and pieces:
                pieces.append("\n")
            waiting += reversed(node)
    return "".join(pieces)


def _rows(table: Element, archive: Archive) -> list[list[str]]:
    """Return the cells of a table. A cell merged downwards is repeated in each row, one merged sideways leaves gaps."""
    rows: list[list[str]] = []
    for row in find_outermost(table, (f"{W}tr",)):
        cells: list[str] = []
        for cell in row.findall(f"{W}tc"):
            text = _text(cell).strip()
            merged = cell.find(f"{W}tcPr/{W}vMerge")
            if merged is not None and merged.get(f"{W}val") != "restart" and rows and len(cells) < len(rows[-1]):
                text = archive.count_text(rows[-1][len(cells)])
            wide = _read_value(cell, "tcPr/gridSpan", "1")
            cells += [text, *[""] * (min(int(wide), _WIDEST) - 1 if wide.isdecimal() else 0)]
        rows.append(cells)
    return rows


A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_MAIN = "ppt/presentation.xml"
_SHAPES = (f"{P}sp", f"{P}graphicFrame")
"""Shapes and tables; the order of the file is the reading order."""


def read_pptx(path: Path, data: BinaryIO) -> Document:
    with open_archive(path, data, _MAIN, "a PowerPoint presentation: it contains no slides") as archive:
        targets = archive.relations(_MAIN)
        ids = [slide.get(f"{RELATED}id", "") for slide in archive.xml(_MAIN).iter(f"{P}sldId")]
        names = dict.fromkeys(targets[slide_id][1] for slide_id in ids if slide_id in targets)
        parts = tuple(_slide(archive, name, number) for number, name in enumerate(names, 1))
        return add_title(path, parts, archive.property("title"))


def _slide(archive: Archive, name: str, number: int) -> Part:
    linked = list(dict.fromkeys(archive.relations(name).values()))

    def read_linked(kind: str) -> list[Element]:
        return [archive.xml(target) for relation, target in linked if relation == kind and target in archive.names]

    blocks = [_block(shape) for shape in find_outermost(archive.xml(name), _SHAPES)]
    blocks += [_chart(chart) for chart in read_linked("chart")]
    for notes in read_linked("notesSlide"):
        bodies = [_block(shape) for shape in find_outermost(notes, _SHAPES) if _role(shape) == "body"]
        blocks += [f"Notes: {body}" for body in bodies if body]
    text = "\n\n".join(filter(None, blocks))
    pictured = any(kind in ("image", "video", "media") for kind, _ in linked)
    return Part(text, f"slide {number}", media=not text and pictured)


def _role(shape: Element) -> str:
    placeholder = shape.find(f"{P}nvSpPr/{P}nvPr/{P}ph")
    return "" if placeholder is None else placeholder.get("type", "body")


def _block(shape: Element) -> str:
    """Return the text of one shape: a heading if it is the slide's title, a table's rows, otherwise its paragraphs."""
    table = next(shape.iter(f"{A}tbl"), None)
    if table is not None:
        rows = [[_text_of_shape(cell) for cell in row.iter(f"{A}tc")] for row in table.iter(f"{A}tr")]
        return "\n".join(lines_of(rows))
    if _role(shape) in ("sldNum", "dt", "ftr"):
        return ""
    text = _text_of_shape(shape)
    return f"## {' '.join(text.split())}" if text and _role(shape) in ("title", "ctrTitle") else text


def _text_of_shape(element: Element) -> str:
    breaks = {f"{A}br": "\n"}
    lines = (
        "".join(breaks.get(run.tag) or run.text or "" for run in paragraph.iter() if run.tag in (f"{A}t", f"{A}br"))
        for paragraph in element.iter(f"{A}p")
    )
    return "\n".join(line for line in lines if line.strip())


def _chart(root: Element) -> str:
    """Return the numbers of a chart as stored in the file: one line per category, one column per series."""
    series = list(root.iter(f"{C}ser"))
    names = [" ".join(_points(curve, "tx").values()) or f"series {number}" for number, curve in enumerate(series, 1)]
    columns = [_points(curve, "val", "yVal") for curve in series]
    labels = next(filter(None, (_points(curve, "cat", "xVal") for curve in series)), {})
    rows = [
        [labels.get(index, str(index + 1)), *(column.get(index, "") for column in columns)]
        for index in sorted(set().union(*columns))
    ]
    return "\n".join(["Chart:", *lines_of([["category", *names], *rows], expected=True)]) if rows else ""


def _points(series: Element, *parts: str) -> dict[int, str]:
    """Return the points of the first of these parts of a series that has any."""
    for part in parts:
        found = series.iterfind(f"{C}{part}//{C}pt")
        points = ((point.get("idx", ""), point.findtext(f"{C}v") or "") for point in found)
        if by_index := {int(index): value for index, value in points if index.isdecimal()}:
            return by_index
    return {}
