"""Documents on this machine: an index of those that a person named, built once, updated with changes, safe to share."""

import asyncio
import hashlib
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hira.core.errors import ToolError, count_of
from hira.core.sanitize import clean
from hira.core.tool import Observation, Passage, Tool, text_tool
from hira.evidence import Source
from hira.tools.documents.pieces import EncoderFailed, drop_title, join_pieces
from hira.tools.documents.ranking import NEAR_CONSTANT, Ranked, fuse
from hira.tools.documents.store import IndexedFile, PassageHit, open_store, remove_index
from hira.tools.documents.walk import Progress, find_changes, real_paths, roots_of, walk
from hira.tools.file_kinds import RECOGNISING, can_recognise

if TYPE_CHECKING:
    from hira.tools.documents.encoder import Encoder, Reranker, Spend
    from hira.tools.documents.vectors import Vectors
    from hira.tools.opening import ReadingChild

__all__ = ["EncoderFailed", "Index", "PassageHit", "browse_documents", "format_warnings", "search_documents"]

# part of the file's name: increment it when the readers, the passages or the tables change
_EDITION = 6
_DAYS_KEPT = 30
"""An index of an older edition is removed if nothing has opened it for this long."""
_LISTED = 5
_RERANKED = 30
"""The first passages, which a reranker orders."""


