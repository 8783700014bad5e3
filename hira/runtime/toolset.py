"""The tools of runs: what they share (an index, search services) and what each has alone (a folder, files, Python)."""

import asyncio
import contextlib
import math
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hira.agents.trajectory import Rollout
from hira.core.budget import Budget
from hira.core.concurrency import SingleFlight
from hira.core.errors import HiraError, UsageError
from hira.core.events import DocumentsRead, Events, Notice
from hira.core.prices import Price
from hira.core.sanitize import flatten_name
from hira.core.tool import Context
from hira.runtime.settings import Settings
from hira.tools import Tool, Toolbox
from hira.tools.python.layers import IMAGE, refusal
from hira.tools.python.tool import open_python

if TYPE_CHECKING:
    from hira.tools.documents import Index
    from hira.tools.documents.walk import WalkResult
    from hira.tools.search import Backend

# Seconds: between two tellings of how far the reading is, and for which documents that were read count as up to date.
TELL_EVERY = 1.0
FRESH = 1.0
# Sets of documents of single questions that stay open.
KEPT = 32
QUESTION = "ask(docs=…)"
"""The origin of the documents that a question names."""


@dataclass(frozen=True, slots=True)
class ReadableFiles:
    """Everything that can be seen and heard, by its name on one line, the `places` of everything that may be read, and
    how the names of the documents in a folder begin, as of the time `read_at`."""

    shown: Mapping[str, Path] = field(default_factory=dict)
    places: tuple[Path, ...] = ()
    beginnings: Mapping[Path, str] = field(default_factory=dict)
    read_at: float = -math.inf


def find_readable(
    docs: Sequence[Path],
    files: Sequence[Path] = (),
    exclude: Sequence[Path] = (),
    listing: "WalkResult | None" = None,
) -> ReadableFiles:
    """Look up the readable documents and files but the excluded ones; a known `listing` is used. Blocking."""
    if not (docs or files):
        return ReadableFiles(read_at=time.monotonic())
    from hira.tools.documents.walk import beginnings, walk
    from hira.tools.file_kinds import can_be_sent

    listing = walk(docs, exclude) if listing is None else listing
    named = {**{str(file): file.expanduser() for file in files}, **listing.media, **listing.files}
    shown = {flatten_name(name): path for name, path in named.items() if can_be_sent(name)}
    places = tuple(path.expanduser().resolve() for path in (*docs, *files))
    return ReadableFiles(shown, places, beginnings(docs), time.monotonic())


def remove_folder(folder: Path) -> None:
    """Remove the folder with all that programs have left in it, at whatever depth; blocking.

    `shutil.rmtree` would run out of stack or of descriptors in folders that are nested deep enough.
    """
    from hira.tools.python.folder import FolderContent, clear

    with contextlib.suppress(OSError):
        clear(folder, FolderContent())
        folder.rmdir()


