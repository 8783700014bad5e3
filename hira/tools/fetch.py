"""Opening a URL that a model chose, so that it can reach only the public web and nothing can grow too large.

Redirects are followed by hand and checked like the first URL. A name is resolved once, all its addresses are checked,
and a checked one is dialled. No cookies, connections or referrers are kept between two fetches; cookies go back to
their site within the redirects of one. A page that cannot be read to its end is cut there, and says so.
"""

import asyncio
import re
import socket
import ssl
import zlib
from collections.abc import AsyncIterable, Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Literal
from urllib.parse import urljoin

import httpcore

from hira import __version__
from hira.core.concurrency import SingleFlight
from hira.core.errors import ToolError, UsageError
from hira.core.sanitize import clean
from hira.tools.addresses import CheckedUrl, RefusedAddress, check_url, public, quote_url
from hira.tools.charsets import decode_page
from hira.tools.proxies import Proxies, Proxy, of_environment, open_tunnel, read_proxy

if TYPE_CHECKING:
    import httpx

Kind = Literal["html", "json", "pdf", "text", "image", "binary"]
Resolve = Callable[[str, int], Awaitable[list[str]]]

HOPS = 8
CONNECT_SECONDS = 8.0
HEAD_SECONDS = 10.0
"""Until an answer begins, so that a silent server does not take the whole time of a page."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_BINARY_START = 1024
_STRAY = 100
"""One zero byte per this number of bytes is still text; in declared HTML, more are tolerated."""
# skipped parts are never retried: a page of comments could otherwise take far too long
_HTML = re.compile(
    rb"\W{0,3}\s*(?:<\?xml[^>]*>\s*|<!--.*?-->\s*)*+<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
# beginnings that browsers treat as HTML if no type is declared
_TAG = re.compile(
    rb"\s*<(?:!--|/?(?:script|iframe|h[1-6]|div|font|table|a|style|title|b|br|p|meta|span)[\s>])", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Fetched:
    """A response, also one with status 404 or 403. `cut` says why `body` ends early, and is empty if it is whole."""

    url: str
    status: int
    content_type: str
    body: bytes
    cut: str = ""

    @property
    def kind(self) -> Kind:
        """The kind of the body, by its first bytes before its declared type."""
        declared = self.content_type.partition(";")[0].strip().lower()
        start = self.body[:_BINARY_START]
        wide = "utf-" in self.content_type.lower() or start.startswith((b"\xff\xfe", b"\xfe\xff"))
        marked = _HTML.match(start) is not None or (not declared and _TAG.match(start) is not None)
        kinds: tuple[tuple[Kind, bool], ...] = (
            ("pdf", start.lstrip().startswith(b"%PDF-")),
            ("html", marked),
            ("image", declared.startswith("image/") and declared != "image/svg+xml"),
            ("binary", start.count(0) * (4 if "html" in declared else _STRAY) > len(start) and not wide),
            ("json", declared.endswith(("/json", "+json"))),
            ("html", "html" in declared),
            ("text", not declared or declared.startswith("text/") or declared.endswith(("xml", "javascript"))),
        )
        return next((kind for kind, holds in kinds if holds), "binary")

    @property
    def text(self) -> str:
        return decode_page(self.body, self.content_type).replace("\0", "")


async def resolve(host: str, port: int) -> list[str]:
    """Return all addresses of a name, from the system's resolver.

    It runs in threads that are abandoned if it does not answer, because asyncio has only a few, which others need.
    """
    from anyio import to_thread

    ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    entries = await to_thread.run_sync(ask, abandon_on_cancel=True)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


@dataclass(slots=True)
class BoundedBody:
    """A body as it arrives: decoded with at most one compression layer, both sides bounded by `limit`."""

    encoding: str
    limit: int
    wire: int = 0
    data: bytearray = field(default_factory=bytearray)
    _inflate: "zlib._Decompress | None" = None

    async def read(self, chunks: AsyncIterable[bytes], deadline: float) -> str:
        """Read into `data`; return why it ends early, empty if it is whole."""
        try:
            async with asyncio.timeout_at(deadline):
                async for chunk in chunks:
                    if not self.add(chunk):
                        return f"it is longer than {self.limit / 1e6:g} MB"
        except TimeoutError:
            return "the time limit was reached"
        except zlib.error:
            return "its compression is broken"
        except (httpcore.ReadError, httpcore.RemoteProtocolError):
            return "the connection broke off"
        except httpcore.ReadTimeout:
            return "the server stopped sending"
        return "its compression ends early" if self._inflate is not None else ""

    def add(self, chunk: bytes) -> bool:
        """Decode a chunk; return whether the body is within the limit so far. Raises `zlib.error`."""
        self.wire += len(chunk)
        while chunk and len(self.data) <= self.limit:
            chunk = self._decode(chunk)
        return max(self.wire, len(self.data)) <= self.limit

    def _decode(self, chunk: bytes) -> bytes:
        """Decode a chunk as far as the limit allows; return the rest, which belongs to a gzip file's next member."""
        if not self.encoding:
            self.data += chunk
            return b""
        if self._inflate is None:
            raw = self.encoding == "deflate" and chunk[0] & 0x0F != 8
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS if raw else 32 + zlib.MAX_WBITS)
        self.data += self._inflate.decompress(chunk, self.limit + 1 - len(self.data))
        if not self._inflate.eof:
            return b""
        rest, self._inflate = self._inflate.unused_data, None
        return rest if rest.startswith(b"\x1f\x8b") else b""


