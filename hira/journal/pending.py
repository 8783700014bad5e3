"""What a process has recorded and the database does not hold yet: frames in a file beside it.

A frame is in the file before its record counts as written. That takes a few microseconds in the thread that asks, and
survives the end of the process as a transaction does. The writing thread moves the records into the database, many in
one transaction. Whoever reads the journal takes in first what waits, be it of a living process or of one that was
killed: taking records in twice, in their order and file by file, changes nothing.
"""

import errno
import os
import secrets
import struct
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from hira.journal.encoding import pack, unpack

Statement = tuple[str, tuple[Any, ...]]
"""The name of what is to be written, and its values."""

LONGEST_MOVE = 5.0
"""Seconds that a living process is given to move its records into the database."""
_HEAD = struct.Struct(">IIQ")
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)


def write_frame(statements: Sequence[Statement], number: int) -> bytes:
    """The statements as one frame: its length, a check sum, its number, the values as JSON, then those that are bytes.

    A list in the values stands for so many bytes.
    """
    told, parts = [], [b"", b"\n"]
    for name, values in statements:  # written out, as all that every call passes through
        row: list[Any] = []
        for one in values:
            if type(one) is bytes:
                parts.append(one)
                row.append((len(one),))
            else:
                row.append(one)
        told.append((name, row))
    parts[0] = pack(told)
    body = b"".join(parts)
    return _HEAD.pack(len(body), zlib.crc32(body), number) + body


def frames(raw: bytes) -> Iterator[tuple[int, list[Statement]]]:
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


class Pending:
    """The two files of one process beside the journal at `path`, locked while it lives.

    They take turns: one is written into while the records of the other are moved into the database.
    """

    def __init__(self, path: Path) -> None:
        name = f"{path.name}-pending-{os.getpid()}-{secrets.token_hex(4)}"
        self._paths = [path.with_name(f"{name}-{at}") for at in (0, 1)]
        self._files = [_opened(one) for one in self._paths]
        self._number = 0

    def append(self, statements: Sequence[Statement]) -> None:
        """Return when the statements are in the file. Raises `OSError` when it cannot take them."""
        self._number += 1
        frame = write_frame(statements, self._number)
        if os.write(self._files[0], frame) < len(frame):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def turn(self) -> None:
        """Write into the other file from now on."""
        self._files.reverse()

    def empty(self) -> None:
        """Forget what the other file holds: it is in the database."""
        os.ftruncate(self._files[1], 0)

    def close(self, *, keep: bool) -> None:
        """Close the files and remove them, unless there is something in them that is to be taken in later."""
        for path in self._paths if not keep else ():
            path.unlink(missing_ok=True)
        for file in self._files:
            os.close(file)


def _opened(path: Path) -> int:
    """The file, locked. One that another process took for left behind in the moment before is made again."""
    while True:
        file = os.open(path, _FLAGS, 0o600)
        if _locked(file) and os.fstat(file).st_nlink:
            return file
        os.close(file)


def waiting(path: Path) -> list[Path]:
    """The files beside the journal at `path` that hold records, of living processes and of dead ones. Files without
    records that a dead process left are removed."""
    found: list[Path] = []
    with suppress(OSError), os.scandir(path.parent) as beside:
        found = sorted(Path(one.path) for one in beside if one.name.startswith(f"{path.name}-pending-"))
    return [one for one in found if _holds(one)]


def _holds(one: Path) -> bool:
    with suppress(OSError):
        if one.stat().st_size:
            return True
        with one.open("rb") as file:
            if _locked(file.fileno()):
                one.unlink()
    return False


@contextmanager
def records(path: Path) -> Iterator[list[list[Statement]]]:
    """What waits beside the journal at `path`, a list for each file, in order. The files of processes that are gone are
    removed when the context is left without error; living ones move theirs again themselves.

    To be used inside of a writing transaction: whoever comes meanwhile waits for it, and then finds it taken in.
    """
    left: list[tuple[Path, IO[bytes]]] = []
    found: list[tuple[str, int, list[Statement]]] = []
    with ExitStack() as opened:
        for one in waiting(path):
            with suppress(FileNotFoundError):
                file = opened.enter_context(one.open("rb"))
                if _locked(file.fileno()):
                    left.append((one, file))
                held = list(frames(file.read()))
                statements = [statement for _, group in held for statement in group]
                found += [(one.name.rpartition("-")[0], held[0][0], statements)] if held else []
        yield [statements for _, _, statements in sorted(found, key=lambda file: file[:2])]
        for one, _ in left:
            with suppress(OSError):  # where nothing can be locked, a living process holds its file in other ways
                one.unlink()


def wait_for_others(path: Path, run: str) -> None:
    """Return when no living process has records of the run beside the journal, or has had them for too long: it would
    write them once more over those of whoever goes on with the run."""
    until = time.monotonic() + LONGEST_MOVE
    while _elsewhere(path, run) and time.monotonic() < until:
        time.sleep(0.05)


def _elsewhere(path: Path, run: str) -> bool:
    for one in waiting(path):
        if one.name.startswith(f"{path.name}-pending-{os.getpid()}-"):
            continue
        with suppress(OSError), one.open("rb") as file:
            held = frames(file.read()) if not _locked(file.fileno()) else ()
            if any(run in values for _, group in held for _, values in group):
                return True
    return False


def check_locks(folder: Path) -> None:
    """Raise `OSError` where no file in the folder can be locked, as on some network drives. The database would only
    seem to be held by somebody else, for ever."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - a folder that takes none is told of elsewhere
    except OSError:
        return
    with file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(file, fcntl.LOCK_UN)  # over NFS and on BSD one kind of lock would keep the other away
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise OSError(f"files cannot be locked in {folder} ({error.strerror})") from None


def _locked(file: int) -> bool:
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