class Index:
    """A searchable index of the documents below `paths`, except those that `exclude` names.

    `cache` is the folder in which the index is kept between runs, None keeps it in memory. Every set of paths has its
    own file there, which several processes may use at once. `warnings` has one line for every file that could not be
    read; reading continues without it. `unread` has those of them that name damaged files and files left for later;
    `has_text` says whether any document holds text. The work runs in threads, never on the event loop.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        cache: Path | None = None,
        *,
        exclude: Sequence[Path] = (),
        encoder: "Encoder | None" = None,
        reranker: "Reranker | None" = None,
    ) -> None:
        self.paths = tuple(paths)
        self.exclude = tuple(exclude)
        named = [*map(str, roots_of(self.paths)), *(f"without {path}" for path in sorted(real_paths(self.exclude)))]
        identity = hashlib.blake2b("\0".join(named).encode(), digest_size=12).hexdigest()
        file = cache / f"documents-{_EDITION}-{identity}.sqlite" if cache else None
        if cache and file and not file.exists():
            _remove_outdated(cache)
        self._store = open_store(file)
        weakref.finalize(self, self._store.close)
        self.warnings: list[str] = []
        self.unread: list[str] = []
        self.has_text = False
        self._ready = False
        self._turn = threading.Lock()
        self._child: ReadingChild | None = None
        self._stopped = threading.Event()
        self.models = encoder, reranker
        """The encoder and the reranker, which another index may use too."""
        self._vectors: Vectors | None = None
        if encoder:
            from hira.tools.documents import vectors

            self._vectors = vectors.Vectors(self._store, encoder)

    async def refresh(self, on_progress: Progress | None = None) -> None:
        """Bring the words up to date. `on_progress(done, total)` counts changed files, and is called in a thread."""
        self._stopped.clear()
        try:
            await asyncio.to_thread(self._refresh, on_progress)
        except asyncio.CancelledError:
            self._stop_reading()
            raise

    async def encode(self, on_progress: Progress | None = None, spend: "Spend | None" = None) -> None:
        """Give every passage a vector, if there is an encoder; `on_progress` counts passages. Raises `EncoderFailed`
        if that is not possible; the vectors made until then are kept."""
        if self._vectors:
            await self._vectors.complete(on_progress, spend)

    async def search(
        self,
        question: str,
        top: int = 10,
        relevant: float = 0.0,
        *,
        spend: "Spend | None" = None,
        on_failure: Callable[[str], None] | None = None,
    ) -> list[PassageHit]:
        """Return the passages that fit a question best, without those that score less than the share `relevant` of the
        best. The first search brings the index up to date.

        `spend` is charged for what the encoder and the reranker read. If one of them fails, `on_failure` gets the
        reason, and the result is that without it; without `on_failure`, `EncoderFailed` is raised.
        """
        await self._ensure_fresh()
        order = await asyncio.to_thread(self._store.find_matches, question, top, relevant)
        for improve in (self._add_near, self._rerank):
            try:
                order = await improve(question, order, spend)
            except EncoderFailed as error:
                if on_failure is None:
                    raise
                on_failure(str(error))
        return await asyncio.to_thread(self._store.choose, order, question, top)

    async def _add_near(self, question: str, order: "list[Ranked]", spend: "Spend | None") -> "list[Ranked]":
        if not self._vectors:
            return order
        near = await self._vectors.find_near(question, spend)
        return fuse([order, near], lambda ranked: ranked.row, NEAR_CONSTANT)

    async def _rerank(self, question: str, order: "list[Ranked]", spend: "Spend | None") -> "list[Ranked]":
        _, reranker = self.models
        if not (reranker and order):
            return order
        texts = await asyncio.to_thread(self._store.read_full_texts, [ranked.row for ranked in order[:_RERANKED]])
        first = [ranked for ranked in order[:_RERANKED] if ranked.row in texts]
        best = await reranker.order(question, [texts[ranked.row] for ranked in first], spend=spend)
        return [*(first[number] for number in best), *order[_RERANKED:]]

    async def survey(self, top: int) -> Observation:
        """Return the list of the documents, and the beginnings of at most `top` of them."""
        from hira.tools.documents.overview import survey  # few questions need it

        await self._ensure_fresh()
        listed, hits = await asyncio.to_thread(survey, self._store, self.paths, top)
        return Observation(passages=(Passage(listed, listed.text), *map(_passage, hits)))

    async def read_neighbours(self, hits: Sequence[PassageHit]) -> list[PassageHit]:
        """Return the passages before and after each hit, in the same document."""
        return await asyncio.to_thread(self._store.read_neighbours, hits)

    async def open(self, name: str) -> IndexedFile | None:
        """Return the document with this shown name, with its passages in order."""
        await self._ensure_fresh()
        return await asyncio.to_thread(self._store.entry, name)

    async def names(self) -> list[str]:
        """Return the shown names of the documents, in order."""
        await self._ensure_fresh()
        return [name for (name,) in await asyncio.to_thread(self._store.select, "SELECT name FROM files ORDER BY name")]

    async def read_versions(self) -> dict[str, tuple[str, str]]:
        """Return the shown name and the digest of each document, by its path."""
        await self._ensure_fresh()
        rows = await asyncio.to_thread(self._store.select, "SELECT path, name, hex(digest) FROM files")
        return {path: (name, digest) for path, name, digest in rows}

    async def take_new_warnings(self) -> list[str]:
        """Return the warnings that no process with this index has taken yet. One that comes back is new again."""
        return await asyncio.to_thread(self._store.take_new, list(dict.fromkeys(self.warnings)))

    async def aclose(self) -> None:
        """Close the connections to the encoder and the reranker."""
        for used in self.models:
            if used:
                await used.endpoint.aclose()

    def close(self) -> None:
        self._stop_reading()
        with self._turn:
            self._store.close()

    def _stop_reading(self) -> None:
        self._stopped.set()
        if self._child:
            self._child.close()

    async def _ensure_fresh(self) -> None:
        if not self._ready:
            await self.refresh()

    def _refresh(self, on_progress: Progress | None) -> None:
        with self._turn:
            unrecognised = [path for path, note in self._store.notes().items() if RECOGNISING in note]
            if unrecognised and can_recognise():
                self._store.drop(unrecognised)  # they were read before the package was installed
            # read the index before the walk: a file that another process adds meanwhile must not look removed
            known, refused = self._store.read_known()
            listing = walk(self.paths, self.exclude)
            if gone := (known.keys() | refused.keys()) - {str(path) for path in listing.files.values()}:
                self._store.drop(sorted(gone))
            changes, unread = find_changes(listing.files, known, refused)
            if changes:
                from hira.tools.documents.refresh import Refresh  # most questions come to an index without changes
                from hira.tools.opening import ReadingChild

                with ReadingChild() as self._child:
                    reading = Refresh(self._store, self._child, roots_of(self.paths), unread, self._stopped)
                    reading.read(changes, on_progress)
            warnings = [self._store.trouble, *listing.warnings, *unread.describe(), *self._store.notes().values()]
            self.warnings = [" ".join(clean(line).split()) for line in warnings if line]
            self.unread = [" ".join(clean(line).split()) for line in unread.describe_faults()]
            self.has_text = bool(self._store.select("SELECT 1 FROM files LIMIT 1"))
            self._ready = not self._stopped.is_set()


def _remove_outdated(cache: Path) -> None:
    """Remove the indexes of older editions that no version has used for a while. Each opening touches its file."""
    before = time.time() - _DAYS_KEPT * 86_400
    for old in cache.glob("documents-*.sqlite"):
        edition = old.name.split("-")[1]
        with suppress(OSError):
            if edition.isdecimal() and int(edition) < _EDITION and old.stat().st_mtime < before:
                remove_index(old)


def format_warnings(warnings: Sequence[str]) -> list[str]:
    """Return the first few warnings, and the number of the others."""
    more = len(warnings) - _LISTED
    return [*warnings[:_LISTED], *([f"… and {more} more"] if more > 0 else [])]


TOP = 10
"""Passages that a search shows."""
RELEVANT = 0.25
"""A passage below this share of the best passage's score is left out; it shares only common words."""
_WITH_NEIGHBOURS = 2
"""The best passages, which are shown with the passages around them."""

