"""Search services of the whole web, each with its wire form; and Wikipedia, which needs no key."""

from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import quote

from hira.core.errors import ToolDown, ToolError
from hira.core.sanitize import clean
from hira.tools.search.hit import Backend
from hira.tools.search.line import Line, Pace
from hira.tools.search.service import Found, Service, each

if TYPE_CHECKING:
    import httpx

_WORDS = 50  # Brave takes no longer query


def searxng(client: "httpx.AsyncClient", *, base_url: str) -> Backend:
    """A SearXNG server of the user's own."""
    fix = "it does not return JSON; add `json` to `search.formats` in its settings.yml"
    line = Line("searxng", client, refused=fix)

    async def ask(query: str, n: int) -> Iterable[Found]:
        del n  # a page of results has the length that the server is set to
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
    """Exa's index by meaning; snippets are the sentences it highlights."""
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
        results = told.get("organic_results") or ()  # left out where nothing was found
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