@dataclass
class _Pinned(httpcore.AsyncNetworkBackend):
    """Resolves a name once, checks every address and dials a checked one, through the proxy if there is one: no second
    answer of the DNS is ever used."""

    place: CheckedUrl
    resolve: Resolve
    dial: httpcore.AsyncNetworkBackend
    proxy: Proxy | None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore's
        *_: object,
        **__: object,
    ) -> httpcore.AsyncNetworkStream:
        addresses = await self.resolve(host, port)
        if not self.place.allowed and not all(public(address) for address in addresses):
            raise RefusedAddress(f"{host!r} leads to an address that is not public")
        for number, address in enumerate(addresses, 1):
            is_last = number == len(addresses)
            seconds = timeout if is_last else CONNECT_SECONDS / 2
            try:
                if self.proxy:
                    return await open_tunnel(self.proxy, self.dial, address, port, seconds)
                return await self.dial.connect_tcp(address, port, seconds)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if is_last:
                    raise
        raise httpcore.ConnectError(f"{host} has no address")


@dataclass(slots=True)
class Fetcher:
    """Opens public URLs. `allow` holds "host:port" entries of local servers that the user nevertheless wants opened.

    `limit` bounds the bytes of a page on the wire and decoded, `seconds` the whole fetch. `contact` (an address or URL
    of the person who runs this) is sent along, so that a site's owner can reach them. `once` keeps responses, for runs
    that share it. `resolve` and `dial` are the name service and the network, `proxies` returns the proxy for a host;
    tests pass their own.
    """

    allow: Collection[str] = ()
    _: KW_ONLY
    contact: str = ""
    limit: int = 5_000_000
    seconds: float = 25.0
    once: SingleFlight | None = None
    resolve: Resolve = resolve
    dial: httpcore.AsyncNetworkBackend = field(default_factory=httpcore.AnyIOBackend)
    proxies: Proxies = of_environment
    _ssl: ssl.SSLContext | None = None

    async def get(self, url: str) -> Fetched:
        """Open a URL and follow its redirects. Raises `RefusedAddress`, or `ToolError` without a response."""
        if self.once is None:
            return await self._get(url)
        return await self.once(url, lambda: self._get(url), lambda got: got.status < HTTPStatus.BAD_REQUEST)

    async def _get(self, url: str) -> Fetched:
        import httpx

        place = check_url(url, self.allow)
        deadline = asyncio.get_running_loop().time() + self.seconds
        cookies = httpx.Cookies()  # some sites redirect in a circle until they get theirs back
        try:
            for _ in range(HOPS + 1):
                got = await self._request(place, deadline, cookies)
                if isinstance(got, Fetched):
                    return got
                place = check_url(got, self.allow)
        except TimeoutError:
            waited = min(HEAD_SECONDS, self.seconds)
            raise ToolError(f"{quote_url(place.url)} did not answer within {waited:g} seconds") from None
        except (httpcore.ProtocolError, httpcore.NetworkError, httpcore.TimeoutException, OSError) as error:
            reason = _reason(error)
            if isinstance(error, socket.gaierror) and self.proxies(place.url.partition(":")[0], place.host):
                reason += " (names are looked up here, also behind a proxy, to see where they lead)"
            raise ToolError(f"{quote_url(place.url)} cannot be opened: {reason}") from None
        raise ToolError(f"{quote_url(url)} redirects more than {HOPS} times")

    async def _request(self, place: CheckedUrl, deadline: float, cookies: "httpx.Cookies") -> Fetched | str:
        """Return the response, or the URL that it redirects to. Raises `TimeoutError` if none begins in time."""
        import httpx

        try:
            request = httpx.Request("GET", place.url, headers=identification(self.contact))
            cookies.set_cookie_header(request)
        except (httpx.InvalidURL, UnicodeError) as error:  # also of a host that begins with xn-- and is no such name
            raise RefusedAddress(f"{quote_url(place.url)} cannot be read: {error}") from None
        target = request.url
        url = httpcore.URL(scheme=target.raw_scheme, host=target.raw_host, port=target.port, target=target.raw_path)
        backend = _Pinned(place, self.resolve, self.dial, self._find_proxy(place))
        if place.url.startswith("https:") and self._ssl is None:
            self._ssl = httpcore.default_ssl_context()  # once: loading the certificates takes longer than many requests
        timeouts = {"connect": CONNECT_SECONDS, "read": self.seconds, "write": CONNECT_SECONDS, "pool": CONNECT_SECONDS}
        async with (
            httpcore.AsyncConnectionPool(ssl_context=self._ssl, network_backend=backend) as pool,
            AsyncExitStack() as stack,
        ):
            stream = pool.stream("GET", url, headers=request.headers.raw, extensions={"timeout": timeouts})
            async with asyncio.timeout_at(min(deadline, asyncio.get_running_loop().time() + HEAD_SECONDS)):
                response = await stack.enter_async_context(stream)
            headers = httpx.Headers(response.headers)
            cookies.extract_cookies(httpx.Response(response.status, headers=headers, request=request))
            # of a repeated header, the one that browsers take; httpx would join them with commas
            location, kind = (headers.get_list(name) or [""] for name in ("location", "content-type"))
            if response.status in _REDIRECTS and location[0]:
                try:
                    return urljoin(place.url, location[0].strip().replace(" ", "%20"))
                except ValueError:
                    where = f"{quote_url(location[0])}, which cannot be read"
                    raise RefusedAddress(f"{quote_url(place.url)} redirects to {where}") from None
            if (encoding := find_encoding(headers)) is None:
                shown = clean(headers["content-encoding"].strip().lower()[:40])
                what = f"sent its page in the encoding {shown!r}, which hira does not read"
                raise ToolError(f"{quote_url(place.url)} {what}")
            body = BoundedBody(encoding, self.limit)
            cut = await body.read(response.aiter_stream(), deadline)
            return Fetched(place.url, response.status, kind[-1], bytes(body.data[: self.limit]), cut)

    def _find_proxy(self, place: CheckedUrl) -> Proxy | None:
        """Return the proxy to use, if there is one; servers of the user's own network are dialled directly."""
        proxy = "" if place.allowed else self.proxies(place.url.partition(":")[0], place.host)
        try:
            return read_proxy(proxy) if proxy else None
        except UsageError as error:
            raise ToolError(f"{quote_url(place.url)} cannot be opened: {error.what}") from None


