"""The search services of the whole web and of scholarly works, each with its wire form; most need a key.

Two are third-party libraries, if they are installed: litellm's providers, and ddgs.
"""

import asyncio
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from hira.core.bm25 import words
from hira.core.errors import ToolDown, ToolError, UsageError
from hira.core.sanitize import clean
from hira.tools.search.service import SECONDS, Backend, Found, Line, Pace, Service, Unusable, each

if TYPE_CHECKING:
    import httpx

_ENGINES = "duckduckgo,brave,mojeek,startpage,yahoo"  # its default puts encyclopedias first
_WORDS = 50  # Brave accepts no longer query


def searxng(client: "httpx.AsyncClient", *, base_url: str) -> Backend:
    """The user's own SearXNG server."""
    fix = "it does not return JSON; add `json` to `search.formats` in its settings.yml"
    line = Line("searxng", client, refused=fix)

    async def ask(query: str, n: int) -> Iterable[Found]:
        del n  # the server sets the length of a page of results
        told = await line.json("GET", f"{base_url}/search", params={"q": query, "format": "json"})
        if not told["results"] and (silent := [str(one[0]) for one in told.get("unresponsive_engines") or ()]):
            raise ToolDown(f"searxng found nothing because its engines do not answer: {clean(', '.join(silent)[:200])}")
        return each(
            told["results"],
            lambda one: Found(one.get("title"), one["url"], one.get("content"), one.get("publishedDate")),
        )

    return Service("searxng", ask)


def serper(client: "httpx.AsyncClient", *, key: str, base_url: str = "https://google.serper.dev") -> Backend:
    """Google's results by serper.dev."""
    line = Line("serper", client, refused="its key was not accepted; check SERPER_API_KEY")

    async def ask(query: str, n: int) -> Iterable[Found]:
        body = {"q": query, "num": n}
        told = await line.json("POST", f"{base_url}/search", headers={"X-API-KEY": key}, body=body)
        return each(
            told["organic"], lambda one: Found(one.get("title"), one["link"], one.get("snippet"), one.get("date"))
        )

    return Service("serper", ask)


def tavily(client: "httpx.AsyncClient", *, key: str, base_url: str = "https://api.tavily.com") -> Backend:
    line = Line("tavily", client, refused="its key was not accepted; check TAVILY_API_KEY")

    async def ask(query: str, n: int) -> Iterable[Found]:
        body = {"query": query, "max_results": min(n, 20)}
        told = await line.json("POST", f"{base_url}/search", headers={"Authorization": f"Bearer {key}"}, body=body)
        return each(
            told["results"],
            lambda one: Found(one.get("title"), one["url"], one.get("content"), one.get("published_date")),
        )

    return Service("tavily", ask)


def brave(client: "httpx.AsyncClient", *, key: str, base_url: str = "https://api.search.brave.com") -> Backend:
    """Brave's own index, one request a second."""
    line = Line("brave", client, Pace(every=1.0, at_once=1), "its key was not accepted; check BRAVE_API_KEY")

    async def ask(query: str, n: int) -> Iterable[Found]:
        params: dict[str, str | int] = {"q": " ".join(query.split()[:_WORDS]), "count": min(n, 20)}
        headers = {"X-Subscription-Token": key, "Accept": "application/json"}
        told = await line.json("GET", f"{base_url}/res/v1/web/search", params=params, headers=headers)
        results = (told.get("web") or {}).get("results") or ()
        return each(
            results, lambda one: Found(one.get("title"), one["url"], one.get("description"), one.get("page_age"))
        )

    return Service("brave", ask)


def exa(client: "httpx.AsyncClient", *, key: str, base_url: str = "https://api.exa.ai") -> Backend:
    """Exa's semantic index; snippets are the sentences that it highlights."""
    line = Line("exa", client, refused="its key was not accepted; check EXA_API_KEY")

    async def ask(query: str, n: int) -> Iterable[Found]:
        body = {"query": query, "numResults": n, "contents": {"highlights": True}}
        told = await line.json("POST", f"{base_url}/search", headers={"x-api-key": key}, body=body)
        return each(
            told["results"],
            lambda one: Found(
                one.get("title"), one["url"], " … ".join(one.get("highlights") or ()), one.get("publishedDate")
            ),
        )

    return Service("exa", ask)


def serpapi(client: "httpx.AsyncClient", *, key: str, base_url: str = "https://serpapi.com") -> Backend:
    """Google's results by serpapi.com."""
    line = Line("serpapi", client, refused="its key was not accepted; check SERPAPI_API_KEY")

    async def ask(query: str, n: int) -> Iterable[Found]:
        params: dict[str, str | int] = {"engine": "google", "q": query, "num": n, "api_key": key}
        told = await line.json("GET", f"{base_url}/search.json", params=params)
        results = told.get("organic_results") or ()  # missing if nothing was found
        return each(results, lambda one: Found(one.get("title"), one["link"], one.get("snippet"), one.get("date")))

    return Service("serpapi", ask)


