"""One file, of any kind, as a `Document` or as its passages. The content decides, the name only if the content is
inconclusive.

Files are parsed in a child process with limits, so that a hostile file can fail only its own reading. One child serves
the whole process, however many clients it has. Only short plain text, which needs no parser, is read at once.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Self

from hira.core.errors import ToolError
from hira.core.sanitize import is_text, printable
from hira.tools.charsets import decode_file
from hira.tools.documents import plain
from hira.tools.documents.archive import open_archive
from hira.tools.documents.document import Document, NoText, Part, Piece, cut
from hira.tools.documents.office import check_library, read_docx, read_pdf, read_pptx
from hira.tools.documents.plain import read_epub, read_html
from hira.tools.documents.sheets import read_xlsx
from hira.tools.opening import OpenFile, ReadingChild, explaining, open_regular

SHORT = 50_000
"""Bytes of a plain text that takes less time to read than to send."""
_PICTURES = [".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".avif", ".ico"]
_SOUNDS = [".mp3", ".wav", ".flac", ".ogg", ".m4a", ".aac", ".opus"]
MEDIA = frozenset([*_PICTURES, *_SOUNDS, ".mp4", ".mov", ".mkv", ".avi", ".webm"])
_START = 1024
WHOLE = 30_000
"""Characters of a file that may be shown whole."""
_TOGETHER, _PIECES = 1_000_000, 1_000
"""Characters and passages of a file that are sent at once: few enough not to hold up the event loop."""
_OLD = {".doc": ".docx", ".xls": ".xlsx", ".ppt": ".pptx"}


def parse_file(path: Path) -> Document:
    """Parse a file in this process; `FileReader` does so in a process with limits.

    Raises `ToolError` with one line that says why the file cannot be read.
    """
    with explaining(path), open_regular(path) as file:
        return parse_open(file)


def parse_open(file: OpenFile) -> Document:
    """Parse an open file in this process."""
    return _parse(file.path, _choose_reader(file), file.rewind())


def _parse(path: Path, reader: "Reader", data: BinaryIO) -> Document:
    with explaining(path), data:
        return _make_sendable(reader(path, data))


def _choose_reader(file: OpenFile) -> "Reader":
    """Return the reader for the file's name, unless the first bytes contradict the name. Raises `ToolError` for a file
    that has no reader."""
    path, suffix = file.path, file.path.suffix.lower()
    if not file.size:
        raise NoText(f"{path.name} is empty")
    if suffix in MEDIA:
        raise NoText(f"{path.name} holds no text; it is for the multimodal expert to look at or listen to")
    if suffix in _OLD:
        raise ToolError(f"{path.name} is in an old Office format; save it as {_OLD[suffix]}")
    start = file.rewind().read(_START)
    if b"%PDF-" in start:
        return read_pdf
    return _BINARY.get(suffix) or (_read_zip if start.startswith(b"PK\x03\x04") else _read_text)


def check_readable(path: Path) -> None:
    """Raise `Lacking` for a file that no installed package can read; faults of the file itself are not checked."""
    if path.is_file():
        with path.open("rb") as file:
            if b"%PDF-" in file.read(_START):
                check_library(path)


def _make_sendable(document: Document) -> Document:
    """Replace lone surrogates, which JSON can hold and which can be neither stored nor sent."""
    if is_text(f"{document.title}{document.text}"):
        return document
    parts = tuple(replace(part, text=printable(part.text), place=printable(part.place)) for part in document.parts)
    return replace(document, title=printable(document.title), parts=parts)


def _read_text(path: Path, data: BinaryIO) -> Document:
    text = decode_file(data.read())
    if text is None:
        raise NoText(f"{path.name} is binary, of no kind that can be read as text")
    if text.startswith("{\\rtf"):
        raise ToolError(f"{path.name} is in Rich Text Format; save it as .docx or .txt")
    suffix = path.suffix.lower()
    return _TEXT.get(suffix, plain.read_prose if suffix in plain.PROSE else plain.read_code)(path, text)


def _read_zip(path: Path, data: BinaryIO) -> Document:
    """Read an office file with another suffix, otherwise list the content of the archive."""
    with open_archive(path, data) as archive:
        for mark, read in _INSIDE.items():
            if mark in archive.names:
                return read(path, data)
        listed = [
            f"{' '.join(member.filename.split())} | {member.file_size} bytes"
            f" | {'-'.join(f'{part:02d}' for part in member.date_time[:3])}"
            for member in archive.zip.infolist()
            if not member.is_dir()
        ]
    return Document(path.name, (Part("\n".join([f"This archive holds {len(listed)} files:", *listed])),))


_BINARY: dict[str, "Reader"] = {
    ".pdf": read_pdf,
    ".docx": read_docx,
    ".docm": read_docx,
    ".pptx": read_pptx,
    ".pptm": read_pptx,
    ".xlsx": read_xlsx,
    ".xlsm": read_xlsx,
    ".epub": read_epub,
    ".zip": _read_zip,
}
_INSIDE: dict[str, "Reader"] = {
    "word/document.xml": read_docx,
    "ppt/presentation.xml": read_pptx,
    "xl/workbook.xml": read_xlsx,
    "META-INF/container.xml": read_epub,
}
_TEXT: dict[str, Callable[[Path, str], Document]] = {
    ".html": read_html,
    ".htm": read_html,
    ".xhtml": read_html,
    ".csv": plain.read_table,
    ".tsv": plain.read_table,
    ".json": plain.read_json,
    ".jsonl": plain.read_jsonl,
    ".ndjson": plain.read_jsonl,
    ".ipynb": plain.read_notebook,
}


Reader = Callable[[Path, BinaryIO], Document]
_MORE = "\0"
"""In place of a part's name: the text continues the part before."""


