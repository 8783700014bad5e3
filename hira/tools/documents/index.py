"""An index of the documents that a person named: made once, kept up to date by what changed, safe to share."""

import asyncio
import hashlib
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

from hira.core.errors import ToolError
from hira.core.sanitize import clean
from hira.tools.documents.document import NoText
from hira.tools.documents.passages import cut
from hira.tools.documents.reader import FileReader
from hira.tools.documents.store import Entry, Hit, Stamp, open_store
from hira.tools.documents.walk import real_paths, roots_of, walk
from hira.tools.media import how_to_see

__all__ = ["Hit", "Index", "format_warnings"]

Progress = Callable[[int, int], None]

# part of the file's name: a change of the readers, the passages or the tables makes a new index
_EDITION = 1
_BATCH = 1_000
_FRESH = 2_000_000_000
_NAMED = 3
_LISTED = 5


class Index:
    """The documents below `paths` without what `exclude` names, searchable.

    `cache` is the folder in which the index is kept between runs, None keeps it in memory. Every set of paths has a
    file of its own there, which several processes may use at once. `warnings` has one line for every file that could
    not be read; reading goes on without it. Work is done in threads, never on the event loop.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        cache: Path | None = None,
        *,
        exclude: Sequence[Path] = (),
    ) -> None:
        self.paths = tuple(paths)
        self.exclude = tuple(exclude)
        named = [*map(str, roots_of(self.paths)), *(f"without {path}" for path in sorted(real_paths(self.exclude)))]
        identity = hashlib.blake2b("\0".join(named).encode(), digest_size=12).hexdigest()
        file = cache / f"documents-{_EDITION}-{identity}.sqlite" if cache else None
        self._store, self._trouble = open_store(file)
        weakref.finalize(self, self._store.close)
        self.warnings: list[str] = []
        self._ready = False
        self._turn = threading.Lock()
        self._reader = FileReader()
        self._stopped = threading.Event()

    async def refresh(self, on_progress: Progress | None = None) -> None:
        """Bring the index up to date. `on_progress(done, total)` counts changed files, and is called in a thread."""
        self._stopped.clear()
        try:
            await asyncio.to_thread(self._refresh, on_progress)
        except asyncio.CancelledError:
            self._stopped.set()
            self._reader.close()
            raise

    async def search(self, question: str, top: int = 10) -> list[Hit]:
        """The passages that fit a question best. The first search brings the index up to date."""
        await self._made()
        return await asyncio.to_thread(self._store.search, question, top)

    async def open(self, name: str) -> Entry | None:
        """The document that is shown under this name, with its passages in order."""
        await self._made()
        return await asyncio.to_thread(self._store.entry, name)

    async def names(self) -> list[str]:
        """The documents as they are shown, in order."""
        await self._made()
        return await asyncio.to_thread(self._store.names)

    async def take_new_warnings(self) -> list[str]:
        """The warnings that no process with this index has taken yet. One that ceases and comes back is new again."""
        return await asyncio.to_thread(self._store.take_new, list(dict.fromkeys(self.warnings)))

    def close(self) -> None:
        self._stopped.set()
        self._reader.close()
        with self._turn:
            self._store.close()

    async def _made(self) -> None:
        if not self._ready:
            await self.refresh()

    def _refresh(self, on_progress: Progress | None) -> None:
        with self._turn:
            # what is known is asked first: a file that another process adds during the walk must not look removed
            known = self._store.known()
            found = walk(self.paths, self.exclude)
            if gone := known.keys() - {str(path) for path in found.files.values()}:
                self._store.drop(sorted(gone))
            unread = self._read(self._changed(found.files, known), on_progress)
            trouble = [self._trouble] if self._trouble else []
            warnings = [*trouble, *found.warnings, *unread, *self._store.notes()]
            self.warnings = [" ".join(clean(one).split()) for one in warnings]
            self._ready = not self._stopped.is_set()

    def _changed(self, files: dict[str, Path], known: dict[str, Stamp]) -> list[tuple[str, Path, Stamp | None]]:
        """The files whose size or time differs from what is known, or that changed too lately for it to tell."""
        fresh = time.time_ns() - _FRESH
        changed: list[tuple[str, Path, Stamp | None]] = []
        for name, path in files.items():
            before = known.get(str(path))
            try:
                about = path.stat()
            except OSError:  # it went away since the walk; reading it will say so
                changed.append((name, path, before))
                continue
            if before is None or before[:2] != (about.st_size, about.st_mtime_ns) or about.st_mtime_ns > fresh:
                changed.append((name, path, before))
        return changed

    def _read(self, changed: list[tuple[str, Path, Stamp | None]], on_progress: Progress | None) -> list[str]:
        """Read and put what changed, in batches; returns what could not be read."""
        unread: list[str] = []
        textless: dict[str, str] = {}
        batch: list[Entry] = []
        rows = 0
        same: dict[str, Stamp] = {}
        for done, (name, path, before) in enumerate(changed, 1):
            if self._stopped.is_set():
                break
            try:
                stamp = _stamp(path)
                if before and before.digest == stamp.digest:
                    same[str(path)] = stamp
                else:
                    batch.append(_entry(name, path, stamp, self._reader))
                    rows += len(batch[-1].pieces) + 1
            except NoText as error:
                textless[name] = str(error)
            except ToolError as error:
                unread.append(f"{name}: {error}" if path.name not in str(error) else str(error))
            if rows >= _BATCH:
                self._store.put(batch)
                batch, rows = [], 0
            if on_progress:
                on_progress(done, len(changed))
        self._reader.close()
        if batch:
            self._store.put(batch)
        if same:
            self._store.stamp(same)
        return unread + _textless(textless)


def _textless(why: dict[str, str]) -> list[str]:
    """What is said of files without text: of one the reason, of several their number."""
    if len(why) < 2:
        return list(why.values())
    shown = ", ".join(list(why)[:_NAMED]) + (", …" if len(why) > _NAMED else "")
    return [f"{len(why)} files hold no text and cannot be searched: {shown}"]


def format_warnings(warnings: Sequence[str]) -> list[str]:
    """The first few warnings, and how many more there are."""
    more = len(warnings) - _LISTED
    return [*warnings[:_LISTED], *([f"… and {more} more"] if more > 0 else [])]


def _stamp(path: Path) -> Stamp:
    try:
        with path.open("rb") as file:
            about = path.stat()
            return Stamp(about.st_size, about.st_mtime_ns, hashlib.file_digest(file, "sha256").digest())
    except OSError as error:
        raise ToolError(f"{path.name} cannot be read: {error.strerror or error}") from None


def _entry(name: str, path: Path, stamp: Stamp, reader: FileReader) -> Entry:
    document = reader.read(path)
    pieces, unread = tuple(cut(document)), document.unread
    if not (pieces or unread):
        raise NoText(f"{path.name} holds no text")
    shown = ", ".join(unread[:_NAMED]) + (", …" if len(unread) > _NAMED else "")
    note = f"{name}: no text in {shown}; {how_to_see(name)}" if unread else ""
    return Entry(str(path), name, stamp, document.title, note, pieces)
