"""One file, of any kind, as a `Document` or as its passages.

Files are parsed in a child process with limits, so that a hostile file can fail only its own reading. One child serves
the whole process, however many clients it has. Only short plain text, which needs no parser, is read at once.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from hira.tools.documents.document import Document, Part, cut
from hira.tools.documents.pieces import Piece
from hira.tools.opening import OpenFile, ReadingChild, explaining, open_regular

WHOLE = 30_000
"""Characters of a file that may be shown whole."""
_TOGETHER, _PIECES = 1_000_000, 1_000
"""Characters and passages of a file that are sent at once: few enough not to hold up the event loop."""
_MORE = "\0"
"""In place of a part's name: the text continues the part before."""


@dataclass(frozen=True, slots=True)
class Passages:
    """A file that was read, cut into passages; `unread` are the places that hold no text but something to see. `text`
    is the whole text of a short file, empty for others; `remark` and `is_own` are those of the document."""

    title: str
    unread: tuple[str, ...]
    pieces: tuple[Piece, ...]
    text: str = ""
    remark: str = ""
    is_own: bool = False


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
    unread, pieces = tuple(document.unread), tuple(cut(document))
    return Passages(document.title, unread, pieces, text, document.remark, document.is_own)


def _parse_handle(handle: int, path: Path) -> Document:
    from hira.tools.documents.parsing import parse_open

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
        from hira.tools.documents.parsing import is_short, parse_open

        with explaining(path), open_regular(path) as file:
            if is_short(file):
                return parse_open(file)
            (title, _, _), *parts = self._child.collect(send_parts, file, seconds=self.seconds)
            return Document(title, tuple(_join_parts(parts)))

    def read_passages(self, file: OpenFile, seconds: float | None = None) -> Passages:
        """Read the passages of an open file. Raises `ToolError`, or `Deferred` if it takes more than `seconds`."""
        from hira.tools.documents.parsing import is_short, parse_open

        with explaining(file.path):
            if is_short(file):
                return _cut_passages(parse_open(file))
            sent = self._child.collect(send_passages, file, seconds=seconds)
            return replace(sent[0], pieces=tuple(piece for passages in sent for piece in passages.pieces))

    def close(self) -> None:
        """End a read in progress with a `ToolError`, and the child, unless other readers need it."""
        self._child.close()


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
