"""Records that an earlier version left in files beside the journal when it was killed: frames of statements.

A frame is its length, a check sum, its number, the statements as JSON, then their values that are bytes; a list in the
values stands for so many bytes. Taking records in twice, in their order and file by file, changes nothing.
"""

import struct
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from hira.journal.encoding import unpack

Statement = tuple[str, tuple[Any, ...]]
"""The name of what is to be written, and its values."""

_HEAD = struct.Struct(">IIQ")


@contextmanager
def left_behind(path: Path) -> Iterator[list[Statement]]:
    """What was left beside the journal at `path`, in order. The files are removed when the context is left without
    error. Files of a process that lives are left alone: it moves its records itself."""
    found: list[tuple[str, int, list[Statement]]] = []
    files = sorted(path.parent.glob(f"{path.name}-pending-*"))
    read: list[Path] = []
    with ExitStack() as opened:
        for one in files:
            with suppress(OSError):
                file = opened.enter_context(one.open("rb"))
                if not _locked(file):
                    continue
                held = list(_frames(file.read()))
                statements = [statement for _, group in held for statement in group]
                found += [(one.name.rpartition("-")[0], held[0][0], statements)] if held else []
                read.append(one)
        found.sort(key=lambda file: file[:2])
        yield [statement for _, _, statements in found for statement in statements]
    for one in read:
        one.unlink(missing_ok=True)


def _frames(raw: bytes) -> Iterator[tuple[int, list[Statement]]]:
    """The frames with their numbers, up to the first that was not written whole."""
    at = 0
    while at + _HEAD.size <= len(raw):
        length, check, number = _HEAD.unpack_from(raw, at)
        body = raw[at + _HEAD.size : at + _HEAD.size + length]
        if len(body) < length or zlib.crc32(body) != check:
            return
        yield number, list(_statements(body))
        at += _HEAD.size + length


def _statements(body: bytes) -> Iterator[Statement]:
    told, _, blobs = body.partition(b"\n")
    at = 0
    for name, values in unpack(told):
        for place, one in enumerate(values):
            if isinstance(one, list):
                values[place] = blobs[at : at + one[0]]
                at += one[0]
        yield name, tuple(values)


def _locked(file: IO[bytes]) -> bool:
    """Whether the file is locked by this process now."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
