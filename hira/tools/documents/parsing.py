"""A file of any kind as a `Document`; the name decides about its kind only if the content is inconclusive."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from hira.core.errors import ToolError
from hira.core.sanitize import is_text, printable
from hira.tools.charsets import decode_text
from hira.tools.documents import plain
from hira.tools.documents.archive import open_archive
from hira.tools.documents.document import Document, NoText, Part
from hira.tools.documents.markup import READERS
from hira.tools.documents.office import check_library, read_docx, read_pdf, read_pptx
from hira.tools.documents.own_files import is_own_text
from hira.tools.documents.plain import read_epub, read_html
from hira.tools.documents.sheets import read_xlsx
from hira.tools.documents.walk import MEDIA
from hira.tools.opening import OpenFile, explaining

SHORT = 50_000
"""Bytes of a plain text that takes less time to read than to send."""
START = 1024
"""Bytes of a file in which a PDF file says that it is one."""
_OLD = {".doc": ".docx", ".xls": ".xlsx", ".ppt": ".pptx"}


Reader = Callable[[Path, BinaryIO], Document]


def parse_open(file: OpenFile) -> Document:
    """Parse an open file in this process; `read_passages` does so in a process with limits.

    Raises `ToolError` with one line that says why the file cannot be read.
    """
    with explaining(file.path):
        reader = _choose_reader(file)
        with file.rewind() as data:
            document = reader(file.path, data)
        if is_text(f"{document.title}{document.text}"):
            return document
        # lone surrogates, which JSON can hold, can be neither stored nor sent
        parts = tuple(replace(part, text=printable(part.text), place=printable(part.place)) for part in document.parts)
        return replace(document, title=printable(document.title), parts=parts)


def _choose_reader(file: OpenFile) -> Reader:
    """Return the reader for a file's name, unless its first bytes contradict that. Raises `ToolError` without one."""
    path, suffix = file.path, file.path.suffix.lower()
    if not file.size:
        raise NoText(f"{path.name} is empty")
    if suffix in MEDIA:
        raise NoText(f"{path.name} holds no text; it is for the multimodal expert to look at or listen to")
    if suffix in _OLD:
        raise ToolError(f"{path.name} is in an old Office format; save it as {_OLD[suffix]}")
    start = file.rewind().read(START)
    if b"%PDF-" in start:
        return read_pdf
    return _BINARY.get(suffix) or (_read_zip if start.startswith(b"PK\x03\x04") else _read_text)


def _read_text(path: Path, data: BinaryIO) -> Document:
    decoded = decode_text(data.read())
    if decoded is None:
        raise NoText(f"{path.name} is binary, of no kind that can be read as text")
    text, remark = decoded
    if text.startswith("{\\rtf"):
        raise ToolError(f"{path.name} is in Rich Text Format; save it as .docx or .txt")
    suffix = path.suffix.lower()
    document = _TEXT.get(suffix, plain.read_prose if suffix in plain.PROSE else plain.read_code)(path, text)
    return replace(document, remark=remark, is_own=is_own_text(text, suffix))


def _read_zip(path: Path, data: BinaryIO) -> Document:
    """Read an office file with another suffix, otherwise list the content of the archive."""
    with open_archive(path, data) as archive:
        for mark, read in _INSIDE.items():
            if mark in archive.names:
                return read(path, data)
        members = [member for member in archive.zip.infolist() if not member.is_dir()]
    lines = [f"This archive holds {len(members)} files:"]
    for member in members:
        date = "-".join(f"{part:02d}" for part in member.date_time[:3])
        lines.append(f"{' '.join(member.filename.split())} | {member.file_size} bytes | {date}")
    return Document(path.name, (Part("\n".join(lines)),))


_BINARY: dict[str, Reader] = {
    ".pdf": read_pdf,
    **dict.fromkeys((".docx", ".docm"), read_docx),
    **dict.fromkeys((".pptx", ".pptm"), read_pptx),
    **dict.fromkeys((".xlsx", ".xlsm"), read_xlsx),
    ".epub": read_epub,
    ".eml": plain.read_mail,
    ".zip": _read_zip,
}
_INSIDE: dict[str, Reader] = {
    "word/document.xml": read_docx,
    "ppt/presentation.xml": read_pptx,
    "xl/workbook.xml": read_xlsx,
    "META-INF/container.xml": read_epub,
}
_TEXT: dict[str, Callable[[Path, str], Document]] = {
    **dict.fromkeys((".html", ".htm", ".xhtml"), read_html),
    **dict.fromkeys((".csv", ".tsv"), plain.read_table),
    ".json": plain.read_json,
    **dict.fromkeys((".jsonl", ".ndjson"), plain.read_jsonl),
    ".ipynb": plain.read_notebook,
    **dict.fromkeys(READERS, plain.read_marked),
}


def is_short(file: OpenFile) -> bool:
    """Return whether the file is a short plain text, to be read at once. Raises `ToolError` if it is unreadable."""
    reader = _choose_reader(file)
    if reader is read_pdf:
        check_library(file.path)
    return reader is _read_text and file.path.suffix.lower() not in _TEXT and file.size <= SHORT
