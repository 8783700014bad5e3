"""One file, of any kind, as its passages.

Files are parsed in a child process with limits, so that a hostile file can fail only its own reading. One child serves
the whole process, however many clients it has. Only short plain text, which needs no parser, is read at once.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hira.tools.documents.document import Document, cut
from hira.tools.documents.pieces import Piece
from hira.tools.opening import OpenFile, ReadingChild

WHOLE = 30_000
"""Characters of a file that may be shown whole."""
_TOGETHER = 1_000
"""Passages of a file that are sent at once: few enough not to hold up the event loop."""


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


def send_passages(handle: int, path: Path) -> Iterator[Passages]:
    """Yield the file with its first passages, then the others, several at a time. Runs in the child."""
    from hira.tools.documents.parsing import parse_open

    read = _cut_passages(parse_open(OpenFile(path, handle, os.fstat(handle))))
    yield replace(read, pieces=read.pieces[:_TOGETHER])
    for start in range(_TOGETHER, len(read.pieces), _TOGETHER):
        yield Passages("", (), read.pieces[start : start + _TOGETHER])


def _cut_passages(document: Document) -> Passages:
    text = document.text if sum(len(part.text) for part in document.parts) <= WHOLE else ""
    unread = tuple(part.place or "the file" for part in document.parts if part.media)
    return Passages(document.title, unread, tuple(cut(document)), text, document.remark, document.is_own)


def read_passages(child: ReadingChild, file: OpenFile, seconds: float | None = None) -> Passages:
    """Read the passages of an open file, blocking. Raises `ToolError` with one line that says why it cannot be read, or
    `Deferred` if it takes more than `seconds`."""
    from hira.tools.documents.parsing import is_short, parse_open

    if is_short(file):
        return _cut_passages(parse_open(file))
    sent = child.collect(send_passages, file, seconds=seconds)
    return replace(sent[0], pieces=tuple(piece for passages in sent for piece in passages.pieces))
