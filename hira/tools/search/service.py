"""One search service: its hits, and its requests over HTTP (pace, retries, errors in one line)."""

import asyncio
import json
import re
import time
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, urljoin, urlsplit
from urllib.request import getproxies

from hira.core.errors import ToolDown, ToolError
from hira.core.sanitize import clean, clip_title, printable, unescape
from hira.policies.failures import retry_after
from hira.tools.addresses import LONGEST
from hira.tools.fetch import BoundedBody, find_encoding

if TYPE_CHECKING:
    import httpx

_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
SECONDS = 20.0
LIMIT = 5_000_000
LONGEST_FIELD = 50_000
"""Characters of a title, address or snippet: two services are libraries, whose answers hira cannot bound in bytes."""
PATIENCE = 10.0  # the longest Retry-After to wait for
RETRACTED = "RETRACTED: "
"""Precedes the title of a work that its publisher has taken back."""
_SOON = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Hit:
    """One result. `snippet` is what the service shows of the page; `date` is in its format."""

    title: str
    url: str
    snippet: str
    date: str = ""
    quoted: bool = True
    """The snippet is a piece of the page, not a model's words about it."""


class Backend(Protocol):
    """A search service. `search` raises `ToolError` if it cannot answer; no hits are an answer."""

    @property
    def name(self) -> str: ...

    async def search(self, query: str, n: int) -> list[Hit]: ...


class Unusable(ToolDown):
    """The service cannot be used in this run, however often it is asked: its key or its set-up is wrong."""


def make_hit(title: object, url: object, snippet: object, date: object = "") -> Hit:
    """Make a hit of what a service wrote, without its markup."""
    where = _repair(url)
    return Hit(clip_title(_read_plain(title) or where), where, _read_plain(snippet), _repair(date))


def mark_retracted(title: str) -> str:
    """Return the title of a retracted work with the mark, which some publishers write themselves."""
    return title if title.lstrip("[( ").lower().startswith("retract") else clip_title(f"{RETRACTED}{title}")


def _read_plain(text: object) -> str:
    """Return a title or snippet without markup, in one line."""
    return " ".join(unescape(_TAG.sub("", _repair(text))).split())


def _repair(text: object) -> str:
    """Return a bounded text without the lone surrogates that services leave where they cut it."""
    return printable(str(text or "")[:LONGEST_FIELD])


@dataclass(frozen=True, slots=True)
class Service:
    """A `Backend` whose `ask` knows the wire form of one service. Results without an http URL are left out."""

    name: str
    ask: Callable[[str, int], Awaitable[list[Hit]]]

    async def search(self, query: str, n: int) -> list[Hit]:
        unreadable = ToolDown(f"{self.name} answered in a format that hira cannot read")
        try:
            results = await self.ask(query, n)
        except (KeyError, TypeError, AttributeError, IndexError, ValueError, RecursionError):
            raise unreadable from None
        hits = [hit for hit in results if len(hit.url) <= LONGEST and hit.url.startswith(("http://", "https://"))]
        if results and not any(hit.title or hit.url for hit in results):
            raise unreadable
        return hits[:n]


def open_client(headers: Mapping[str, str]) -> "httpx.AsyncClient":
    """Open the HTTP client that all services of a process share; whoever opens it closes it."""
    import httpx

    from hira.policies.transport import StreamTransport

    transport = None if getproxies() else StreamTransport()  # httpx supports proxies itself
    headers = {**headers, "Accept-Encoding": "gzip, deflate"}
    return httpx.AsyncClient(headers=headers, timeout=SECONDS, transport=transport, follow_redirects=False)


@dataclass(slots=True)
class HostPace:
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


Fields = tuple[str | Callable[[Any], object], ...]
"""Title, URL, snippet and date of a result, each by its name or a function."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a service is asked and how its answer is read."""

    url: str
    """Only a path if the user names the server. The query replaces `{}`."""
    ask: Callable[[str, int], dict[str, Any]]
    """Returns the parameters for a query and a number of hits, or the JSON body of a `post`."""
    results: str | Callable[[Any], Iterable[Any]]
    """Finds the results in the parsed answer."""
    fields: Fields
    pace: tuple[float, int] = (0.0, 256)
    refused: str = ""
    """The meaning of a 401 or 403, and the next step."""
    unknown: str = ""
    """The meaning of a 404."""
    retracted: Callable[[Any], object] = lambda _: False
    """Returns true for a work that was retracted."""
    post: bool = False
    key: str = ""
    """The header that holds the user's key or, after a `?`, the parameter."""
    key_needed: bool = True
    headers: Mapping[str, str] = field(default_factory=dict)
    contact: str = ""
    """The parameter for the user's e-mail address."""
    parse: Callable[[str], Any] = json.loads
    seconds: float = SECONDS
    """The longest wait for the answer."""