@dataclass(slots=True)
class Toolset:
    """The tools that runs share. `notices` are shown once, in the first run. `sees` says whether some role of the
    workflow looks at pictures, so that documents without text are useful. With `once`, searches and pages of one run
    are reused in another."""

    settings: Settings
    index: "Index | None"
    backends: "tuple[Backend, ...]"
    extra: tuple[Tool, ...]
    python: bool
    retrievers: tuple[Tool, ...]
    stack: AsyncExitStack
    notices: list[Notice] = field(default_factory=list)
    scoped: Mapping[str, tuple[Tool, ...]] = field(default_factory=dict)
    sees: bool = False
    once: SingleFlight | None = None
    readable: ReadableFiles = field(default_factory=ReadableFiles)
    _texts: bool = field(default=True, init=False)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _read_at: float | None = field(default=None, init=False)
    _others: "dict[tuple[Path, ...], Toolset]" = field(default_factory=dict, init=False)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def with_docs(self, docs: tuple[Path, ...]) -> "Toolset":
        """Return the same tools over other documents. The latest sets of documents stay open for later questions; the
        index of another one is closed when the last run that uses it has ended.

        Raises `UsageError` for documents that are missing or empty.
        """
        if docs == self.settings.docs:
            return self
        async with self._opening:
            toolset = self._others.pop(docs, None)
            if toolset is None:
                settings = self.settings.with_values({"docs": docs}, QUESTION)
                like = self.index or next((other.index for other in self._others.values() if other.index), None)
                index, readable = await open_index(settings, self.stack, like, sees=self.sees)
                backends = self.backends if settings.web_searches else ()
                toolset = replace(self, settings=settings, index=index, backends=backends, readable=readable)
            self._others[docs] = toolset
            if len(self._others) > KEPT:
                del self._others[next(iter(self._others))]
        return toolset

    @asynccontextmanager
    async def toolbox(
        self, context: Context, files: Sequence[Path], events: Events, budget: Budget
    ) -> AsyncIterator[Toolbox]:
        """The tools of one run; its work folder is removed with everything in it when the context is left."""
        settings = self.settings
        readable = await self._read(files, events)
        unread = [*self.index.unread] if self.index else []
        search, browse, scholar, more = await self._find_tools(context, events, budget)
        while self.notices:
            events(self.notices.pop(0))
        # nobody else knows of it; who needs it makes it, in a thread: few runs do, and a busy disk holds up others
        folder = Path(tempfile.gettempdir(), f"hira-{context.run_id}-{secrets.token_hex(8)}")
        attachments = media = python = None
        try:
            if files:
                from hira.tools.files import files_tool

                attachments = files_tool(
                    files,
                    folder if self.python else None,
                    on_remark=lambda text: events(Notice(text, important=True)),
                    unread=unread,
                )
            if self.python:
                python = open_python(
                    folder,
                    readable=readable.places,
                    closed=settings.exclude,
                    named=readable.beginnings,
                    sandbox=settings.sandbox,
                    image=settings.sandbox_image or IMAGE,
                )
            if readable.shown:
                from hira.tools.media import media_reader

                media = media_reader((*readable.places, folder), readable.shown)
            yield Toolbox(
                search=search,
                scholar=scholar,
                browse=browse,
                files=attachments,
                python=python,
                media=media,
                visible=tuple(readable.shown),
                extra=(*(tool.bind(context) for tool in self.extra), *more),
                scoped=self.scoped,
                unread=unread,
            )
        finally:
            if folder.exists():  # noqa: ASYNC240 - a look costs less than a thread
                await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, remove_folder, folder))

    async def keep_claims(self, record: Rollout, events: Events) -> None:
        """Keep the verified claims of an answer, if that is wanted; a memory that cannot be used is a notice."""
        if self.settings.memory and self.index:
            from hira.runtime.claim_memory import ClaimMemory  # few runs have one

            try:
                await ClaimMemory(self.settings.memory).keep(record, self.index)
            except HiraError as error:
                why = "; ".join(str(error).splitlines())
                events(Notice(f"nothing of this answer is remembered: {why}", important=True))

    async def aclose(self) -> None:
        for other in self._others.values():
            if other.index:
                other.index.close()
        await self.stack.aclose()

    async def _read(self, files: Sequence[Path], events: Events) -> ReadableFiles:
        """Return the files that a run may read, and update the index; runs that begin together look up the documents
        once. Unreadable files are reported once, by one of the processes that share the index.

        Raises `UsageError` if no document contains text, unless there is something to be seen and a role that sees.
        """
        index = self.index
        async with self._reading:
            if time.monotonic() - self.readable.read_at >= FRESH:
                self.readable = await asyncio.to_thread(find_readable, self.settings.docs, (), self.settings.exclude)
            readable = docs = self.readable
            if files:
                attached = await asyncio.to_thread(find_readable, (), files)
                places = (*docs.places, *attached.places)
                readable = replace(docs, shown={**attached.shown, **docs.shown}, places=places)
            if index is None or (self._read_at is not None and time.monotonic() - self._read_at < FRESH):
                return readable
            progress = _Progress(events)
            try:
                await index.refresh(progress)
            except asyncio.CancelledError:
                if progress.total:
                    kept = "; the next question continues there" if self.settings.cache else ""
                    what = f"{progress.done:,} of {progress.total:,} new documents are indexed{kept}"
                    events(Notice(what, important=True))
                raise
            self._texts = index.has_text
            named = {flatten_name(str(file)) for file in files}
            seen = any(name not in named and not name.lower().endswith(".pdf") for name in readable.shown)
            if not (self._texts or (seen and self.sees)):
                raise _unread(index.paths, index.warnings)
            if warnings := await index.take_new_warnings():
                from hira.tools.documents import format_warnings

                for line in format_warnings(warnings):
                    events(Notice(line, important=True))
            self._read_at = time.monotonic()
        return readable

    async def _find_tools(
        self, context: Context, events: Events, budget: Budget
    ) -> tuple[Tool | None, Tool | None, Tool | None, Sequence[Tool]]:
        """The tools "search" and "browse" of one run, over the documents, the user's retrievers and the web,
        "scholar" over the services of scholarly works among those of the web, and "follow_citations" and
        "google_search" if one of the services has them. Passages without a vector are encoded, for one run at a time.
        """
        index, settings = self.index, self.settings
        searches = [tool.bind(context) for tool in self.retrievers]
        browse = scholar = None
        more: Sequence[Tool] = ()
        if index and self._texts:
            from hira.tools.documents import TOP, EncoderFailed, browse_documents, search_documents

            # more passages, and any, where a model scores them
            options: dict[str, Any] = {"top": max(TOP, settings.evidence), "relevant": 0.0} if settings.evidence else {}
            if any(index.models):
                from hira.runtime.encoding import EncoderUse

                known = settings.prices.get(settings.embed)
                use = EncoderUse(budget, events, Price(known.input, known.output, known.cached) if known else None)
                options |= {"spend": use.spend, "on_failure": use.fail}
                async with self._reading:
                    try:
                        await index.encode(_Progress(events, "passages"), use.spend)
                    except EncoderFailed as error:
                        use.fail(str(error))
            searches, browse = [search_documents(index, **options), *searches], browse_documents(index)
            if settings.memory:
                from hira.runtime.claim_memory import ClaimMemory  # few runs have one

                searches.insert(0, ClaimMemory(settings.memory).make_search(index))
        if self.backends:
            from hira.runtime.services import either, make_web_tools

            search, web_browse, scholar, more = make_web_tools(
                self.backends, settings, context.question, events, self.once, budget
            )
            searches, browse = [*searches, search], either(browse, web_browse) if browse else web_browse
        merged = next(iter(searches), None)
        if len(searches) > 1:
            from hira.runtime.services import merge_searches  # many runs have documents alone

            merged = merge_searches(searches, events)
        return merged, browse, scholar, more


