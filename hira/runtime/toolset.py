"""The tools of runs: what they share (an index, search services) and what each has alone (a folder, files, Python)."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hira.agents.trajectory import Rollout
from hira.core.budget import Budget
from hira.core.concurrency import SingleFlight
from hira.core.errors import HiraError, ToolError, UsageError, did_you_mean
from hira.core.events import DocumentsRead, Events, Notice
from hira.core.prices import Price
from hira.core.sanitize import flatten_name
from hira.core.tool import Context
from hira.policies.names import GGUF, IN_PROCESS, LITELLM, OFFLINE, OPENAI_URL, names_of
from hira.runtime.registry import SEARCH
from hira.runtime.settings import DOCUMENTS, SEARCH_KEYS, RoleSettings, Settings, list_retrievers
from hira.runtime.settings.keys import find_place
from hira.runtime.workspace import ReadableFiles, find_readable, work_folder
from hira.tools import Observation, Tool, Toolbox
from hira.tools.python.layers import IMAGE, refusal
from hira.tools.python.tool import open_python
from hira.tools.toolbox import OpenPython

if TYPE_CHECKING:
    import httpx

    from hira.runtime.claim_memory import ClaimMemory
    from hira.tools.documents import Index
    from hira.tools.mcp import Server
    from hira.tools.search import Backend, VendorSearch
    from hira.tools.search.service import HostPace

# Web searches that are chosen by themselves where their key is set, best first. Others have to be named.
PREFERRED = ("serper", "tavily", "brave", "exa", "serpapi", "jina")
# Services that people know by another name, and those that use another one's key.
ALSO_CALLED = {"wikipedia": "mediawiki", "pubmed": "europepmc"}
SAME_KEY = {"serper_google": "serper", "serper_scholar": "serper", "serpapi_scholar": "serpapi"}
# Seconds: between two tellings of how far the reading is, and for which documents that were read count as up to date.
TELL_EVERY = 1.0
FRESH = 1.0
# Sets of documents of single questions that stay open.
KEPT = 32
QUESTION = "ask(docs=…)"
"""The origin of the documents that a question names."""


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
    _texts: bool = True
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    _read_at: float | None = None
    _finding: asyncio.Lock = field(default_factory=asyncio.Lock)
    _readable: ReadableFiles = field(default_factory=ReadableFiles)
    _others: "dict[tuple[Path, ...], Toolset]" = field(default_factory=dict)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def with_docs(self, docs: tuple[Path, ...]) -> "Toolset":
        """Return the same tools over other documents. The latest sets of documents stay open for later questions; the
        index of another one is closed when the last run that uses it has ended.

        Raises `UsageError` for documents that are missing or empty.
        """
        if docs == self.settings.docs:
            return self
        async with self._opening:
            toolset = self._others.pop(docs, None) or await self._open_beside(docs)
            self._others[docs] = toolset
            if len(self._others) > KEPT:
                del self._others[next(iter(self._others))]
        return toolset

    async def _open_beside(self, docs: tuple[Path, ...]) -> "Toolset":
        settings = self.settings.with_values({"docs": docs}, QUESTION)
        like = self.index or next((other.index for other in self._others.values() if other.index), None)
        index = await open_index(settings, self.stack, like, sees=self.sees)
        backends = self.backends if web_searches(settings) else ()
        return Toolset(
            settings,
            index,
            backends,
            self.extra,
            self.python,
            self.retrievers,
            self.stack,
            self.notices,
            self.scoped,
            self.sees,
            self.once,
        )

    @asynccontextmanager
    async def toolbox(
        self, context: Context, files: Sequence[Path], events: Events, budget: Budget
    ) -> AsyncIterator[Toolbox]:
        """The tools of one run; its work folder is removed with everything in it when the context is left."""
        documents = None
        readable = await self._find_readable(files)
        if self.index:
            attached = {flatten_name(str(file)) for file in files}
            seen = any(name not in attached and not name.lower().endswith(".pdf") for name in readable.shown)
            await self._read(self.index, events, seen=seen)
            documents = await self._open_documents(self.index, budget, events)
        while self.notices:
            events(self.notices.pop(0))
        search, browse, scholar, more = self._find_tools(context, events, documents, budget)
        async with work_folder(context.run_id) as folder:
            attachments = media = None
            if files:
                from hira.tools.files import files_tool

                attachments = files_tool(
                    files,
                    folder if self.python else None,
                    on_remark=lambda text: events(Notice(text, important=True)),
                )
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
                extra=(*(tool.bind(context) for tool in self.extra), *more),
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

    @property
    def memory(self) -> "ClaimMemory | None":
        """The memory across conversations, None without one, or without documents."""
        if self.settings.memory is None or self.index is None:
            return None
        from hira.runtime.claim_memory import ClaimMemory  # few runs have one

        return ClaimMemory(self.settings.memory)

    async def keep_claims(self, record: Rollout, events: Events) -> None:
        """Keep the verified claims of an answer, if that is wanted; a memory that cannot be used is a notice."""
        if self.memory and self.index:
            try:
                await self.memory.keep(record, self.index)
            except HiraError as error:
                events(Notice(f"nothing of this answer is remembered: {'; '.join(str(error).splitlines())}"))

    async def aclose(self) -> None:
        for other in self._others.values():
            if other.index:
                other.index.close()
        await self.stack.aclose()

    async def _find_readable(self, files: Sequence[Path]) -> ReadableFiles:
        """Return the files that a run may read; runs that begin together look up the documents once."""
        async with self._finding:
            if time.monotonic() - self._readable.read_at >= FRESH:
                self._readable = await asyncio.to_thread(find_readable, self.settings.docs, (), self.settings.exclude)
            docs = self._readable
        if not files:
            return docs
        attached = await asyncio.to_thread(find_readable, (), files)
        return ReadableFiles({**attached.shown, **docs.shown}, (*docs.places, *attached.places), docs.read_at)

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

    async def _open_documents(self, index: "Index", budget: Budget, events: Events) -> tuple[Tool, Tool]:
        """Return "search" and "browse" of one run. Passages without a vector are encoded, for one run at a time."""
        from hira.tools.documents import TOP, EncoderFailed, browse_documents, search_documents

        settings = self.settings
        # more passages, and any, where a model scores them
        depth: dict[str, Any] = {"top": max(TOP, settings.evidence), "relevant": 0.0} if settings.evidence else {}
        if index.is_only_words:
            return search_documents(index, **depth), browse_documents(index)
        from hira.runtime.encoding import EncoderUse

        prices = {name: Price(price.input, price.output, price.cached) for name, price in settings.prices.items()}
        use = EncoderUse(budget, events, prices, settings.embed)
        async with self._reading:
            try:
                await index.encode(_Progress(events, "passages"), use.spend)
            except EncoderFailed as error:
                use.fail(str(error))
        search = search_documents(index, **depth, spend=use.spend, on_failure=use.fail)
        return search, browse_documents(index)

    def _find_tools(
        self, context: Context, events: Events, documents: tuple[Tool, Tool] | None, budget: Budget
    ) -> tuple[Tool | None, Tool | None, Tool | None, Sequence[Tool]]:
        """The tools "search" and "browse" of one run, over the documents, the user's retrievers and the web,
        "scholar" over the services of scholarly works among those of the web, and "follow_citations" and
        "google_search" if one of the services has them."""
        searches = [tool.bind(context) for tool in self.retrievers]
        browse = scholar = None
        more: Sequence[Tool] = ()
        if documents and self._texts:
            searches, browse = [documents[0], *searches], documents[1]
            if self.memory and self.index:
                searches.insert(0, self.memory.make_search(self.index))
        if self.backends:
            search, web_browse, scholar, more = _web(
                self.backends, self.settings, context.question, events, self.once, budget
            )
            searches, browse = [*searches, search], either(browse, web_browse) if browse else web_browse
        return merge_searches(searches) if searches else None, browse, scholar, more


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
    names = web_searches(settings)
    index = await open_index(settings, stack, sees=sees)
    try:
        refused = await asyncio.to_thread(refusal, settings.sandbox, settings.sandbox_image or IMAGE)
        notices = [Notice(text, important=True) for text in settings.withheld]
        notices += [Notice(refused)] if refused else []
        backends = _open_backends(names, settings, stack, notices, price) if names else ()
        general, scoped = await _of_servers(settings, stack, notices) if settings.mcp else ((), {})
    except BaseException:
        await stack.aclose()
        raise
    extra = (*extra, *general)
    return Toolset(settings, index, backends, extra, not refused, tuple(retrievers), stack, notices, scoped, sees)


async def open_index(
    settings: Settings, stack: AsyncExitStack, like: "Index | None" = None, *, sees: bool = False
) -> "Index | None":
    """Open the index of the documents, None without any. It uses the encoder and the reranker of an index that it is
    `like`; those that it opens itself are closed by the stack.

    Raises `UsageError` for documents that are missing or empty.
    """
    if not settings.docs:
        return None
    from hira.tools.documents import Index
    from hira.tools.documents.walk import walk
    from hira.tools.file_kinds import can_be_sent

    try:
        listing = await asyncio.to_thread(walk, settings.docs, settings.exclude)
    except UsageError as error:
        raise UsageError(error.what, where=error.where or settings.locate("docs"), fix=error.fix) from None
    if not (listing.files or (sees and any(map(can_be_sent, listing.media)))):
        raise _unseen(settings.docs) if listing.media else _unread(settings.docs, listing.warnings)
    encoder, reranker = like.models if like else (None, None)
    if like is None and (settings.embed or settings.rerank or not {"embed", "rerank"}.isdisjoint(settings.roles)):
        from hira.runtime.encoding import open_encoder, open_reranker

        encoder, reranker = open_encoder(settings), open_reranker(settings)
    index = Index(settings.docs, settings.cache, exclude=settings.exclude, encoder=encoder, reranker=reranker)
    if like is None:
        stack.push_async_callback(index.aclose)
        stack.callback(index.close)
    return index


async def _of_servers(
    settings: Settings, stack: AsyncExitStack, notices: list[Notice]
) -> tuple[tuple[Tool, ...], dict[str, tuple[Tool, ...]]]:
    """The tools of MCP servers, for all and for some experts. The servers are started at once and end with the stack.

    Raises `UsageError` for a server that cannot be used, and for two tools with one name.
    """
    from hira.tools.mcp import mcp_tools

    opening = [mcp_tools(server, lambda text: notices.append(Notice(text))) for server in mcp_servers(settings)]
    opened = await asyncio.gather(*map(stack.enter_async_context, opening), return_exceptions=True)
    general: list[Tool] = []
    scoped: dict[str, tuple[Tool, ...]] = {}
    names: set[str] = set()
    for (name, mcp_server), offered in zip(settings.mcp.items(), opened, strict=True):
        if isinstance(offered, BaseException):
            raise offered
        tools = mark_for_approval(offered, name, mcp_server.approve)
        if twice := next((tool.name for tool in tools if tool.name in names), ""):
            raise UsageError(f"two MCP servers have a tool named {twice!r}", fix="rename one of them")
        names.update(tool.name for tool in tools)
        if not mcp_server.for_some:
            general += tools
            continue
        for role in dict.fromkeys(mcp_server.roles):
            scoped[role] = (*scoped.get(role, ()), *tools)
    return tuple(general), scoped


def mark_for_approval(tools: Sequence[Tool], server: str, approve: bool | Sequence[str]) -> tuple[Tool, ...]:  # noqa: FBT001 - a value of a setting
    """Return the tools of an MCP server; those that `approve` names, or all, need the approval of each call.

    Raises `UsageError` for a tool that the server does not have: its calls would run unapproved.
    """
    if isinstance(approve, bool):
        return tuple(replace(tool, needs_approval=approve) for tool in tools)
    from hira.tools.mcp import make_name

    named = {make_name(server, name): name for name in approve}
    offered = [tool.name for tool in tools]
    for name, text in named.items():
        if name not in offered:
            what = f"the MCP server {server!r} has no tool {text!r}"
            raise UsageError(what, where=f"approve of [mcp.{server}]", fix=did_you_mean(name, offered))
    return tuple(replace(tool, needs_approval=tool.name in named) for tool in tools)


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
        own = {"", DOCUMENTS, *list_retrievers(settings.search)}
        named = [name.strip() for name in settings.search.split(",")]
        return tuple(ALSO_CALLED.get(name, name) for name in named if name not in own)
    if settings.docs:
        return ()
    keyed = next((name for name in PREFERRED if name in settings.search_keys), "")
    return (keyed,) if keyed else ("searxng",) if settings.searxng_url else ()


def check_searches(names: Sequence[str], settings: Settings) -> None:
    """Raise `UsageError` for a search service that does not exist or lacks what it needs."""
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
    names: Sequence[str], settings: Settings, stack: AsyncExitStack, notices: list[Notice], price: Price | None
) -> "tuple[Backend, ...]":
    from hira.tools.fetch import identification
    from hira.tools.search import CITATIONS, VENDOR, Cache, VendorSearch, cache_search, open_backend, open_client

    client = open_client(identification(settings.contact))
    stack.push_async_callback(client.aclose)
    opened: list[Backend] = []
    paces: dict[str, HostPace] = {}
    names = [*names, *(CITATIONS if "semantic_scholar" in names else ())]
    for name in names:
        if name == VENDOR:
            opened.append(_open_vendor(settings, client, price))
            continue
        key = settings.search_keys.get("semantic_scholar" if name in CITATIONS else SAME_KEY.get(name, name))
        opened.append(
            open_backend(
                name,
                client,
                key=key.get_secret_value() if key else "",
                base_url=settings.searxng_url if name == "searxng" else "",
                contact=settings.contact,
                paces=paces,
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
    return tuple(
        replace(backend, cache=cache)
        if isinstance(backend, VendorSearch)
        else cache_search(backend, cache, places.get(backend.name, ""))
        for backend in opened
    )


def _open_vendor(settings: Settings, client: "httpx.AsyncClient", price: Price | None) -> "VendorSearch":
    """Open the web search of a vendor: that of the role `search`, else of the run's model."""
    from hira.tools.search import VendorSearch

    role_settings = settings.roles.get(SEARCH, RoleSettings())
    model = next(iter(names_of(role_settings.model or settings.model)), OFFLINE)
    place = find_place(model, SEARCH, role_settings, settings)
    elsewhere = place.model == OFFLINE or place.model.startswith((IN_PROCESS, LITELLM, GGUF))
    if elsewhere or not (place.base_url or place.secret):
        fix = 'set OPENAI_API_KEY, and name the model: [roles.search] model = "MODEL", or --role search=MODEL'
        raise UsageError(f"the search service 'openai' cannot ask {model!r}: it has no Responses API", fix=fix)
    return VendorSearch(client, place.model, place.base_url or OPENAI_URL, place.secret, price)


