"""Bringing an index up to date: the changed files are read within one budget of time and bytes for all of them.

Each file first gets the time that its size explains and an equal share of what is spare. A file that needs more waits
until the others are read, so that no file takes the time of the next ones, and is tried again ten minutes later.
"""

import hashlib
import sqlite3
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hira.core.errors import ToolError
from hira.tools.documents.document import Lacking, NoText
from hira.tools.documents.pieces import find_extra_words
from hira.tools.documents.ranking import name_document, read_vintage
from hira.tools.documents.reader import read_passages
from hira.tools.documents.store import IndexedFile, Store, delete_file
from hira.tools.documents.walk import (
    BYTES,
    LONGEST,
    OWN,
    SPARE,
    Change,
    Progress,
    Refused,
    Stamp,
    Unread,
    cut_time,
    shorten,
)
from hira.tools.file_kinds import how_to_see
from hira.tools.opening import Deferred, OpenFile, ReadingChild, Unopened, open_regular

_BATCH = 1_000
_ADD_FILE = "INSERT INTO files VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_PASSAGE = "INSERT INTO passages (rowid, title, heading, text, beside, place, span, file) VALUES (?,?,?,?,?,?,?,?)"


@dataclass(slots=True)
class Refresh:
    """One reading of changed files into a store. `stopped` ends it between two files; `spare` are the seconds left
    beyond those that the sizes of the files explain."""

    store: Store
    child: ReadingChild
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
        """Read a file within the `explained` seconds and a share of the spare ones. Return whether they ran out."""
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
            with open_regular(change.path, self.roots) as file:
                digest = hashlib.file_digest(file.rewind(), "sha256").digest()
                stamp = Stamp(file.size, cut_time(file.about.st_mtime_ns), digest)
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
        passages = read_passages(self.child, file, seconds)
        if passages.is_own and change.path not in self.roots:
            raise NoText(f"{change.name} {OWN}")
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
        if self._refused or self._batch or self._same:
            self.store.write(self._store)
        self._batch, self._rows, self._same, self._refused = [], 0, {}, {}

    def _store(self, db: sqlite3.Connection) -> None:
        """Replace the files. One that another process has stored meanwhile, with the same content, stays."""
        refused = [(path, *refusal) for path, refusal in self._refused.items()]
        db.executemany("INSERT OR REPLACE INTO refused VALUES (?, ?, ?, ?, ?, ?)", refused)
        db.executemany("DELETE FROM refused WHERE path = ?", [(entry.path,) for entry in self._batch])
        last = db.execute("SELECT first + count FROM files ORDER BY id DESC LIMIT 1").fetchone()
        first = last[0] if last else 1
        for entry in self._batch:
            before = db.execute("SELECT digest, name FROM files WHERE path = ?", (entry.path,)).fetchone()
            if before == (entry.stamp.digest, entry.name):
                continue
            if before:
                delete_file(db, entry.path)
            vintage = read_vintage(entry.name, entry.title)
            values = (entry.path, entry.name, *entry.stamp, entry.title, entry.note, first, len(entry.pieces), *vintage)
            file = db.execute(_ADD_FILE, values).lastrowid
            if entry.pieces and (key := name_document(entry.title)):
                db.execute("INSERT INTO titles VALUES (?, ?)", (key, file))
            stem = Path(entry.name).stem
            title = entry.title if stem.lower() in entry.title.lower() else f"{entry.title} {stem}"
            for row, piece in enumerate(entry.pieces, first):
                extra = find_extra_words(f"{title}\n{piece.full}")
                passage = (row, title, piece.heading, piece.text, extra, piece.place, piece.span, file)
                db.execute(_ADD_PASSAGE, passage)
            first += len(entry.pieces)
        same = [(stamp.size, stamp.changed, path, stamp.digest) for path, stamp in self._same.items()]
        db.executemany("UPDATE files SET size = ?, changed = ? WHERE path = ? AND digest = ?", same)
