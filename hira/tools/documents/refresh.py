"""Bringing an index up to date: the changed files are read within one budget of time and bytes for all of them.

Each file first gets the time that its size explains and an equal share of what is spare. A file that needs more waits
until the others are read, so that no file takes the time of the next ones, and is tried again ten minutes later.
"""

import hashlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from hira.core.errors import ToolError
from hira.tools.documents.document import Lacking, NoText
from hira.tools.documents.reader import FileReader
from hira.tools.documents.store import IndexedFile, Refused, Stamp, Store
from hira.tools.media import how_to_see
from hira.tools.opening import LIMIT, Deferred, OpenFile, Unopened, cut_time, explaining, open_regular

Progress = Callable[[int, int], None]

SPARE, LONGEST = 70.0, 600.0
"""Seconds for all files of a question beyond those that their sizes explain, and with these."""
BYTES = 4 << 30
_EACH, _MEGABYTE = 1.0, 10.0
"""The seconds that a file and a megabyte of it explain."""
_TRIED_AGAIN = 600.0
_BATCH = 1_000
_FRESH = 2_000_000_000
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Change:
    """A file that is new or differs from the index, or changed too recently to tell; `size` is that on the disk."""

    name: str
    path: Path
    size: int
    before: Stamp | None

    @property
    def seconds(self) -> float:
        """The time that reading a file of this size may take."""
        return _EACH + _MEGABYTE * self.size / 2**20


@dataclass(slots=True)
class Unread:
    """Files that could not be read, by the reason: a line for each, files without text, files that did not fit."""

    lines: list[str] = field(default_factory=list)
    textless: dict[str, str] = field(default_factory=dict)
    unfit: list[str] = field(default_factory=list)

    def add(self, name: str, line: str, *, textless: bool) -> None:
        if textless:
            self.textless[name] = line
        elif line:
            self.lines.append(line)
        else:
            self.unfit.append(name)

    def describe(self) -> list[str]:
        """Return the lines; files without text and those that did not fit have one line together."""
        without = list(self.textless.values())
        if len(without) > 1:
            without = [f"{len(without)} files hold no text and cannot be searched: {shorten(list(self.textless))}"]
        late = []
        if count := len(self.unfit):
            files = "1 file was" if count == 1 else f"{count} files were"
            limit = f"{SPARE:g} s for slow files, {LONGEST:g} s and {BYTES >> 30} GB for all"
            again = "a later question reads on"
            late = [f"{files} not read within the limits of a question ({limit}): {shorten(self.unfit)}; {again}"]
        return [*late, *self.lines, *without]


