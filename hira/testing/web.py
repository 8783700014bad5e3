"""A small web on this machine: pages with links between them, and the search services that find them."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import unquote, urljoin

from hira.core.bm25 import BM25, words
from hira.testing.server import PATIENCE, Exchange, HttpServer, Received
from hira.tools.pages import extract

SNIPPET = 300


@dataclass(frozen=True, slots=True)
class Served:
    """A page as it is sent, after `seconds`. `body` may be JSON data."""

    body: Any = ""
    content_type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def bytes(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body, ensure_ascii=False)).encode()


def read_query(visit: Received) -> str:
    query = visit.query.get("srsearch") or visit.query.get("q") or ""
    return query or (str(visit.body.get("q", "")) if isinstance(visit.body, dict) else "")


class FakeWeb:
    """Pages over real HTTP, in a separate thread. SearXNG, Serper and MediaWiki find them at the same address.

    >>> with FakeWeb({"/kama": "<p>The Kama joins the <a href='/volga'>Volga</a>.</p>"}) as web:
    ...     backends = [open_backend("searxng", client, base_url=web.url)]
    ...     fetcher = Fetcher(allow=[web.host])

    `pages` are HTML, bytes or `Served`, by path (with its query, where that matters). A search finds the pages that
    share words with it, or those that `hits` names for a key whose words it contains. `failures` are served in order,
    one a search, before anything is found: a status, or `Served`. With `together` no search is answered before this
    many have arrived.
    """

    def __init__(
        self,
        pages: Mapping[str, str | bytes | Served],
        *,
        hits: Mapping[str, Sequence[str]] | None = None,
        failures: Iterable[int | Served] = (),
        together: int = 1,
    ) -> None:
        self.pages = {path: page if isinstance(page, Served) else Served(page) for path, page in pages.items()}
        self.hits = hits
        self.visits: list[Received] = []
        self.most_at_once = 0
        self._failures = [failure if isinstance(failure, Served) else Served(status=failure) for failure in failures]
        self._together = together
        self._searching = 0
        self._gathered = asyncio.Event()
        self._server = HttpServer(self._respond)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    @property
    def searches(self) -> list[str]:
        return [query for query in map(read_query, self.visits) if query]

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    async def _respond(self, visit: Received, exchange: Exchange) -> None:
        self.visits.append(visit)
        served = await self._answer(visit)
        await asyncio.sleep(served.seconds)
        await exchange.send(served.status, served.bytes, served.content_type, **served.headers)

    async def _answer(self, visit: Received) -> Served:
        query_string = "&".join(f"{name}={value}" for name, value in visit.query.items())
        page = self.pages.get(f"{visit.path}?{query_string}") or self.pages.get(visit.path)
        if page is not None:
            return page
        if not (query := read_query(visit)):
            return Served(f"<h1>Not found</h1><p>There is no page {visit.path}</p>", status=404)
        self._searching += 1
        self.most_at_once = max(self.most_at_once, self._searching)
        try:
            if self._searching >= self._together:
                self._gathered.set()
            await asyncio.wait_for(self._gathered.wait(), PATIENCE)
            return self._failures.pop(0) if self._failures else self._search(visit, query)
        except TimeoutError:
            return Served(f"only {self._searching} of {self._together} searches came together", status=500)
        finally:
            self._searching -= 1

    def _search(self, visit: Received, query: str) -> Served:
        cards = [self._card(path) for path in self._places(query)]
        if visit.path.endswith("/api.php"):
            listed = [
                {"ns": 0, "title": title, "pageid": number, "snippet": f'<span class="searchmatch">{text}</span>'}
                for number, (title, _, text) in enumerate(cards, 1)
            ]
            return _json({"batchcomplete": True, "query": {"searchinfo": {"totalhits": len(cards)}, "search": listed}})
        if visit.method == "POST":
            if not visit.headers.get("x-api-key"):
                return _json({"message": "Unauthorized.", "statusCode": 403}, 403)
            organic = [
                {"title": title, "link": url, "snippet": text, "position": number}
                for number, (title, url, text) in enumerate(cards, 1)
            ]
            return _json({"searchParameters": {"q": query, "type": "search"}, "organic": organic, "credits": 1})
        results = [
            {"title": title, "url": url, "content": text, "engine": "fake", "engines": ["fake"], "category": "general"}
            for title, url, text in cards
        ]
        return _json({"query": query, "number_of_results": 0, "results": results, "unresponsive_engines": []})

    def _places(self, query: str) -> list[str]:
        if self.hits is not None:
            wanted = set(words(query))
            named = [path for key, paths in self.hits.items() if wanted >= set(words(key)) for path in paths]
            return list(dict.fromkeys(named))
        readable = [path for path, page in self.pages.items() if page.status == 200 and isinstance(page.body, str)]
        texts = [" ".join(self._card(path)) for path in readable]
        return [readable[index] for index in BM25(texts).best(query, len(readable))]

    def _card(self, path: str) -> tuple[str, str, str]:
        """Title, URL and beginning of a page."""
        page = extract(self.pages[path].bytes.decode("utf-8", "replace")) if path in self.pages else None
        title = (page.title if page else "") or unquote(path.rpartition("/")[2]).replace("_", " ") or path
        return title, urljoin(self.url, path), " ".join(page.text.split())[:SNIPPET] if page else ""


def _json(body: Any, status: int = 200) -> Served:
    return Served(body, "application/json", status)
