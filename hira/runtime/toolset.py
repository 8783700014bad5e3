"""The tools of runs: what they share (an index, search services) and what each has alone (a folder, files, Python)."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hira.core.budget import Budget
from hira.core.concurrency import SingleFlight
from hira.core.errors import ToolError, UsageError, did_you_mean
from hira.core.events import DocumentsRead, Events, Notice
from hira.core.prices import Price
from hira.core.sanitize import flatten_name
from hira.runtime.settings import SEARCH_KEYS, Settings
from hira.runtime.workspace import ReadableFiles, find_readable, work_folder
from hira.tools import Observation, Tool, Toolbox
from hira.tools.python.layers import refusal
from hira.tools.python.limits import IMAGE
from hira.tools.python.tool import open_python
from hira.tools.toolbox import OpenPython

if TYPE_CHECKING:
    from hira.tools.documents import Index
    from hira.tools.mcp import Server
    from hira.tools.search import Backend

# Web searches that are chosen by themselves where their key is set, best first. Others have to be named.
PREFERRED = ("serper", "tavily", "brave", "exa", "serpapi", "jina")
# Services that people know by another name, and those that use another one's key.
ALSO_CALLED = {"wikipedia": "mediawiki"}
SAME_KEY = {"serper_scholar": "serper", "serpapi_scholar": "serpapi"}
DOCUMENTS = "documents"
# Seconds: between two tellings of how far the reading is, and for which documents that were read count as up to date.
TELL_EVERY = 1.0
FRESH = 1.0


@dataclass(slots=True)
class Toolset:
    """The tools that runs share. `notices` are shown once, in the first run. `sees` says whether some role of the
    workflow looks at pictures, so that documents without text are useful. With `once`, searches and pages of one run
    are reused in another."""

    settings: Settings
    index: "Index | None"
    documents: tuple[Tool, Tool] | None
    backends: "tuple[Backend, ...]"
    extra: tuple[Tool, ...]
    python: bool
    stack: AsyncExitStack
    notices: list[Notice] = field(default_factory=list)
    scoped: Mapping[str, tuple[Tool, ...]] = field(default_factory=dict)
    sees: bool = False
    once: SingleFlight | None = None
    _texts: bool = True
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    _read_at: float | None = None
    _finding: asyncio.Lock = field(default_factory=asyncio.Lock)
    _readable: ReadableFiles = field(default_factory=ReadableFiles)

    @asynccontextmanager
    async def toolbox(
        self, run: str, question: str, files: Sequence[Path], events: Events, budget: Budget
    ) -> AsyncIterator[Toolbox]:
        """The tools of one run; its work folder is removed with everything in it when the context is left."""
        documents = self.documents
        readable = await self._find_readable(files)
        if self.index:
            attached = {flatten_name(str(file)) for file in files}
            seen = any(name not in attached and not name.lower().endswith(".pdf") for name in readable.shown)
            await self._read(self.index, events, seen=seen)
            if documents and not self.index.is_only_words:
                documents = await self._encode(self.index, documents[1], budget, events)
        while self.notices:
            events(self.notices.pop(0))
        search, browse, scholar = self._find_tools(question, events, documents)
        async with work_folder(run) as folder:
            attachments = media = None
            if files:
                from hira.tools.files import files_tool

                attachments = files_tool(files, folder if self.python else None)
            if readable.shown:
                from hira.tools.media import media_reader

                media = media_reader((*readable.places, folder), readable.shown)
            yield Toolbox(
                search=search,
                scholar=scholar,
                browse=browse,
                files=attachments,
                python=self._python(folder, readable.places) if self.python else None,
                media=media,
                visible=tuple(readable.shown),
                extra=self.extra,
                scoped=self.scoped,
            )

    def _python(self, folder: Path, readable: tuple[Path, ...]) -> OpenPython:
        settings, named = self.settings, {}
        if settings.docs:
            from hira.tools.documents.walk import beginnings

            named = dict(beginnings(settings.docs))
        return open_python(
            folder,
            readable=readable,
            closed=settings.exclude,
            named=named,
            sandbox=settings.sandbox,
            image=settings.sandbox_image or IMAGE,
        )

    async def aclose(self) -> None:
        await self.stack.aclose()

    async def _find_readable(self, files: Sequence[Path]) -> ReadableFiles:
        """Return the files that a run may read; runs that begin together look up the documents once."""
        async with self._finding:
            if time.monotonic() - self._readable.read_at >= FRESH:
                self._readable = await asyncio.to_thread(find_readable, self.settings.docs, (), self.settings.exclude)
            docs = self._readable
        return docs.with_attached(await asyncio.to_thread(find_readable, (), files)) if files else docs

    async def _read(self, index: "Index", events: Events, *, seen: bool) -> None:
        """Update the index, once for runs that begin together. Unreadable files are reported once, by one of the
        processes that share the index.

        Raises `UsageError` if no document contains text, unless there is something to be `seen` and a role that sees.
        """
        async with self._reading:
            if self._read_at is not None and time.monotonic() - self._read_at < FRESH:
                return
            progress = _Progress(events)
            try:
                await index.refresh(progress)
            except asyncio.CancelledError:
                if progress.total:
                    kept = "; the next question continues there" if self.settings.cache else ""
                    what = f"{progress.done:,} of {progress.total:,} new documents are indexed{kept}"
                    events(Notice(what, important=True))
                raise
            self._texts = bool(await index.names())
            if not (self._texts or (seen and self.sees)):
                raise _unread(index.paths, index.warnings)
            from hira.tools.documents import format_warnings

            for line in format_warnings(await index.take_new_warnings()):
                events(Notice(line, important=True))
            self._read_at = time.monotonic()

    async def _encode(self, index: "Index", browse: Tool, budget: Budget, events: Events) -> tuple[Tool, Tool]:
        """Encode the passages that have no vector yet, for one run at a time, and return "search" and "browse" of the
        run."""
        from hira.runtime.encoding import EncoderUse
        from hira.tools.documents import EncoderFailed, search_documents

        settings = self.settings
        prices = {name: Price(price.input, price.output, price.cached) for name, price in settings.prices.items()}
        use = EncoderUse(budget, events, prices, settings.embed)
        async with self._reading:
            try:
                await index.encode(_Progress(events, "passages"), use.spend)
            except EncoderFailed as error:
                use.fail(str(error))
        return search_documents(index, spend=use.spend, on_failure=use.fail), browse

    def _find_tools(
        self, question: str, events: Events, documents: tuple[Tool, Tool] | None
    ) -> tuple[Tool | None, Tool | None, Tool | None]:
        """The tools "search" and "browse" of one run, over the documents, the web, or both, and "scholar" over the
        services of scholarly works among those of the web."""
        documents = documents if self._texts else None
        if not self.backends:
            return (*(documents or (None, None)), None)
        search, browse, scholar = _web(self.backends, self.settings, question, events, self.once)
        if documents:
            search, browse = both(documents[0], search), either(documents[1], browse)
        return search, browse, scholar


async def open_toolset(settings: Settings, extra: Sequence[Tool] = (), *, sees: bool = False) -> Toolset:
    """Lay out the tools. Raises `UsageError` for documents that are missing or empty and for searches without a key."""
    stack = AsyncExitStack()
    names = web_searches(settings)
    check_searches(names, settings)
    index, documents = None, None
    if settings.docs:
        from hira.tools.documents import Index, browse_documents, search_documents
        from hira.tools.documents.walk import walk
        from hira.tools.media import can_be_sent

        listing = await asyncio.to_thread(walk, settings.docs, settings.exclude)
        if not (listing.files or (sees and any(map(can_be_sent, listing.media)))):
            raise _unseen(settings.docs) if listing.media else _unread(settings.docs, listing.warnings)
        encoder, reranker = None, None
        if settings.embed or settings.rerank or not {"embed", "rerank"}.isdisjoint(settings.roles):
            from hira.runtime.encoding import open_encoder, open_reranker

            encoder, reranker = open_encoder(settings), open_reranker(settings)
        index = Index(settings.docs, settings.cache, exclude=settings.exclude, encoder=encoder, reranker=reranker)
        stack.push_async_callback(index.aclose)
        stack.callback(index.close)
        documents = (search_documents(index), browse_documents(index))
    try:
        refused = await asyncio.to_thread(refusal, settings.sandbox, settings.sandbox_image or IMAGE)
        notices = [Notice(text) for text in (*settings.withheld, refused) if text]
        backends = _open_backends(names, settings, stack, notices) if names else ()
        general, scoped = await _of_servers(settings, stack, notices)
    except BaseException:
        await stack.aclose()
        raise
    extra = (*extra, *general)
    return Toolset(settings, index, documents, backends, extra, not refused, stack, notices, scoped, sees)


async def _of_servers(
    settings: Settings, stack: AsyncExitStack, notices: list[Notice]
) -> tuple[tuple[Tool, ...], dict[str, tuple[Tool, ...]]]:
    """The tools of MCP servers, for all and for some experts. The servers are started at once and end with the stack.

    Raises `UsageError` for a server that cannot be used, and for two tools with one name.
    """
    if not settings.mcp:
        return (), {}
    from hira.tools.mcp import mcp_tools

    opening = [mcp_tools(server, lambda text: notices.append(Notice(text))) for server in mcp_servers(settings)]
    opened = await asyncio.gather(*map(stack.enter_async_context, opening), return_exceptions=True)
    general: list[Tool] = []
    scoped: dict[str, tuple[Tool, ...]] = {}
    names: set[str] = set()
    for mcp_server, tools in zip(settings.mcp.values(), opened, strict=True):
        if isinstance(tools, BaseException):
            raise tools
        if twice := next((tool.name for tool in tools if tool.name in names), ""):
            raise UsageError(f"two MCP servers have a tool named {twice!r}", fix="rename one of them")
        names.update(tool.name for tool in tools)
        if not mcp_server.for_some:
            general += tools
            continue
        for role in dict.fromkeys(mcp_server.roles):
            scoped[role] = (*scoped.get(role, ()), *tools)
    return tuple(general), scoped


def mcp_servers(settings: Settings) -> "list[Server]":
    """The MCP servers of the settings, as they are opened."""
    from hira.tools.mcp import Server

    return [
        Server(
            name,
            server.command,
            server.args,
            {variable: value.get_secret_value() for variable, value in server.env.items()},
            server.url,
            {header: value.get_secret_value() for header, value in server.headers.items()},
            server.seconds,
        )
        for name, server in settings.mcp.items()
    ]


def web_searches(settings: Settings) -> tuple[str, ...]:
    """The web searches to ask: those that are named, else, unless there are documents, the first that is set up."""
    if settings.search:
        named = [name.strip() for name in settings.search.split(",")]
        return tuple(ALSO_CALLED.get(name, name) for name in named if name and name != DOCUMENTS)
    if settings.docs:
        return ()
    keyed = next((name for name in PREFERRED if name in settings.search_keys), "")
    return (keyed,) if keyed else ("searxng",) if settings.searxng_url else ()


def check_searches(names: Sequence[str], settings: Settings) -> None:
    """Raise `UsageError` for a search service that does not exist or lacks what it needs."""
    if names:
        from hira.tools.search import BACKENDS
    for name in names:
        if name not in BACKENDS and not name.startswith("litellm:"):
            fix = did_you_mean(name, [*ALSO_CALLED, DOCUMENTS, *BACKENDS])
            raise UsageError(
                f"there is no search service {name!r}", where=f"named by {settings.origin('search')}", fix=fix
            )
        keyed = SAME_KEY.get(name, name)
        if keyed in PREFERRED and keyed not in settings.search_keys:
            raise UsageError(f"the search service {name!r} needs a key", fix=f"set {SEARCH_KEYS[keyed]}")
        if name == "searxng" and not settings.searxng_url:
            raise UsageError("the search service 'searxng' needs its server's address", fix="set SEARXNG_BASE_URL")


def _open_backends(
    names: Sequence[str], settings: Settings, stack: AsyncExitStack, notices: list[Notice]
) -> "tuple[Backend, ...]":
    from hira.tools.fetch import identification
    from hira.tools.search import Cache, cache_search, open_backend, open_client

    client = open_client(identification(settings.contact))
    stack.push_async_callback(client.aclose)
    opened = []
    for name in names:
        key = settings.search_keys.get(SAME_KEY.get(name, name))
        opened.append(
            open_backend(
                name,
                client,
                key=key.get_secret_value() if key else "",
                base_url=settings.searxng_url if name == "searxng" else "",
                contact=settings.contact,
            )
        )
    if settings.cache is None:
        return tuple(opened)
    try:
        cache = Cache(settings.cache / "searches.sqlite")
    except ToolError as error:
        notices.append(Notice(str(error)))
        return tuple(opened)
    stack.callback(cache.close)
    places = {"searxng": settings.searxng_url}
    return tuple(cache_search(backend, cache, places.get(backend.name, "")) for backend in opened)


def _web(
    backends: "Sequence[Backend]", settings: Settings, question: str, events: Events, once: SingleFlight | None
) -> tuple[Tool, Tool, Tool | None]:
    """Search, browse and scholar for one run: only what was shown to it may be opened."""
    from hira.tools.addresses import canonicalise_url, urls
    from hira.tools.browse import browse_tool
    from hira.tools.fetch import Fetcher
    from hira.tools.search import SCHOLARLY, scholar_tool, search_tool, share_search

    seen = {canonicalise_url(url) for url in urls(question)}
    fetcher = Fetcher(settings.allowed_hosts, contact=settings.contact, once=once)
    backends = [share_search(backend, once) for backend in backends] if once else backends
    scholarly = [backend for backend in backends if backend.name in SCHOLARLY]
    scholar = scholar_tool(scholarly, seen=seen, on_notice=events) if scholarly else None
    return (
        search_tool(backends, seen=seen, on_notice=events),
        browse_tool(fetcher, seen=seen),
        scholar,
    )


def both(documents: Tool, web: Tool) -> Tool:
    """One "search" that asks the documents and the web at once; the documents' passages come first."""

    async def run(arguments: Mapping[str, Any]) -> Observation:
        searches = (documents.call(arguments), web.call(arguments))
        results = await asyncio.gather(*searches, return_exceptions=True)
        seen = [result for result in results if isinstance(result, Observation)]
        failed = [result for result in results if isinstance(result, BaseException)]
        for error in failed:
            if not isinstance(error, ToolError) or not seen:
                raise error
        texts = [observation.text for observation in seen if observation.text] + [str(error) for error in failed]
        return Observation("\n".join(texts), tuple(passage for observation in seen for passage in observation.passages))

    return replace(web, run=run, description="Search the local documents and the web. " + web.description)


