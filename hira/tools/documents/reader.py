"""One file, of any kind, as a `Document`. The content decides, the name only if the content is inconclusive.

Files are parsed in a child process with limits, so that a hostile file can fail only its own reading. Plain text needs
no parser and is read at once. For everything else one child serves a whole folder.
"""

import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

from hira.core.errors import ToolError
from hira.core.sanitize import is_text, printable
from hira.core.worker import LIMITS, Worker, WorkerError, WorkerLimits
from hira.tools.charsets import decode_file
from hira.tools.documents import plain
from hira.tools.documents.archive import open_archive
from hira.tools.documents.document import Document, NoText, Part
from hira.tools.documents.office import check_library, read_docx, read_pdf, read_pptx
from hira.tools.documents.plain import read_epub, read_html
from hira.tools.documents.sheets import read_xlsx

LIMIT = 200 * 1024 * 1024
_PICTURES = [".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".avif", ".ico"]
_SOUNDS = [".mp3", ".wav", ".flac", ".ogg", ".m4a", ".aac", ".opus"]
MEDIA = frozenset([*_PICTURES, *_SOUNDS, ".mp4", ".mov", ".mkv", ".avi", ".webm"])
_SHOWN = 100
_OLD = {".doc": ".docx", ".xls": ".xlsx", ".ppt": ".pptx"}


def parse_file(path: Path) -> Document:
    """Parse a file in this process; `FileReader` does so in a process with limits.

    Raises `ToolError` with one line that says why the file cannot be read.
    """
    with _explaining(path):
        return _make_sendable(_choose_reader(path)(path))


@contextmanager
def _explaining(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong with a file into a `ToolError` of one line."""
    try:
        yield
    except ToolError:
        raise
    except FileNotFoundError:
        raise ToolError(f"{path} does not exist") from None
    except OSError as error:
        raise ToolError(f"{path.name} cannot be read: {error.strerror or error}") from None
    except MemoryError:
        raise ToolError(f"{path.name} cannot be read: there is not enough memory for it") from None
    except RecursionError:
        raise ToolError(f"{path.name} is nested too deeply to read") from None
    except Exception as error:  # noqa: BLE001 - whatever a damaged file makes a parser stumble over
        what = " ".join(str(error).split())[:_SHOWN]
        raise ToolError(f"{path.name} is damaged and cannot be read ({type(error).__name__}: {what})") from None


def _choose_reader(path: Path) -> Callable[[Path], Document]:
    """Return the reader for the file's name, unless the first bytes contradict the name. Raises `ToolError` for a file
    that has no reader."""
    about, suffix = path.stat(), path.suffix.lower()
    if stat.S_ISDIR(about.st_mode):
        raise ToolError(f"{path.name or path} is a folder, not a file")
    if not stat.S_ISREG(about.st_mode):  # opening a named pipe would block
        raise ToolError(f"{path.name} is not a regular file")
    if about.st_size > LIMIT:
        size = f"{about.st_size / 2**20:.1f} MB, the limit is {LIMIT / 2**20:g} MB"
        raise ToolError(f"{path.name} is too big to read: {size}")
    if not about.st_size:
        raise NoText(f"{path.name} is empty")
    if suffix in MEDIA:
        raise NoText(f"{path.name} holds no text; it is for the multimodal expert to look at or listen to")
    if suffix in _OLD:
        raise ToolError(f"{path.name} is in an old Office format; save it as {_OLD[suffix]}")
    start = _read_start(path)
    if b"%PDF-" in start:
        return read_pdf
    return _BINARY.get(suffix) or (_read_zip if start.startswith(b"PK\x03\x04") else _read_text)


def _read_start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(1024)


def check_readable(path: Path) -> None:
    """Raise `Lacking` for a file that no installed package can read; faults of the file itself are not checked."""
    if path.is_file() and b"%PDF-" in _read_start(path):
        check_library(path)


def _make_sendable(document: Document) -> Document:
    """Replace lone surrogates, which JSON can hold and which can be neither stored nor sent."""
    if is_text(f"{document.title}{document.text}"):
        return document
    parts = tuple(replace(part, text=printable(part.text), place=printable(part.place)) for part in document.parts)
    return replace(document, title=printable(document.title), parts=parts)


def _read_text(path: Path) -> Document:
    text = decode_file(path.read_bytes())
    if text is None:
        raise NoText(f"{path.name} is binary, of no kind that can be read as text")
    if text.startswith("{\\rtf"):
        raise ToolError(f"{path.name} is in Rich Text Format; save it as .docx or .txt")
    suffix = path.suffix.lower()
    return _TEXT.get(suffix, plain.read_prose if suffix in plain.PROSE else plain.read_code)(path, text)


def _read_zip(path: Path) -> Document:
    """Read an office file with another suffix, otherwise list the content of the archive."""
    with open_archive(path) as archive:
        for mark, read in _INSIDE.items():
            if mark in archive.names:
                return read(path)
        listed = [
            f"{' '.join(one.filename.split())} | {one.file_size} bytes"
            f" | {'-'.join(f'{part:02d}' for part in one.date_time[:3])}"
            for one in archive.zip.infolist()
            if not one.is_dir()
        ]
    return Document(path.name, (Part("\n".join([f"This archive holds {len(listed)} files:", *listed])),))


_BINARY: dict[str, Callable[[Path], Document]] = {
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
_INSIDE: dict[str, Callable[[Path], Document]] = {
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


class FileReader:
    """Reads files of any kind. Methods block, so call them in a thread; `close` may be called from another one."""

    def __init__(self, limits: WorkerLimits = LIMITS) -> None:
        self.worker = Worker(limits)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, path: Path) -> Document:
        """Read a file of at most 200 MB. Raises `ToolError` with one line that says why it cannot be read."""
        with _explaining(path):
            reader = _choose_reader(path)
        if reader is _read_text and path.suffix.lower() not in _TEXT:
            return parse_file(path)
        if reader is read_pdf:
            check_library(path)
        try:
            return self.worker.call(parse_file, path.absolute())
        except WorkerError as error:
            raise ToolError(f"{path.name} is not read: {error}") from None

    def close(self) -> None:
        """End the child; a read in progress ends with a `ToolError`."""
        self.worker.close()


def read_file(path: Path) -> Document:
    """Read one file as `FileReader.read` does. Blocking."""
    with FileReader() as reader:
        return reader.read(path)