def shorten(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")


def find_changes(
    files: Mapping[str, Path], known: Mapping[str, Stamp], refused: Mapping[str, Refused]
) -> tuple[list[Change], Unread]:
    """Return the changed files, and those that did not change since they could not be read."""
    fresh = time.time_ns() - _FRESH
    changes: list[Change] = []
    unread = Unread()
    for name, path in files.items():
        before, refusal, size = known.get(str(path)), refused.get(str(path)), 0
        with suppress(OSError):  # it disappeared after the walk; reading it will report that
            about = os.lstat(path)
            marks = (about.st_size, cut_time(about.st_mtime_ns))
            size = min(about.st_size, getattr(about, "st_blocks", about.st_size) * 512)  # without the holes
            size = size if size <= LIMIT else 0  # it is not read
            if min(about.st_mtime_ns, about.st_ctime_ns) <= fresh:
                if refusal and refusal[:2] == marks and (refusal.line or time.time() - refusal.tried < _TRIED_AGAIN):
                    unread.add(name, refusal.line, textless=refusal.textless)
                    continue
                if before and before[:2] == marks:
                    continue
        changes.append(Change(name, path, size, before))
    return changes, unread


@dataclass(slots=True)
class Refresh:
    """One reading of changed files into a store. `stopped` ends it between two files; `spare` are the seconds left
    beyond those that the sizes of the files explain."""

    store: Store
    reader: FileReader
    roots: Sequence[Path]
    unread: Unread
    stopped: threading.Event
    spare: float = SPARE
    _batch: list[IndexedFile] = field(default_factory=list)
    _rows: int = 0
    _same: dict[str, Stamp] = field(default_factory=dict)
    _refused: dict[str, Refused] = field(default_factory=dict)
    _bytes: int = 0

    def read(self, changes: Sequence[Change], on_progress: Progress | None) -> None:
        """Read and store the files, in batches."""
        deadline = time.monotonic() + LONGEST
        waiting: list[Change] = []
        for done, change in enumerate(changes, 1):
            if self.stopped.is_set():
                break
            share = max(self.spare, 0.0) / (len(changes) - done + 1)
            if self._tries(change, change.seconds, share, deadline):
                waiting.append(change)
            if on_progress:
                on_progress(done, len(changes))
        for change in () if self.stopped.is_set() else waiting:
            left = self.spare if self.spare > change.seconds else 0.0
            if self._tries(change, 0.0, left, deadline):
                self.unread.unfit.append(change.name)
        self._save()

    def _tries(self, change: Change, explained: float, share: float, deadline: float) -> bool:
        """Read a file within the seconds that its size explains and a share of the spare ones; return whether they were
        over first."""
        began = time.monotonic()
        seconds = min(explained + share, deadline - began)
        try:
            return self._read(change, seconds)
        finally:
            self.spare -= max(time.monotonic() - began - explained, 0.0)

    def _read(self, change: Change, seconds: float) -> bool:
        """Read a file; return whether its time was over first."""
        if seconds <= 0 or self._bytes + change.size > BYTES:
            return True
        self._bytes += change.size
        stamp = None
        try:
            with explaining(change.path), open_regular(change.path, self.roots) as file:
                digest = hashlib.file_digest(file.rewind(), "sha256").digest()
                stamp = Stamp(file.size, file.changed, digest)
                if change.before and change.before.digest == stamp.digest:
                    self._same[str(change.path)] = stamp
                else:
                    self._add(change, stamp, file, seconds)
        except Deferred:
            self._refuse(change, stamp, "")
            return True
        except NoText as error:
            self._refuse(change, stamp, str(error), textless=True)
        except ToolError as error:
            line = f"{change.name}: {error}" if change.path.name not in str(error) else str(error)
            if isinstance(error, Lacking | Unopened):
                self.unread.lines.append(line)
            else:
                self._refuse(change, stamp, line)
        return False

    def _add(self, change: Change, stamp: Stamp, file: OpenFile, seconds: float) -> None:
        passages = self.reader.read_passages(file, seconds)
        if not (passages.pieces or passages.unread):
            raise NoText(f"{change.path.name} holds no text")
        note = f"{change.name} {passages.remark}" if passages.remark else ""
        if passages.unread:
            note = f"{change.name}: no text in {shorten(passages.unread)}; {how_to_see(change.name)}"
        self._refused.pop(str(change.path), None)
        self._batch.append(IndexedFile(str(change.path), change.name, stamp, passages.title, note, passages.pieces))
        self._rows += len(passages.pieces) + 1
        if self._rows >= _BATCH:
            self._save()

    def _refuse(self, change: Change, stamp: Stamp | None, line: str, *, textless: bool = False) -> None:
        """Note that a file cannot be read, also for later questions if it was examined."""
        if line:
            self.unread.add(change.name, line, textless=textless)
        if stamp:
            self._refused[str(change.path)] = Refused(stamp.size, stamp.changed, line, textless, time.time())

    def _save(self) -> None:
        if self._refused:
            self.store.refuse(self._refused)
        if self._batch:
            self.store.put(self._batch)
        if self._same:
            self.store.stamp(self._same)
        self._batch, self._rows, self._same, self._refused = [], 0, {}, {}