@dataclass(frozen=True, slots=True)
class Passages:
    """A file that was read, cut into passages; `unread` are the places that hold no text but something to see. `text`
    is the whole text of a short file, empty for others."""

    title: str
    unread: tuple[str, ...]
    pieces: tuple[Piece, ...]
    text: str = ""


def send_parts(handle: int, path: Path) -> Iterator[tuple[str, str, bool]]:
    """Yield the title, then each part: place, text and whether it is something to see. The text of a long part comes
    in several, the later of which name no place. Runs in the child."""
    document = _parse_handle(handle, path)
    yield document.title, "", False
    for part in document.parts:
        yield part.place, part.text[:_TOGETHER], part.media
        for start in range(_TOGETHER, len(part.text), _TOGETHER):
            yield _MORE, part.text[start : start + _TOGETHER], False


def send_passages(handle: int, path: Path) -> Iterator[Passages]:
    """Yield the file with its first passages, then the others, several at a time. Runs in the child."""
    read = _cut_passages(_parse_handle(handle, path))
    yield replace(read, pieces=read.pieces[:_PIECES])
    for start in range(_PIECES, len(read.pieces), _PIECES):
        yield Passages("", (), read.pieces[start : start + _PIECES])


def _cut_passages(document: Document) -> Passages:
    text = document.text if sum(len(part.text) for part in document.parts) <= WHOLE else ""
    return Passages(document.title, tuple(document.unread), tuple(cut(document)), text)


def _parse_handle(handle: int, path: Path) -> Document:
    with explaining(path):
        return parse_open(OpenFile(path, handle, os.fstat(handle)))


class FileReader:
    """Reads files of any kind in the child that all readers of this process share. Methods block, so call them in a
    thread; `close` may be called from another one. `seconds` limits the time of each file further."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        self._child = ReadingChild()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, path: Path) -> Document:
        """Read a file of at most 200 MB. Raises `ToolError` with one line that says why it cannot be read."""
        with explaining(path), open_regular(path) as file:
            if _is_short(file):
                return parse_open(file)
            (title, _, _), *parts = self._child.collect(send_parts, file, seconds=self.seconds)
            return Document(title, tuple(_join_parts(parts)))

    def read_passages(self, file: OpenFile, seconds: float | None = None) -> Passages:
        """Read the passages of an open file. Raises `ToolError`, or `Deferred` if it takes more than `seconds`."""
        with explaining(file.path):
            if _is_short(file):
                return _cut_passages(parse_open(file))
            sent = self._child.collect(send_passages, file, seconds=seconds)
            return replace(sent[0], pieces=tuple(piece for passages in sent for piece in passages.pieces))

    def close(self) -> None:
        """End a read in progress with a `ToolError`, and the child, unless other readers need it."""
        self._child.close()


def _is_short(file: OpenFile) -> bool:
    """Return whether the file is a short plain text, which is read at once. Raises `ToolError` for a file that cannot
    be read at all."""
    reader = _choose_reader(file)
    if reader is read_pdf:
        check_library(file.path)
    return reader is _read_text and file.path.suffix.lower() not in _TEXT and file.size <= SHORT


def _join_parts(sent: list[tuple[str, str, bool]]) -> Iterator[Part]:
    index = 0
    while index < len(sent):
        place, _, media = sent[index]
        texts = [sent[index][1]]
        index += 1
        while index < len(sent) and sent[index][0] == _MORE:
            texts.append(sent[index][1])
            index += 1
        yield Part("".join(texts), place, media)


def read_file(path: Path) -> Document:
    """Read one file as `FileReader.read` does. Blocking."""
    with FileReader() as reader:
        return reader.read(path)