def either(documents: Tool, web: Tool) -> Tool:
    """One "browse": a URL is opened on the web, everything else among the documents."""

    async def run(arguments: Mapping[str, Any]) -> Observation:
        address = str(arguments["url"]).strip().lower()
        return await (web if address.startswith(("http://", "https://")) else documents).call(arguments)

    description = "Open a local document by its path, or a web page by its URL. " + web.description
    return replace(web, run=run, description=description, seconds=max(web.seconds, documents.seconds))


def _unseen(paths: Sequence[Path]) -> UsageError:
    """The error for documents that are all pictures, sounds and videos, where nobody can take them in."""
    what = "the documents have no text, only pictures, sounds or videos"
    fix = 'name a model that sees ([roles.look] model = "NAME") for a workflow with the multimodal expert'
    return UsageError(what, where=_list_paths(paths), fix=fix)


def _unread(paths: Sequence[Path], why: Sequence[str]) -> UsageError:
    """The error for documents of which none can be read."""
    where = _list_paths(paths)
    if len(why) == 1:
        return UsageError(why[0], where=where, fix="no other document was found" if paths[0].is_dir() else "")
    if why:
        from hira.tools.documents import format_warnings

        return UsageError("none of the documents can be read", where=where, fix="; ".join(format_warnings(why)))
    return UsageError("no readable documents were found", where=where, fix="name a folder that holds documents")


def _list_paths(paths: Sequence[Path]) -> str:
    return "in " + ", ".join(map(str, paths))


class _Progress:
    """Tells now and then how far the reading of documents or the encoding of passages is; may be called in a
    thread."""

    def __init__(self, events: Events, what: str = "documents") -> None:
        self.done = self.total = 0
        self._what = what
        self._events = events
        self._loop = asyncio.get_running_loop()
        self._last = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        self.done, self.total = done, total
        if time.monotonic() - self._last >= TELL_EVERY:
            self._last = time.monotonic()
            self._loop.call_soon_threadsafe(self._events, DocumentsRead(done, total, self._what))
