"""One search service: its hits, its requests (pace, retries, errors in one line), and its wire form."""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypedDict, Unpack
from urllib.parse import urlsplit
from urllib.request import getproxies

from hira.core.concurrency import Once
from hira.core.errors import ToolDown, ToolError
from hira.core.sanitize import clip_title, printable, unescape
from hira.tools.addresses import LONGEST

if TYPE_CHECKING:
    import httpx

_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")


@dataclass(frozen=True, slots=True)
class Hit:
    """One result. `snippet` is the service's quote from the page; `date` is in its format; `rank` begins at 1."""

    title: str
    url: str
    snippet: str
    rank: int = 0
    backend: str = ""
    date: str = ""


class Backend(Protocol):
    """A search service. `search` raises `ToolError` if it cannot answer; no hits are an answer."""

    @property
    def name(self) -> str: ...

    async def search(self, query: str, n: int) -> list[Hit]: ...


def plain(text: object) -> str:
    """Return a title or snippet without markup, in one line."""
    return " ".join(unescape(_TAG.sub("", whole(text))).split())


def whole(text: object) -> str:
    """Return a text without lone surrogates: services cut texts inside characters, and halves cannot be sent."""
    return printable(str(text or ""))


SECONDS = 20.0
LIMIT = 5_000_000
PATIENCE = 10.0  # the longest Retry-After to wait for
DAY = 86_400.0
_SOON = frozenset({429, 502, 503, 504})


Method = Literal["GET", "POST"]


class Sent(TypedDict, total=False):
    """The content of a request besides its URL; `body` is sent as JSON."""

    params: Mapping[str, str | int]
    headers: Mapping[str, str]
    body: Any


class Unusable(ToolDown):
    """The service cannot be used in this run, however often it is asked: its key or its set-up is wrong."""


def open_client(headers: Mapping[str, str]) -> "httpx.AsyncClient":
    """Open the HTTP client that all services of a process share; whoever opens it closes it."""
    import httpx

    from hira.policies.transport import StreamTransport

    transport = None if getproxies() else StreamTransport()  # httpx supports proxies itself
    return httpx.AsyncClient(headers=dict(headers), timeout=SECONDS, transport=transport, follow_redirects=False)


@dataclass(slots=True)
class Pace:
    """The rate of requests to a host: at most `at_once` at a time, begun `every` seconds apart.

    May be used from one event loop after another.
    """

    every: float = 0.0
    at_once: int = 256
    _next: float = 0.0
    _loop: asyncio.AbstractEventLoop | None = None
    _slots: asyncio.Semaphore = field(init=False)

    async def __aenter__(self) -> None:
        if self._loop is not (loop := asyncio.get_running_loop()):
            self._loop, self._slots = loop, asyncio.Semaphore(self.at_once)
        await self._slots.acquire()
        try:
            now = time.monotonic()
            start = max(now, self._next)
            self._next = start + self.every
            await asyncio.sleep(start - now)
        except BaseException:
            self._slots.release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._slots.release()