def _web(
    backends: "Sequence[Backend]",
    settings: Settings,
    question: str,
    events: Events,
    once: SingleFlight | None,
    budget: Budget,
) -> tuple[Tool, Tool, Tool | None, Sequence[Tool]]:
    """Search, browse, scholar and what else its services can for one run: only what was shown to it may be opened."""
    from hira.tools.addresses import canonicalise_url, urls
    from hira.tools.browse import browse_tool
    from hira.tools.fetch import Fetcher
    from hira.tools.search import (
        CITATIONS,
        SCHOLARLY,
        VendorSearch,
        citations_tool,
        scholar_tool,
        search_tool,
        share_search,
    )
    from hira.tools.search.google import NAME as GOOGLE
    from hira.tools.search.google import google_tool

    seen = {canonicalise_url(url) for url in urls(question)}
    retracted: set[str] = set()
    fetcher = Fetcher(settings.allowed_hosts, contact=settings.contact, once=once)
    backends = [backend.for_run(budget) if isinstance(backend, VendorSearch) else backend for backend in backends]
    backends = [share_search(backend, once) for backend in backends] if once else backends
    citing = {backend.name.rpartition("_")[2]: backend for backend in backends if backend.name in CITATIONS}
    backends = [backend for backend in backends if backend.name not in CITATIONS]
    scholarly = [backend for backend in backends if backend.name in SCHOLARLY]
    google = next((backend for backend in backends if backend.name == GOOGLE), None)
    scholar = scholar_tool(scholarly, seen=seen, retracted=retracted, on_notice=events) if scholarly else None
    return (
        search_tool(backends, seen=seen, retracted=retracted, on_notice=events),
        browse_tool(fetcher, seen=seen, retracted=retracted),
        scholar,
        (
            *([citations_tool(citing, seen=seen, retracted=retracted)] if citing else []),
            *([google_tool(google, seen=seen)] if google else []),
        ),
    )


def merge_searches(searches: Sequence[Tool]) -> Tool:
    """One "search" that asks all of these at once; the passages of the first come first."""
    if len(searches) == 1:
        return searches[0]

    async def run(arguments: Mapping[str, Any]) -> Observation:
        results = await asyncio.gather(*(tool.call(arguments) for tool in searches), return_exceptions=True)
        observations = [result for result in results if isinstance(result, Observation)]
        errors = [result for result in results if isinstance(result, BaseException)]
        for error in errors:
            if not isinstance(error, ToolError) or not observations:
                raise error
        texts = [seen.text for seen in observations if seen.text] + [str(error) for error in errors]
        return Observation("\n".join(texts), tuple(passage for seen in observations for passage in seen.passages))

    description = " ".join(dict.fromkeys(tool.description for tool in searches))
    return replace(searches[-1], run=run, description=description, bound=None)


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
