"""PowerPoint presentations (.pptx): one part a slide, with its tables, the numbers of its charts and its notes."""

from pathlib import Path
from xml.etree.ElementTree import Element

from hira.core.errors import ToolError
from hira.tools.documents.archive import Archive, open_archive, outermost
from hira.tools.documents.document import Document, Part, add_title
from hira.tools.documents.tables import lines_of

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_MAIN = "ppt/presentation.xml"
_SHAPES = (f"{P}sp", f"{P}graphicFrame")
"""Shapes and tables; the order of the file is the reading order."""


def read_pptx(path: Path) -> Document:
    with open_archive(path) as archive:
        if _MAIN not in archive.names:
            raise ToolError(f"{path.name} is not a PowerPoint presentation: it contains no slides")
        targets = archive.relations(_MAIN)
        ids = [one.get(f"{R}id", "") for one in archive.xml(_MAIN).iter(f"{P}sldId")]
        names = [targets[one][1] for one in ids if one in targets]
        parts = tuple(_slide(archive, name, number) for number, name in enumerate(names, 1))
        return add_title(path, parts, archive.title())


def _slide(archive: Archive, name: str, number: int) -> Part:
    root = archive.xml(name)
    linked = list(archive.relations(name).values())
    blocks = [block for shape in outermost(root, _SHAPES) if (block := _block(shape))]
    for kind, target in linked:
        if kind == "chart" and target in archive.names:
            blocks += _chart(archive.xml(target))
    for kind, target in linked:
        if kind == "notesSlide" and target in archive.names:
            notes = [_block(shape) for shape in outermost(archive.xml(target), _SHAPES) if _role(shape) == "body"]
            blocks += [f"Notes: {note}" for note in notes if note]
    text = "\n\n".join(blocks)
    pictured = any(kind in ("image", "video", "media") for kind, _ in linked)
    return Part(text, f"slide {number}", media=not text and pictured)


def _role(shape: Element) -> str:
    placeholder = shape.find(f"{P}nvSpPr/{P}nvPr/{P}ph")
    return "" if placeholder is None else placeholder.get("type", "body")


def _block(shape: Element) -> str:
    """The text of one shape: a heading if it is the slide's title, a table's rows, else its paragraphs."""
    table = next(shape.iter(f"{A}tbl"), None)
    if table is not None:
        rows = [[_text(cell) for cell in row.iter(f"{A}tc")] for row in table.iter(f"{A}tr")]
        return "\n".join(lines_of(rows))
    if _role(shape) in ("sldNum", "dt", "ftr"):
        return ""
    text = _text(shape)
    return f"## {' '.join(text.split())}" if text and _role(shape) in ("title", "ctrTitle") else text


def _text(element: Element) -> str:
    lines = (
        "".join("\n" if one.tag == f"{A}br" else one.text or "" for one in paragraph.iter() if one.tag in _RUNS)
        for paragraph in element.iter(f"{A}p")
    )
    return "\n".join(line for line in lines if line.strip())


_RUNS = (f"{A}t", f"{A}br")


def _chart(root: Element) -> list[str]:
    """The numbers of a chart as the file keeps them: one line a category, one column a series."""
    series = list(root.iter(f"{C}ser"))
    names = [_joined(one.find(f"{C}tx")) or f"series {number}" for number, one in enumerate(series, 1)]
    columns = [_points(one.find(f"{C}val")) or _points(one.find(f"{C}yVal")) for one in series]
    labels = next(
        (found for one in series if (found := _points(one.find(f"{C}cat")) or _points(one.find(f"{C}xVal")))), {}
    )
    rows = [
        [labels.get(at, str(at + 1)), *(column.get(at, "") for column in columns)]
        for at in sorted(set().union(*columns))
    ]
    return ["\n".join(["Chart:", *lines_of([["category", *names], *rows], expected=True)])] if rows else []


def _points(element: Element | None) -> dict[int, str]:
    if element is None:
        return {}
    points = ((point.get("idx", ""), point.findtext(f"{C}v") or "") for point in element.iter(f"{C}pt"))
    return {int(at): value for at, value in points if at.isdecimal()}


def _joined(element: Element | None) -> str:
    return " ".join(_points(element).values())