def identification(contact: str = "") -> dict[str, str]:
    """Return headers that say who asks and why, without posing as a browser."""
    who = f"; contact: {contact}" if contact else ""
    headers = {
        "User-Agent": f"hira/{__version__} (reads single pages to answer a person's question{who})",
        "Accept": "text/html,application/xhtml+xml,application/pdf,application/json,text/*;q=0.9,*/*;q=0.5",
        "Accept-Language": "en,*;q=0.5",
        "Accept-Encoding": "gzip, deflate",
    }
    return headers | ({"From": contact} if "@" in contact else {})


def find_encoding(headers: Mapping[str, str]) -> str | None:
    """Return the compression of a body: "gzip", "deflate" or ""; None for chains and other encodings."""
    named = (part.strip().removeprefix("x-") for part in headers.get("content-encoding", "").lower().split(","))
    encoding = ",".join(layer for layer in named if layer not in {"", "identity", "none"})
    return encoding if encoding in {"", "gzip", "deflate"} else None


def _reason(error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        return "there is no such host"
    text = str(error)
    if "CERTIFICATE" in text.upper():
        return "its certificate is not valid"
    if isinstance(error, httpcore.TimeoutException):
        return "it does not answer"
    if isinstance(error, httpcore.ProtocolError):
        return "it does not answer with valid HTTP"
    return f"the connection failed ({clean(text[:120]) or type(error).__name__})"