def jina(client: "httpx.AsyncClient", *, key: str, base_url: str = "https://s.jina.ai") -> Backend:
    line = Line("jina", client, refused="its key was not accepted; check JINA_API_KEY")

    async def ask(query: str, n: int) -> Iterable[Found]:
        del n
        headers = {"Authorization": f"Bearer {key}", "Accept": "application/json", "X-Respond-With": "no-content"}
        told = await line.json("GET", f"{base_url}/", params={"q": query}, headers=headers)
        return each(
            told["data"], lambda one: Found(one.get("title"), one["url"], one.get("description"), one.get("date"))
        )

    return Service("jina", ask)


def mediawiki(client: "httpx.AsyncClient", *, language: str = "en", base_url: str = "") -> Backend:
    """Wikipedia in a language, or any other wiki at `base_url`. Needs no key; at most three requests at once."""
    line = Line("mediawiki", client, Pace(at_once=3), "it needs a contact; set one")
    wiki = base_url or f"https://{language}.wikipedia.org"

    async def ask(query: str, n: int) -> Iterable[Found]:
        params: dict[str, str | int] = {
            "action": "query",
            "list": "search",
            "srsearch": query[:300],
            "srlimit": min(n, 50),
            "format": "json",
            "formatversion": 2,
        }
        told = await line.json("GET", f"{wiki}/w/api.php", params=params)
        if "error" in told:
            raise ToolError(f"mediawiki refused the query: {clean(str(told['error'].get('info', ''))[:200])}")
        return each(
            told["query"]["search"],
            lambda one: Found(
                one["title"],
                f"{wiki}/wiki/{quote(one['title'].replace(' ', '_'))}",
                one.get("snippet"),
                one.get("timestamp"),
            ),
        )

    return Service("mediawiki", ask)


_ATOM = "{http://www.w3.org/2005/Atom}"
_TERMS = 8


def openalex(client: "httpx.AsyncClient", *, key: str = "", base_url: str = "https://api.openalex.org") -> Backend:
    """OpenAlex; a free key allows a thousand searches a day, without one only a few are allowed."""
    line = Line("openalex", client, refused="its key was not accepted; a free one is given at openalex.org")

    async def ask(query: str, n: int) -> Iterable[Found]:
        params: dict[str, str | int] = {"search": query, "per_page": min(n, 100)}
        if key:
            params["api_key"] = key
        told = await line.json("GET", f"{base_url}/works", params=params)
        return each(
            told["results"],
            lambda one: Found(
                one.get("display_name"),
                _landing(one),
                _order_words(one.get("abstract_inverted_index")),
                one.get("publication_date"),
            ),
        )

    return Service("openalex", ask)


def _landing(work: Mapping[str, Any]) -> str:
    return str((work.get("primary_location") or {}).get("landing_page_url") or work.get("doi") or work["id"])


def _order_words(index: Mapping[str, list[int]] | None) -> str:
    """Restore the abstract, which OpenAlex returns as word → places."""
    places = sorted((at, word) for word, at_places in (index or {}).items() for at in at_places)
    return " ".join(word for _, word in places)


def semantic_scholar(
    client: "httpx.AsyncClient", *, key: str = "", base_url: str = "https://api.semanticscholar.org"
) -> Backend:
    """Semantic Scholar, one request a second; without a key all its users share one allowance."""
    line = Line("semantic_scholar", client, Pace(every=1.0, at_once=1), "its key was not accepted; check it")

    async def ask(query: str, n: int) -> Iterable[Found]:
        fields = "title,url,abstract,publicationDate,year,openAccessPdf"
        params: dict[str, str | int] = {"query": query, "limit": min(n, 100), "fields": fields}
        headers = {"x-api-key": key} if key else {}
        told = await line.json("GET", f"{base_url}/graph/v1/paper/search", params=params, headers=headers)
        return each(
            told.get("data") or (),
            lambda one: Found(
                one.get("title"),
                (one.get("openAccessPdf") or {}).get("url") or one["url"],
                one.get("abstract"),
                one.get("publicationDate") or one.get("year"),
            ),
        )

    return Service("semantic_scholar", ask)


def arxiv(client: "httpx.AsyncClient", *, base_url: str = "https://export.arxiv.org") -> Backend:
    """arXiv, keyless, one request every three seconds. All words of the query must occur."""
    line = Line("arxiv", client, Pace(every=3.0, at_once=1), "it blocks requests for a while")

    async def ask(query: str, n: int) -> Iterable[Found]:
        terms = [word for word in query.replace('"', " ").split() if words(word)][:_TERMS] or [query]
        params: dict[str, str | int] = {
            "search_query": " AND ".join(f'all:"{term}"' for term in terms),
            "max_results": n,
        }
        text = await line.text("GET", f"{base_url}/api/query", params=params)
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            raise ToolDown("arxiv answered with something that is not a list of papers")
        try:
            entries = ET.fromstring(text).iter(f"{_ATOM}entry")  # noqa: S314 - entities were ruled out above
        except ET.ParseError:
            raise ToolDown("arxiv answered with something that is not a list of papers") from None
        return [
            Found(*(one.findtext(_ATOM + part) for part in ("title", "id", "summary", "published"))) for one in entries
        ]

    return Service("arxiv", ask)