@dataclass(slots=True)
class Line:
    """Requests to the service `name`. `refused` says what a 401 or 403 of it means, and what to do."""

    name: str
    client: "httpx.AsyncClient"
    pace: Pace = field(default_factory=Pace)
    refused: str = "its key was not accepted; check it"

    async def json(self, method: Method, url: str, **sent: Unpack[Sent]) -> Any:
        """Return the answer as JSON. Raises `ToolError` with the reason if that fails."""
        text = await self.text(method, url, **sent)
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise ToolDown(f"{self.name} answered with something that is not JSON") from None

    async def text(self, method: Method, url: str, **sent: Unpack[Sent]) -> str:
        """Return the answer as text; the request is repeated once if that may help."""
        for last in (False, True):
            async with self.pace:
                status, answer, wait = await self._send(method, url, sent)
            if status == HTTPStatus.OK:
                return answer
            if last or status not in _SOON or wait > PATIENCE:
                raise self._failure(status, wait)
            await asyncio.sleep(wait)
        raise AssertionError("the last try returns or raises")

    async def _send(self, method: Method, url: str, sent: Sent) -> tuple[int, str, float]:
        """Return the status, the text, and the seconds to wait that the service named."""
        import httpx

        received = bytearray()
        try:
            async with (
                asyncio.timeout(SECONDS),
                self.client.stream(
                    method, url, params=sent.get("params"), headers=sent.get("headers"), json=sent.get("body")
                ) as response,
            ):
                async for chunk in response.aiter_bytes(65_536):
                    received += chunk
                    if len(received) > LIMIT:
                        raise ToolError(f"{self.name} answered with more than {LIMIT / 1e6:g} MB")
                wait = retry_after(response.headers.get("retry-after", ""))
                return response.status_code, received.decode("utf-8", "replace"), wait
        except (TimeoutError, httpx.TimeoutException):
            raise ToolDown(f"{self.name} did not answer within {SECONDS:g} seconds") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            where = urlsplit(url).hostname
            raise ToolDown(f"{self.name} cannot be reached at {where} ({type(error).__name__})") from None

    def _failure(self, status: int, wait: float) -> ToolError:
        if status in {401, 403}:
            return Unusable(f"{self.name} refused the request: {self.refused}")
        if status == 402:
            return Unusable(f"{self.name} refused the request: its credit is used up")
        if status == 429:
            later = f"; try again in {wait:.0f} seconds" if wait else ""
            limited = Unusable if wait > PATIENCE else ToolDown
            return limited(f"{self.name} allows no more requests now{later}")
        # 400 and similar are about this query; a query that is too long or malformed is the model's fault
        kind = ToolDown if status >= HTTPStatus.INTERNAL_SERVER_ERROR else ToolError
        return kind(f"{self.name} answered with an error, status {status}")


def retry_after(value: str, now: Callable[[], float] = time.time) -> float:
    """Parse a Retry-After header, a number or a date, to seconds to wait, at most a day; 0 for neither."""
    try:
        return min(max(0.0, float(value)), DAY)
    except ValueError:
        pass
    try:
        return min(max(0.0, parsedate_to_datetime(value).timestamp() - now()), DAY)
    except (ValueError, TypeError, OverflowError):
        return 0.0


class Found(NamedTuple):
    """A result in a service's own words; markup is removed later."""

    title: object
    url: object
    snippet: object
    date: object = ""


Ask = Callable[[str, int], Awaitable[Iterable[Found]]]
_UNREAD = (KeyError, TypeError, AttributeError, IndexError, ValueError)


def each(results: Iterable[Any], form: Callable[[Any], Found]) -> list[Found]:
    """Return the results that can be read. Incomplete ones are left out; if none can be read, the error is raised."""
    found: list[Found] = []
    wrong: Exception | None = None
    for one in results:
        try:
            found.append(form(one))
        except _UNREAD as error:
            wrong = error
    if wrong and not found:
        raise wrong
    return found


@dataclass(frozen=True, slots=True)
class Service:
    """A `Backend` whose `ask` knows the wire form of one service."""

    name: str
    ask: Ask

    async def search(self, query: str, n: int) -> list[Hit]:
        try:
            found = list(await self.ask(query, n))
        except _UNREAD:
            raise ToolDown(f"{self.name} answered in a format that hira cannot read") from None
        hits = [
            Hit(clip_title(plain(one.title) or url), url, plain(one.snippet), 0, self.name, whole(one.date))
            for one in found
            if len(url := whole(one.url)) <= LONGEST and url.startswith(("http://", "https://"))
        ]
        return [
            Hit(hit.title, hit.url, hit.snippet, rank, hit.backend, hit.date) for rank, hit in enumerate(hits[:n], 1)
        ]


@dataclass(frozen=True, slots=True)
class Shared:
    """A service that several runs share: equal queries are sent once. An answer without hits is not kept."""

    backend: Backend
    once: Once

    @property
    def name(self) -> str:
        return self.backend.name

    async def search(self, query: str, n: int) -> list[Hit]:
        return await self.once(spell_query(self.name, query, n), lambda: self.backend.search(query, n), bool)


def spell_query(name: str, query: str, n: int) -> str:
    """Return a key that ignores spaces and capitals for a query for `n` hits from the service `name`."""
    return json.dumps([name, " ".join(query.split()).casefold(), n], ensure_ascii=False)