_NOUNS = ("document", "dokument", "file", "folder", "directory", "datei", "ordner", "fichier", "dossier", "archivo")


def search_documents(
    index: Index,
    *,
    top: int = TOP,
    relevant: float = RELEVANT,
    spend: "Spend | None" = None,
    on_failure: Callable[[str], None] | None = None,
) -> Tool:
    """Create the tool "search": at most `top` passages, best first. The other arguments are those of `Index.search`."""

    async def search(query: str) -> Observation:
        """Search the local documents for passages."""
        if any(noun in query.lower() for noun in _NOUNS):
            from hira.tools.documents.overview import asks_overview

            if asks_overview(query):
                return await index.survey(top)
        hits = await index.search(query, top, relevant, spend=spend, on_failure=on_failure)
        if not hits:
            return Observation(f"nothing found for {query!r} in {count_of(len(await index.names()), 'document')}")
        best = hits[:_WITH_NEIGHBOURS]
        names = [hit.name for hit in best]  # what comes after one of the newest vintage of its document is outdated
        latest = [hit for place, hit in enumerate(best) if not (hit.issue and hit.issue.newest in names[:place])]
        beside = await index.read_neighbours(latest)
        kept = list({hit.row: hit for hit in [*best, *beside, *hits[_WITH_NEIGHBOURS:]]}.values())[:top]
        # passages of one document are in its order, where the best of them is
        places = {hit.name: place for place, hit in reversed(list(enumerate(hits)))}
        shown = sorted(kept, key=lambda hit: (places[hit.name], hit.row))
        return Observation(passages=tuple(map(_passage, shown)))

    return replace(text_tool(search, {"query": "a question or its key words"}), pure=True)


def _passage(hit: PassageHit) -> Passage:
    """Return the hit as a passage, without the document's title in its heading, because the title is shown with it."""
    piece = hit.piece
    place = f"({piece.place})" if piece.place else ""
    text, places = join_pieces([piece], hit.title, placed=True)
    issue, newer = (f"({hit.issue.describe()})", hit.issue.newest) if hit.issue else ("", "")
    shown = (issue, place, drop_title(piece.heading, hit.title), piece.text)
    source = Source(hit.name, hit.title, text, "file", places=places, newer=newer)
    return Passage(source, "\n".join(filter(None, shown)))


def browse_documents(index: Index) -> Tool:
    """Create the tool "browse": a document of the index, whole, or the passages of a long one that fit the intent."""

    async def browse(url: str, intent: str = "") -> Observation:
        """Open a local document; of a long one, the passages that fit the intent."""
        from hira.tools.documents.showing import find_name, show

        entry = await index.open(url) or await index.open(find_name(await index.names(), url))
        if entry is None or not entry.pieces:
            raise ToolError(f"{url!r} holds no text" + (f" ({entry.note})" if entry and entry.note else ""))
        return await asyncio.to_thread(show, entry, intent)  # it may be as long as a file

    made = text_tool(browse, {"url": "its path, as the search shows it"}, intent="what to look for")
    return replace(made, seconds=300.0, pure=True)