async def open_toolset(
    settings: Settings,
    extra: Sequence[Tool] = (),
    retrievers: Sequence[Tool] = (),
    *,
    sees: bool = False,
    price: Price | None = None,
) -> Toolset:
    """Lay out the tools. `price` is that of the model that searches the web.

    Raises `UsageError` for documents that are missing or empty.
    """
    stack = AsyncExitStack()
    names = settings.web_searches
    index, readable = await open_index(settings, stack, sees=sees)
    try:
        refused = await asyncio.to_thread(refusal, settings.sandbox, settings.sandbox_image or IMAGE)
        notices = [Notice(text, important=True) for text in settings.withheld]
        notices += [Notice(refused)] if refused else []
        backends: tuple[Backend, ...] = ()
        general: tuple[Tool, ...] = ()
        scoped: Mapping[str, tuple[Tool, ...]] = {}
        if names or settings.mcp:
            from hira.runtime.services import open_backends, open_servers  # many runs have documents alone

            backends = open_backends(names, settings, stack, notices, price) if names else ()
            general, scoped = await open_servers(settings, stack, notices) if settings.mcp else ((), {})
    except BaseException:
        await stack.aclose()
        raise
    return Toolset(
        settings,
        index,
        backends,
        (*extra, *general),
        not refused,
        tuple(retrievers),
        stack,
        notices,
        scoped,
        sees,
        readable=readable,
    )


async def open_index(
    settings: Settings, stack: AsyncExitStack, like: "Index | None" = None, *, sees: bool = False
) -> "tuple[Index | None, ReadableFiles]":
    """Open the index of the documents, None without any, and look up those that may be read. The index uses the encoder
    and the reranker of one that it is `like`; those that it opens itself are closed by the stack.

    Raises `UsageError` for documents that are missing or empty.
    """
    if not settings.docs:
        return None, ReadableFiles()
    from hira.tools.documents import Index
    from hira.tools.documents.walk import WalkResult, walk
    from hira.tools.file_kinds import can_be_sent

    def look_up() -> tuple[WalkResult, ReadableFiles]:
        listing = walk(settings.docs, settings.exclude)
        return listing, find_readable(settings.docs, listing=listing)

    try:
        listing, readable = await asyncio.to_thread(look_up)
    except UsageError as error:
        raise UsageError(error.what, where=error.where or settings.locate("docs"), fix=error.fix) from None
    if not (listing.files or (sees and any(map(can_be_sent, listing.media)))):
        raise _unread(settings.docs, listing.warnings, unseen=bool(listing.media))
    encoder, reranker = like.models if like else (None, None)
    if like is None and (settings.embed or settings.rerank or not {"embed", "rerank"}.isdisjoint(settings.roles)):
        from hira.runtime.encoding import open_models

        encoder, reranker = open_models(settings)
    index = await asyncio.to_thread(  # another process may hold its file for a while
        Index, settings.docs, settings.cache, exclude=settings.exclude, encoder=encoder, reranker=reranker
    )
    if like is None:
        stack.push_async_callback(index.aclose)
        stack.callback(index.close)
    return index, readable


def _unread(paths: Sequence[Path], why: Sequence[str], *, unseen: bool = False) -> UsageError:
    """The error for documents of which none can be read, or of pictures, sounds and videos that no model takes in."""
    where = "in " + ", ".join(map(str, paths))
    if unseen:
        what = "the documents have no text, only pictures, sounds or videos"
        fix = 'name a model that sees ([roles.look] model = "NAME") for a workflow with the multimodal expert'
        return UsageError(what, where=where, fix=fix)
    fix = "name files or folders that hold text"
    if len(why) == 1:
        others = "no other document was found; " if any(path.is_dir() for path in paths) else ""
        return UsageError(why[0], where=where, fix=f"{others}{fix}")
    if why:
        from hira.tools.documents import format_warnings

        return UsageError("none of the documents can be read", where=where, fix="; ".join(format_warnings(why)))
    return UsageError("no readable documents were found", where=where, fix=fix)


@dataclass(slots=True)
class _Progress:
    """Tells now and then how far reading documents or encoding passages is; may be called in a thread."""

    events: Events
    what: str = "documents"
    done: int = 0
    total: int = 0
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _last: float = field(default_factory=time.monotonic)

    def __call__(self, done: int, total: int) -> None:
        self.done, self.total = done, total
        if time.monotonic() - self._last >= TELL_EVERY:
            self._last = time.monotonic()
            self._loop.call_soon_threadsafe(self.events, DocumentsRead(done, total, self.what))