@dataclass(slots=True)
class Line:
    """Requests to one service."""

    name: str
    form: Form
    client: "httpx.AsyncClient"
    url: str
    key: str
    """The user's, or empty."""
    contact: str
    """The user's, or empty."""
    pace: HostPace

    async def ask(self, query: str, n: int) -> list[Hit]:
        """Return the hits of a query, asked once more if that may help. Raises `ToolError` if there is no answer."""
        form, headers, content = self.form, dict(self.form.headers), self.form.ask(query, n)
        if self.key and form.key.startswith("?"):
            content[form.key[1:]] = self.key
        elif self.key and form.key:
            headers[form.key] = f"Bearer {self.key}" if form.key == "Authorization" else self.key
        if form.contact and "@" in self.contact:
            content[form.contact] = self.contact
        url = self.url.replace("{}", quote(query, safe=":/()"))
        async with self.pace:
            status, answer, wait = await self._send(url, headers, content)
        if status in _SOON and wait <= PATIENCE:
            await asyncio.sleep(wait)
            async with self.pace:
                status, answer, wait = await self._send(url, headers, content)
        if status != HTTPStatus.OK:
            raise self._failure(status, wait, answer)
        try:
            told = form.parse(answer)
        except ValueError:
            masked = answer.replace(self.key, "…") if self.key else answer
            came = repr(clean(masked[:60])) if masked.strip() else "nothing"
            came = "a web page" if "<html" in masked[:1000].lower() else came
            where = f"its address ({urlsplit(self.url).hostname})" + (" and its key" if form.key else "")
            raise ToolDown(f"{self.name} answered with {came} instead of search results; check {where}") from None
        return [*map(self._read, told[form.results] if isinstance(form.results, str) else form.results(told))]

    def _read(self, record: Any) -> Hit:
        """Read a result; an incomplete one has no URL."""
        try:
            title, target, *more = (record.get(of) if isinstance(of, str) else of(record) for of in self.form.fields)
            if not isinstance(target, str | None):
                raise TypeError(target)
            if target and target.startswith(".."):  # the form's own, next to the service
                target = urljoin(self.url, target)
            hit = make_hit(title, target, *more)
            return replace(hit, title=mark_retracted(hit.title)) if self.form.retracted(record) else hit
        except (KeyError, TypeError, AttributeError, IndexError, ValueError):
            return make_hit("", "", "")

    async def _send(self, url: str, headers: Mapping[str, str], content: Mapping[str, Any]) -> tuple[int, str, float]:
        """Return the status, the text, and the seconds to wait that the service named."""
        import httpx

        method, place = ("POST", "json") if self.form.post else ("GET", "params")
        wire: dict[str, Any] = {"headers": headers, place: content}
        try:
            wait_for = self.client.stream(method, url, timeout=self.form.seconds, **wire)
            async with asyncio.timeout(self.form.seconds), wait_for as response:
                if (encoding := find_encoding(response.headers)) is None:
                    raise ToolDown(f"{self.name} answered in a compression that hira does not read")
                body = BoundedBody(encoding, LIMIT)  # httpx would unpack a chunk whole, however large it becomes
                async for chunk in response.aiter_raw():
                    if not body.add(chunk):
                        raise ToolError(f"{self.name} answered with more than {LIMIT / 1e6:g} MB")
                wait = retry_after(response.headers) or 0.0
                return response.status_code, body.data.decode("utf-8", "replace"), wait
        except zlib.error:
            raise ToolDown(f"{self.name} answered with broken compression") from None
        except (TimeoutError, httpx.TimeoutException):
            raise ToolDown(f"{self.name} did not answer within {self.form.seconds:g} seconds") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            where = urlsplit(self.url).hostname
            raise ToolDown(f"{self.name} cannot be reached at {where} ({type(error).__name__})") from None

    def _failure(self, status: int, wait: float, answer: str) -> ToolError:
        if status in {401, 403}:
            unaccepted = f"its key was not accepted; check {self.name.partition('_')[0].upper()}_API_KEY"
            return Unusable(f"{self.name} refused the request: {self.form.refused or unaccepted}")
        if status == HTTPStatus.NOT_FOUND and self.form.unknown:
            return ToolError(f"{self.name} {self.form.unknown}")
        if status == 402:
            return Unusable(f"{self.name} refused the request: its credit is used up")
        if status == 429:
            later = f"; try again in {wait:.0f} seconds" if wait else ""
            limited = Unusable if wait > PATIENCE else ToolDown
            return limited(f"{self.name} allows no more requests now{later}")
        if 300 <= status < 400:
            return ToolDown(f"{self.name} sends its requests elsewhere, status {status}; check its address")
        # 400 and similar are about this query; a query that is too long or malformed is the model's fault
        kind = ToolDown if status >= HTTPStatus.INTERNAL_SERVER_ERROR else ToolError
        why = ""
        with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
            # the form of errors that vendors of models share
            message = " ".join(clean(json.loads(answer)["error"]["message"]).split())
            why = f": {(message.replace(self.key, '…') if self.key else message)[:200]!r}"
        return kind(f"{self.name} answered with an error, status {status}{why}")
