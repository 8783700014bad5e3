"""Web search: services with one form of result, asked in order of preference, and the tool that uses them.

>>> client = open_client(identification(contact="ann@example.org"))
>>> backends = [open_backend("serper", client, key="…"), open_backend("mediawiki", client)]
>>> search = search_tool(backends, seen=seen, on_notice=events)
"""

from collections.abc import Callable
from difflib import get_close_matches
from inspect import signature
from typing import TYPE_CHECKING

from hira.core.errors import UsageError
from hira.tools.search import services
from hira.tools.search.cache import Cache, Cached
from hira.tools.search.service import Backend, Hit, Shared, Unusable, open_client
from hira.tools.search.tool import LEAKING, Chain, scholar_tool, search_tool

if TYPE_CHECKING:
    import httpx

__all__ = [
    "BACKENDS",
    "LEAKING",
    "SCHOLARLY",
    "Backend",
    "Cache",
    "Cached",
    "Chain",
    "Hit",
    "Shared",
    "Unusable",
    "open_backend",
    "open_client",
    "scholar_tool",
    "search_tool",
]

_WEB = (
    services.searxng,
    services.serper,
    services.tavily,
    services.brave,
    services.exa,
    services.serpapi,
    services.jina,
    services.mediawiki,
    services.ddgs,
)
_WORKS = (
    services.serper_scholar,
    services.serpapi_scholar,
    services.openalex,
    services.semantic_scholar,
    services.arxiv,
    services.crossref,
)
BACKENDS: dict[str, Callable[..., Backend]] = {one.__name__: one for one in (*_WEB, *_WORKS)}
SCHOLARLY = frozenset(one.__name__ for one in _WORKS)


def open_backend(name: str, client: "httpx.AsyncClient", **settings: str) -> Backend:
    """Open the service of that name, or `litellm:<provider>` for one that litellm knows.

    `settings` are `key`, `base_url` and `language`. Empty ones are left out, as are those that the service does not
    use. Raises `UsageError` for an unknown name and for a missing key or address.
    """
    given = {one: value.rstrip("/") for one, value in settings.items() if value}
    if name.startswith("litellm:"):
        place = {one: given[one] for one in ("key", "base_url") if one in given}
        return services.litellm(client, provider=name.partition(":")[2], **place)
    if name not in BACKENDS:
        near = get_close_matches(name, BACKENDS, 1)
        fix = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(BACKENDS)}"
        raise UsageError(f"there is no search service {name!r}", fix=fix)
    wanted = signature(BACKENDS[name]).parameters
    given = {one: value for one, value in given.items() if one in wanted}
    missing = [one for one, what in wanted.items() if what.kind is what.KEYWORD_ONLY and what.default is what.empty]
    if missing := [one for one in missing if one not in given]:
        what = {"key": "an API key", "base_url": "the address of its server"}[missing[0]]
        raise UsageError(f"the search service {name!r} needs {what}", fix="set it, or choose another with --search")
    return BACKENDS[name](client, **given)
