"""Word documents (.docx): paragraphs, headings, lists, tables and notes in the order of the text."""

from pathlib import Path
from xml.etree.ElementTree import Element

from hira.core.errors import ToolError
from hira.tools.documents.archive import FALLBACK, Archive, open_archive, outermost
from hira.tools.documents.document import Document, Part, add_title
from hira.tools.documents.tables import lines_of

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_GONE = (FALLBACK, f"{W}pPr", f"{W}del", f"{W}moveFrom")
_BLANKS = {f"{W}tab": "\t", f"{W}br": "\n", f"{W}cr": "\n", f"{W}noBreakHyphen": "-"}
_DEEPEST = 6
_WIDEST = 200


def read_docx(path: Path) -> Document:
    with open_archive(path) as archive:
        if "word/document.xml" not in archive.names:
            raise ToolError(f"{path.name} is not a Word document: it contains no text")
        levels = _levels(archive)
        body = archive.xml("word/document.xml")
        notes = [line for kind in ("footnote", "endnote") for line in _notes(archive, kind)]
        text = "\n\n".join([*_blocks(body, levels), *notes])
        pictures = any(name.startswith("word/media/") for name in archive.names)
        return add_title(path, (Part(text, media=not text and pictures),), archive.title())


def _levels(archive: Archive) -> dict[str, int]:
    """Style id → heading level. Style names are the same in every language version of Word; ids are not."""
    found: dict[str, int] = {}
    if "word/styles.xml" in archive.names:
        for style in archive.xml("word/styles.xml").iter(f"{W}style"):
            name = style.find(f"{W}name")
            words = ("" if name is None else name.get(f"{W}val", "")).lower().split()
            if words == ["title"]:
                found[style.get(f"{W}styleId", "")] = 1
            elif len(words) == 2 and words[0] == "heading" and words[1].isdecimal():
                found[style.get(f"{W}styleId", "")] = min(int(words[1]), _DEEPEST)
    return found


def _blocks(root: Element, levels: dict[str, int]) -> list[str]:
    """Paragraphs and tables in the order of the text; consecutive list items and rows stay together."""
    found: list[str] = []
    for element in outermost(root, (f"{W}p", f"{W}tbl")):
        if element.tag == f"{W}tbl":
            found.append("\n".join(lines_of(_rows(element))))
            continue
        text = _text(element).strip()
        listed = element.find(f"{W}pPr/{W}numPr") is not None
        level = _level(element, levels)
        if text and level:
            found.append(f"{'#' * level} {' '.join(text.split())}")
        elif text and listed and found and found[-1].startswith("- "):
            found[-1] += f"\n- {text}"
        elif text:
            found.append(f"- {text}" if listed else text)
    return [block for block in found if block]


def _level(paragraph: Element, levels: dict[str, int]) -> int:
    style = paragraph.find(f"{W}pPr/{W}pStyle")
    outline = paragraph.find(f"{W}pPr/{W}outlineLvl")
    if outline is not None and outline.get(f"{W}val", "").isdecimal():
        return min(int(outline.get(f"{W}val", "")) + 1, _DEEPEST)
    return levels.get(style.get(f"{W}val", ""), 0) if style is not None else 0


def _text(element: Element) -> str:
    """The text below an element, without what tracked changes deleted or moved; paragraphs inside it end their line."""
    pieces: list[str] = []
    waiting = list(reversed(element))
    while waiting:
        one = waiting.pop()
        if one.tag == f"{W}t":
            pieces.append(one.text or "")
        elif one.tag in _BLANKS:
            pieces.append(_BLANKS[one.tag])
        elif one.tag == f"{W}footnoteReference":
            pieces.append(f"[^{one.get(f'{W}id', '')}]")
        elif one.tag not in _GONE:
            if one.tag == f"{W}p" and pieces:
                pieces.append("\n")
            waiting += reversed(one)
    return "".join(pieces)


def _rows(table: Element) -> list[list[str]]:
    """The cells of a table. A cell merged downwards is repeated in each row, one merged sideways leaves gaps."""
    rows: list[list[str]] = []
    for row in outermost(table, (f"{W}tr",)):
        cells: list[str] = []
        for cell in row.findall(f"{W}tc"):
            text = _text(cell).strip()
            merged = cell.find(f"{W}tcPr/{W}vMerge")
            if merged is not None and merged.get(f"{W}val") != "restart" and rows and len(cells) < len(rows[-1]):
                text = rows[-1][len(cells)]
            span = cell.find(f"{W}tcPr/{W}gridSpan")
            wide = span.get(f"{W}val", "1") if span is not None else "1"
            cells += [text, *[""] * (min(int(wide), _WIDEST) - 1 if wide.isdecimal() else 0)]
        rows.append(cells)
    return rows


def _notes(archive: Archive, kind: str) -> list[str]:
    name = f"word/{kind}s.xml"
    if name not in archive.names:
        return []
    found = ((note.get(f"{W}id", ""), _text(note).strip()) for note in archive.xml(name).iter(f"{W}{kind}"))
    return [f"[^{number}] {text}" for number, text in found if text]
