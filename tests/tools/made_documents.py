"""Documents for the tests, made from a few lines: the same bytes that office programs write, less what nobody reads."""

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from hira.tools.documents import reader
from hira.tools.documents.document import Document
from hira.tools.documents.parsing import parse_open
from hira.tools.documents.reader import Passages
from hira.tools.opening import ReadingChild, open_regular

RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
SLIDES = "http://schemas.openxmlformats.org/presentationml/2006/main"
TAB = "\t"
SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read_file(path: Path) -> Document:
    with open_regular(path) as file:
        return parse_open(file)


def read_passages(path: Path, child: ReadingChild | None = None, seconds: float | None = None) -> Passages:
    """What a child process with limits reads."""
    with nullcontext(child) if child else ReadingChild() as used, open_regular(path) as file:
        return reader.read_passages(used, file, seconds)


def zipped(path: Path, members: Mapping[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def related(*targets: tuple[str, str]) -> str:
    """Relations rId1, rId2, … to (kind, target)."""
    lines = "".join(
        f'<Relationship Id="rId{at}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for at, (kind, target) in enumerate(targets, 1)
    )
    return f'<Relationships xmlns="{RELATIONS}">{lines}</Relationships>'


def paragraph(text: str, style: str = "", *, listed: bool = False) -> str:
    about = f'<w:pStyle w:val="{style}"/>' if style else ""
    about += '<w:numPr><w:ilvl w:val="0"/></w:numPr>' if listed else ""
    return f"<w:p><w:pPr>{about}</w:pPr><w:r><w:t>{escape(text)}</w:t></w:r></w:p>"


def word_table(rows: Sequence[Sequence[str]]) -> str:
    def cell(text: str) -> str:
        return f"<w:tc>{text}</w:tc>" if text.startswith("<") else f"<w:tc>{paragraph(text)}</w:tc>"

    lines = ["<w:tr>" + "".join(map(cell, row)) + "</w:tr>" for row in rows]
    return f"<w:tbl>{''.join(lines)}</w:tbl>"


def docx(path: Path, body: str, *, title: str = "", more: Mapping[str, str | bytes] | None = None) -> Path:
    styles = "".join(
        f'<w:style w:styleId="{one}"><w:name w:val="{name}"/></w:style>'
        for one, name in (("Titel", "Title"), ("berschrift1", "heading 1"), ("berschrift2", "heading 2"))
    )
    members = {
        "word/document.xml": f'<?xml version="1.0"?><w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>',
        "word/styles.xml": f'<w:styles xmlns:w="{WORD}">{styles}</w:styles>',
        "docProps/core.xml": '<p:coreProperties xmlns:p="p" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{escape(title)}</dc:title></p:coreProperties>",
    }
    return zipped(path, members | (more or {}))


def shape(text: str, role: str = "") -> str:
    lines = "".join(f"<a:p><a:r><a:t>{escape(line)}</a:t></a:r></a:p>" for line in text.split("\n"))
    placeholder = f'<p:nvSpPr><p:nvPr><p:ph type="{role}"/></p:nvPr></p:nvSpPr>' if role else ""
    return f"<p:sp>{placeholder}<p:txBody>{lines}</p:txBody></p:sp>"


def slide_table(rows: Sequence[Sequence[str]]) -> str:
    def cell(text: str) -> str:
        return f"<a:tc><a:txBody><a:p><a:r><a:t>{escape(text)}</a:t></a:r></a:p></a:txBody></a:tc>"

    lines = "".join(f"<a:tr>{''.join(map(cell, row))}</a:tr>" for row in rows)
    return (
        f"<p:graphicFrame><a:graphic><a:graphicData><a:tbl>{lines}</a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
    )


def slide_xml(root: str, shapes: str) -> str:
    return f'<p:{root} xmlns:p="{SLIDES}" xmlns:a="{DRAWING}"><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:{root}>'


def pptx(path: Path, slides: Sequence[str], *, more: Mapping[str, str | bytes] | None = None) -> Path:
    """The first slide stands in the last file, so that the order has to be looked up."""
    count = len(slides)
    ids = "".join(f'<p:sldId id="{256 + at}" r:id="rId{at}"/>' for at in range(1, count + 1))
    names = [f"slides/slide{count - at}.xml" for at in range(count)]
    return zipped(
        path,
        {
            "ppt/presentation.xml": f'<p:presentation xmlns:p="{SLIDES}" xmlns:r="{OFFICE}"><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>',
            "ppt/_rels/presentation.xml.rels": related(*(("slide", name) for name in names)),
            **{f"ppt/{name}": slide_xml("sld", shapes) for name, shapes in zip(names, slides, strict=True)},
            **(more or {}),
        },
    )


def xlsx(path: Path, sheets: Mapping[str, str], *, texts: Sequence[str] = (), formats: Sequence[int] = ()) -> Path:
    """`sheets`: name → the XML of its rows; `formats`: the number format of each cell style."""
    listed = "".join(f'<sheet name="{name}" sheetId="{at}" r:id="rId{at}"/>' for at, name in enumerate(sheets, 1))
    styles = "".join(f'<xf numFmtId="{one}"/>' for one in formats)
    shared = "".join(f"<si><t>{escape(one)}</t></si>" for one in texts)
    files = {
        f"worksheets/sheet{at}.xml": f'<worksheet xmlns="{SHEETS}"><sheetData>{rows}</sheetData></worksheet>'
        for at, rows in enumerate(sheets.values(), 1)
    }
    members = {
        "workbook.xml": f'<workbook xmlns="{SHEETS}" xmlns:r="{OFFICE}"><sheets>{listed}</sheets></workbook>',
        "_rels/workbook.xml.rels": related(*(("worksheet", name) for name in files)),
        "sharedStrings.xml": f'<sst xmlns="{SHEETS}">{shared}</sst>',
        "styles.xml": f'<styleSheet xmlns="{SHEETS}"><cellXfs>{styles}</cellXfs></styleSheet>',
    }
    return zipped(path, {f"xl/{name}": content for name, content in (members | files).items()})


def rows(*lines: Sequence[object]) -> str:
    """Rows of a sheet from plain values: text, numbers, None for no cell, or a cell's own XML."""
    made = []
    for at, line in enumerate(lines, 1):
        cells = ""
        for column, value in enumerate(line):
            place = f"{chr(65 + column)}{at}"
            if isinstance(value, str) and value.startswith("<"):
                cells += value.replace("<c", f'<c r="{place}"', 1)
            elif isinstance(value, str):
                cells += f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
            elif value is not None:
                cells += f'<c r="{place}"><v>{value}</v></c>'
        made.append(f'<row r="{at}">{cells}</row>' if cells else "")
    return "".join(made)


def epub(path: Path, chapters: Sequence[tuple[str, str]], *, title: str = "") -> Path:
    items = "".join(
        f'<item id="c{at}" href="text/c%20{at}.xhtml" media-type="application/xhtml+xml"/>'
        for at in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{at}"/>' for at in range(len(chapters)))
    members = {
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        '<rootfile full-path="OEBPS/book.opf"/></container>',
        "OEBPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{title}</dc:title></metadata><manifest>{items}</manifest><spine>{spine}</spine></package>",
    }
    for at, (name, body) in enumerate(chapters):
        html = f"<!DOCTYPE html><html><head><title>{name}</title></head><body><h1>{name}</h1>{body}</body></html>"
        members[f"OEBPS/text/c {at}.xhtml"] = html
    return zipped(path, members)


def pdf(path: Path, pages: Sequence[str], *, title: str = "", labels: str = "") -> Path:
    """A PDF by hand: one font, one content stream a page; an empty string makes a page with nothing to read. A tab
    moves to the next of the columns. `labels` are the pages' printed numbers, as PDF writes them."""
    labelled = f" /PageLabels << /Nums [{labels}] >>" if labels else ""
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R{labelled} >>",
        "",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    kids = []
    for text in pages:
        escaped = text.replace("(", r"\(").replace(")", r"\)")
        lines = " ".join(
            " ".join(f"({cell}) Tj 150 0 Td" for cell in line.split("\t")) + f" {-150 * line.count(TAB) - 150} -14 Td"
            if TAB in line
            else f"({line}) Tj T*"
            for line in escaped.split("\n")
            if line
        )
        stream = f"BT /F1 12 Tf 14 TL 50 750 Td {lines} ET"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>"
            f" /Contents {len(objects)} 0 R >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    objects.append(f"<< /Title ({title}) >>")
    data, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(f"{len(data):010d} 00000 n \n")
        data += f"{number} 0 obj\n{content}\nendobj\n".encode("latin-1")
    size = len(objects) + 1
    table = f"xref\n0 {size}\n0000000000 65535 f \n{''.join(places)}"
    end = f"trailer << /Size {size} /Root 1 0 R /Info {size - 1} 0 R >>\nstartxref\n{len(data)}\n%%EOF\n"
    path.write_bytes(data + (table + end).encode())
    return path


def slow_pdf(path: Path, pages: int = 20, lines: int = 300_000) -> Path:
    """A PDF of a few kilobytes whose pages share one packed content: each takes pypdf about a second."""
    stream = zlib.compress(b"BT /F1 12 Tf " + b"(a) Tj T* " * lines + b"ET", 9)
    head = (
        "%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n"
        f"2 0 obj\n<< /Type /Pages /Kids [{'4 0 R ' * pages}] /Count {pages} >>\nendobj\n"
        "3 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>\nendobj\n"
        "4 0 obj\n<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>\nendobj\n"
        f"5 0 obj\n<< /Length {len(stream)} /Filter /FlateDecode >>\nstream\n"
    ).encode()
    data = head + stream + b"\nendstream\nendobj\n"
    places = "".join(f"{data.index(b'%d 0 obj' % number):010d} 00000 n \n" for number in range(1, 6))
    table = f"xref\n0 6\n0000000000 65535 f \n{places}trailer << /Size 6 /Root 1 0 R >>\n"
    return written(path, data + table.encode() + f"startxref\n{len(data)}\n%%EOF\n".encode())


def video(path: Path, colours: Sequence[str], *, rate: int = 5) -> Path:
    """A film of a second of each colour. The test is skipped where the libraries are missing."""
    av: Any = pytest.importorskip("av")
    image: Any = pytest.importorskip("PIL.Image")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=rate)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for colour in colours:
            for _ in range(rate):
                container.mux(stream.encode(av.VideoFrame.from_image(image.new("RGB", (64, 48), colour))))
        container.mux(stream.encode())
    return path
