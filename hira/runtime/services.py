"""The tools of others: web searches, the pages that they find, and MCP servers."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hira.agents.faults import explain_failure
from hira.core.budget import Budget
from hira.core.concurrency import SingleFlight
from hira.core.errors import ToolError, UsageError, did_you_mean, find_near
from hira.core.events import Events, Notice
from hira.core.prices import Price
from hira.core.sanitize import redact
from hira.policies.names import GGUF, IN_PROCESS, LITELLM, OFFLINE, OPENAI_URL, names_of
from hira.runtime.registry import SEARCH
from hira.runtime.settings import ALSO_CALLED, DOCUMENTS, PREFERRED, SEARCH_KEYS, RoleSettings, Settings
from hira.runtime.settings.keys import find_place
from hira.tools import Observation, Tool

if TYPE_CHECKING:
    import httpx

    from hira.tools.mcp import Server
    from hira.tools.search import Backend, VendorSearch
    from hira.tools.search.service import HostPace

# services that use another one's key
SAME_KEY = {"serper_google": "serper", "serper_scholar": "serper", "serpapi_scholar": "serpapi"}
# Seconds that merged searches have beyond the slowest of them, so that one that hangs ends alone.
GRACE = 5.0


async def open_servers(
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
        with settings.located(f"mcp.{name}"):
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
            what = f"`approve` of [mcp.{server}]: the server has no tool {text!r}"
            raise UsageError(what, fix=did_you_mean(name, offered))
    return tuple(replace(tool, needs_approval=tool.name in named) for tool in tools)


def mcp_servers(settings: Settings) -> "list[Server]":
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


def check_searches(names: Sequence[str], settings: Settings) -> None:
    """Raise `UsageError` for a search service that does not exist or lacks what it needs."""
    from hira.tools.search import BACKENDS, VENDOR

    for name in names:
        if name not in BACKENDS and not name.startswith("litellm:"):
            setup = {each for each in BACKENDS if SAME_KEY.get(each, each) in (*PREFERRED, VENDOR, "searxng")}
            known = [DOCUMENTS, *sorted({*ALSO_CALLED, *BACKENDS} - setup), *sorted(setup)]
            parts = {part: each for each in reversed(known) for part in (*each.split("_"), each)}
            near = find_near(name.lower(), parts)  # "google" is part of a name
            fix = did_you_mean(parts[near[0]] if near else name, known)
            raise UsageError(
                f"there is no search service {name!r}", where=f"named by {settings.origin('search')}", fix=fix
            )
        keyed = SAME_KEY.get(name, name)
        if keyed in PREFERRED and keyed not in settings.search_keys:
            raise UsageError(f"the search service {name!r} needs a key", fix=f"set {SEARCH_KEYS[keyed]}")
        if name == "searxng" and not settings.searxng_url:
            raise UsageError("the search service 'searxng' needs its server's address", fix="set SEARXNG_BASE_URL")


def open_backends(
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
        fix = 'set OPENAI_API_KEY, and name the model: [roles.search] model = "MODEL", --role search=MODEL or roles='
        raise UsageError(f"the search service 'openai' cannot ask {model!r}: it has no Responses API", fix=fix)
    return VendorSearch(client, place.model, place.base_url or OPENAI_URL, place.secret, price)


def make_web_tools(
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


def either(documents: Tool, web: Tool) -> Tool:
    """One "browse": a URL is opened on the web, everything else among the documents."""

    async def run(arguments: Mapping[str, Any]) -> Observation:
        address = str(arguments["url"]).strip().lower()
        return await (web if address.startswith(("http://", "https://")) else documents).call(arguments)

    description = "Open a local document by its path, or a web page by its URL. " + web.description
    return replace(web, run=run, description=description, seconds=max(web.seconds, documents.seconds))


def merge_searches(searches: Sequence[Tool], events: Events) -> Tool:
    """One "search" that asks all of these at once; the passages of the first come first. If one fails, the passages of
    the others remain: a notice tells a person once, and the model reads why."""
    noted = set[str]()

    def note(text: str) -> None:
        if text not in noted:
            noted.add(text)
            events(Notice(text, important=True))

    async def run(arguments: Mapping[str, Any]) -> Observation:
        results = await asyncio.gather(*(tool.call(arguments) for tool in searches), return_exceptions=True)
        observations = [result for result in results if isinstance(result, Observation)]
        failures: list[str] = []
        for error in results:
            if isinstance(error, BaseException):
                if not (observations and isinstance(error, Exception)):
                    raise error
                failures.append(explain_failure("search", error, note, partial(redact, secrets=events.secrets)))
        texts = [seen.text for seen in observations if seen.text] + failures
        return Observation("\n".join(texts), tuple(passage for seen in observations for passage in seen.passages))

    description = " ".join(dict.fromkeys(tool.description for tool in searches))
    longest = max(search.seconds for search in searches)
    return replace(searches[-1], run=run, description=description, seconds=longest + GRACE, bound=None)
