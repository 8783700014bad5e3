"""Text files, tables, notebooks, mails, HTML pages and books (.epub)."""

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from email import message_from_binary_file, policy
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO
from urllib.parse import unquote

from hira.core.errors import ToolError
from hira.tools.charsets import decode_file
from hira.tools.documents.archive import open_archive
from hira.tools.documents.document import FENCE, Document, Part, add_title
from hira.tools.documents.markup import READERS
from hira.tools.documents.sheets import read_csv

_ITEM = re.compile(r"\s*(?:[-*•‣▪–+|#>=~`]|\d{1,3}[.)]\s|\(?[a-zA-Z0-9]{1,3}\)\s|\[\^?\w+\])")
_NUMBERS = re.compile(r"\d+(?:[.,]\d+)*%?")
_FULL = 0.8
_SHORTEST = 40
_FIGURES = 4


def reflow(text: str) -> str:
    """Join lines that were broken because they were full. Lists, tables, headings, code and verse keep their lines."""
    return _join_lines(text)[0]


def _join_lines(text: str, known: Sequence[int] = ()) -> tuple[str, tuple[int, ...]]:
    """Return the text with broken lines joined, and for each of its lines the number of its first line before; `known`
    are the numbers of the lines, if they do not follow one another."""
    lines = text.split("\n")
    lengths = sorted(len(line) for line in lines if len(line) >= _SHORTEST)
    known = known or range(1, len(lines) + 1)
    if not lengths:
        return text, tuple(known)
    full = max(_SHORTEST, _FULL * lengths[(len(lengths) - 1) * 9 // 10])
    paragraphs: list[list[str]] = []
    numbers = array("L")
    fenced = open_ = False
    for number, line in zip(known, lines, strict=True):
        if FENCE.match(line):
            fenced, open_ = not fenced, False
            paragraphs.append([line])
            numbers.append(number)
            continue
        if open_ and line.strip() and not _ITEM.match(line) and not _figures(line):
            paragraphs[-1][-1] = paragraphs[-1][-1].rstrip()
            paragraphs[-1].append(line.strip())
        else:
            paragraphs.append([line])
            numbers.append(number)
        open_ = not fenced and len(line.rstrip()) >= full and not line.startswith(("    ", "\t", "|", "#"))
    return "\n".join(" ".join(lines) for lines in paragraphs), tuple(numbers)


def _figures(line: str) -> bool:
    """Return whether a line is a row of numbers: at least four, and a third of the words."""
    return len(_NUMBERS.findall(line)) >= max(_FIGURES, len(line.split()) / 3)


PROSE = frozenset(["", ".txt", ".text", ".md", ".markdown"])
_WHOLE = 5_000


def read_prose(path: Path, text: str) -> Document:
    joined, numbers = _join_lines(text)
    return add_title(path, (Part(joined, lines=numbers),))


def read_code(path: Path, text: str) -> Document:
    """Read a program, settings or a log: the text stays as it is."""
    return Document(path.name, (Part(text, lines=_number_lines(text)),))


def _number_lines(text: str) -> tuple[int, ...]:
    return tuple(range(1, text.count("\n") + 2))


def read_table(path: Path, text: str) -> Document:
    shown, rows = read_csv(text, "\t" if path.suffix.lower() == ".tsv" else "")
    return Document(path.stem, (Part(shown, lines=rows, unit="row"),))


def read_json(path: Path, text: str) -> Document:
    """Read JSON: each record of a list, and each value elsewhere, becomes a line that names its place.

    Invalid JSON, and JSON that is nested too deeply, stays as it is.
    """
    try:
        value = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
        return Document(path.stem, (Part("\n".join(_records(value))),))
    except (ValueError, RecursionError):
        return Document(path.stem, (Part(text, lines=_number_lines(text)),))


def read_jsonl(path: Path, text: str) -> Document:
    records: dict[int, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        try:
            record = _record(json.loads(line, parse_int=str, parse_float=str, parse_constant=str))
        except (ValueError, RecursionError):
            record = line
        if record.strip():
            records[number] = record
    return Document(path.stem, (Part("\n".join(records.values()), lines=tuple(records)),))


def read_marked(path: Path, text: str) -> Document:
    """Read a text in another markup than Markdown (.rst, .org, .tex), with its headings, tables and lines."""
    title, lines = READERS[path.suffix.lower()](text)
    joined, numbers = _join_lines("\n".join(line for line, _ in lines), [number for _, number in lines])
    return add_title(path, (Part(joined, lines=numbers),), title)


def read_notebook(path: Path, text: str) -> Document:
    """Read the cells of a Jupyter notebook with their printed text."""
    try:
        cells = json.loads(text)["cells"]
        blocks = [(block, number) for number, cell in enumerate(cells, 1) for block in _cell(cell) if block.strip()]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return read_json(path, text)
    joined = "\n\n".join(block for block, _ in blocks)
    numbers = [number for block, number in blocks for _ in f"{block}\n".split("\n")][: joined.count("\n") + 1]
    return add_title(path, (Part(joined, lines=tuple(numbers), unit="cell"),))


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell.get("source", ""))
    yield source if cell.get("cell_type") == "markdown" else f"```\n{source}\n```"
    for output in cell.get("outputs", ()):
        printed = output.get("text") or output.get("data", {}).get("text/plain", "")
        if text := "".join(printed)[:_WHOLE]:
            yield f"Output:\n{text}"


def _records(value: Any, name: str = "") -> Iterator[str]:
    """Yield one line per record of a list of records, and one line per value elsewhere."""
    nested = any(isinstance(child, dict | list) for child in _children(value))
    if nested and isinstance(value, dict):
        for key, child in value.items():
            yield from _records(child, f"{name}.{key}" if name else str(key))
    elif nested:
        if name:
            yield f"\n## {name}\n"
        yield from map(_record, value)
    else:
        yield f"{name}: {_record(value)}" if name else _record(value)


def _record(value: Any) -> str:
    """Return a value on one line: "name: Ada | address.city: London | tags: a, b"."""
    return " | ".join(f"{name}: {text}" if name else text for name, text in _leaves(value, ""))


def _leaves(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _leaves(child, f"{name}.{key}" if name else str(key))
    elif any(isinstance(child, dict | list) for child in _children(value)):
        for number, child in enumerate(value, 1):
            yield from _leaves(child, f"{name}[{number}]")
    else:
        yield name, ", ".join(map(_scalar, value)) if isinstance(value, list) else _scalar(value)


def _children(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _scalar(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return " ".join(str(value).split())


def page_of(html: str) -> tuple[str, str]:
    """Return the title and the readable text of an HTML page."""
    from hira.tools.pages import extract

    page = extract(html)
    return page.title, page.text


def read_html(path: Path, text: str) -> Document:
    title, readable = page_of(text)
    return add_title(path, (Part(readable),), title)


def read_mail(path: Path, data: BinaryIO) -> Document:
    """Read a mail: its sender, receivers and date, its text, and the names of its attachments."""
    mail = message_from_binary_file(data, policy=policy.default)
    body = mail.get_body(("plain", "html"))
    payload = None if body is None else body.get_payload(decode=True)
    text = decode_file(payload) or "" if isinstance(payload, bytes) else ""
    if body is not None and body.get_content_type() == "text/html":
        text = page_of(text)[1]
    head = [f"{name}: {' '.join(str(mail[name]).split())}" for name in _MAIL_HEAD if mail[name]]
    attached = [f"Attachment: {' '.join((part.get_filename() or '').split())}" for part in mail.iter_attachments()]
    if not (head or text.strip()):
        raise ToolError(f"{path.name} is not a mail: it has neither a sender nor a text")
    parts = (Part("\n\n".join(filter(str.strip, ("\n".join(head), reflow(text), "\n".join(attached))))),)
    return add_title(path, parts, " ".join(str(mail["Subject"] or "").split()))


_MAIL_HEAD = ("Subject", "From", "To", "Cc", "Date")
_CONTAINER = "META-INF/container.xml"
_OPF = "{http://www.idpf.org/2007/opf}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_PAGES = ("application/xhtml+xml", "text/html")


def read_epub(path: Path, data: BinaryIO) -> Document:
    """Read a book, chapter by chapter, in reading order (the spine of EPUB, otherwise the order of its manifest)."""
    with open_archive(path, data, _CONTAINER, "a book: it names no content") as archive:
        rootfile = next(archive.xml(_CONTAINER).iter("{urn:oasis:names:tc:opendocument:xmlns:container}rootfile"), None)
        package = "" if rootfile is None else rootfile.get("full-path", "")
        root = archive.xml(package)
        parts: list[Part] = []
        folder = PurePosixPath(package).parent
        items = {
            item.get("id", ""): str(folder / unquote(item.get("href", "")))
            for item in root.iter(f"{_OPF}item")
            if item.get("media-type") in _PAGES and "nav" not in item.get("properties", "").split()
        }
        spine = [items.get(reference.get("idref", ""), "") for reference in root.iter(f"{_OPF}itemref")]
        for name in dict.fromkeys(spine if any(spine) else items.values()):
            title, text = page_of(decode_file(archive.read(name)) or "") if name in archive.names else ("", "")
            if text:
                number = len(parts) + 1
                parts.append(Part(text, f"chapter {number}: {title}" if title else f"chapter {number}"))
        return add_title(path, tuple(parts), root.findtext(f"{_OPF}metadata/{_DC}title") or "")