def crossref(client: "httpx.AsyncClient", *, contact: str = "", base_url: str = "https://api.crossref.org") -> Backend:
    """Crossref, keyless; requests with a contact get better service."""
    line = Line("crossref", client, Pace(at_once=3), "it blocks requests for a while")

    async def ask(query: str, n: int) -> Iterable[Found]:
        params: dict[str, str | int] = {"query": query, "rows": n}
        if "@" in contact:
            params["mailto"] = contact
        told = await line.json("GET", f"{base_url}/works", params=params)
        return each(
            told["message"]["items"],
            lambda one: Found(
                (one.get("title") or [""])[0], one["URL"], one.get("abstract"), _join_date(one.get("issued") or {})
            ),
        )

    return Service("crossref", ask)


def _join_date(issued: Mapping[str, Any]) -> str:
    parts = (issued.get("date-parts") or [[]])[0]
    return "-".join(f"{part:02d}" for part in parts if part)


def serper_scholar(client: "httpx.AsyncClient", *, key: str, base_url: str = "https://google.serper.dev") -> Backend:
    """Google Scholar by serper.dev."""
    line = Line("serper_scholar", client, refused="its key was not accepted; check SERPER_API_KEY")

    async def ask(query: str, n: int) -> Iterable[Found]:
        body = {"q": query, "num": n}
        told = await line.json("POST", f"{base_url}/scholar", headers={"X-API-KEY": key}, body=body)
        return each(
            told["organic"], lambda one: Found(one.get("title"), one.get("link"), one.get("snippet"), one.get("year"))
        )

    return Service("serper_scholar", ask)


def serpapi_scholar(client: "httpx.AsyncClient", *, key: str, base_url: str = "https://serpapi.com") -> Backend:
    """Google Scholar by serpapi.com."""
    line = Line("serpapi_scholar", client, refused="its key was not accepted; check SERPAPI_API_KEY")

    async def ask(query: str, n: int) -> Iterable[Found]:
        params: dict[str, str | int] = {"engine": "google_scholar", "q": query, "num": min(n, 20), "api_key": key}
        told = await line.json("GET", f"{base_url}/search.json", params=params)
        results = told.get("organic_results") or ()
        return each(
            results,
            lambda one: Found(
                one.get("title"),
                one.get("link"),
                f"{one.get('snippet') or ''} ({(one.get('publication_info') or {}).get('summary', '')})",
            ),
        )

    return Service("serpapi_scholar", ask)


def litellm(client: "httpx.AsyncClient", *, provider: str, key: str = "", base_url: str = "") -> Backend:
    """One of litellm's search providers. `UsageError` if litellm is not installed; loading it takes seconds."""
    from hira.policies.litellm import load

    del client  # litellm has its own
    library = load()
    name = f"litellm:{provider}"

    async def ask(query: str, n: int) -> Iterable[Found]:
        place = {"api_key": key or None, "api_base": base_url or None}
        try:
            async with asyncio.timeout(SECONDS):
                told = await library.asearch(query, provider, max_results=n, timeout=SECONDS, **place)
        except TimeoutError:
            raise ToolDown(f"{name} did not answer within {SECONDS:g} seconds") from None
        except Exception as error:  # noqa: BLE001 - litellm raises any error of its providers; the next service is asked
            refused = getattr(error, "status_code", 0) in {401, 403} or "api key" in str(error).lower()
            kind = Unusable if refused else ToolDown
            why = " ".join(str(error).split())
            why = clean(why.replace(key, "…") if key else why)[:200]
            raise kind(f"{name} failed: {why}") from None
        return [Found(one.title, one.url, one.snippet, one.date) for one in told.results]

    return Service(name, ask)


def ddgs(client: "httpx.AsyncClient") -> Backend:
    """The public pages of several search engines, read by the library ddgs. Needs no key.

    The engines do not invite programs to these pages, so it is used only on request.
    """
    try:
        library: Any = import_module("ddgs")  # no types to import: it is an extra
        failure: type[Exception] = import_module("ddgs.exceptions").DDGSException
    except ImportError:
        raise UsageError("the search service 'ddgs' needs the library ddgs", fix="pip install 'hira[ddgs]'") from None
    del client  # ddgs has its own

    async def ask(query: str, n: int) -> Iterable[Found]:
        def blocking() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = library.DDGS(timeout=int(SECONDS)).text(
                query, max_results=n, backend=_ENGINES
            )
            return found

        try:
            found = await asyncio.to_thread(blocking)
        except failure as error:
            if "no results" in str(error).lower():
                return []
            raise ToolDown(f"ddgs failed: {clean(' '.join(str(error).split()))[:200]}") from None
        return [Found(one["title"], one["href"], one.get("body")) for one in found]

    return Service("ddgs", ask)
