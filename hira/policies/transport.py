"""HTTP for many calls at once: an httpx transport over asyncio and h11. httpx's own pool looks through all its
connections at every request; here a request takes the idle connection used last, or opens a new one."""

import asyncio
import re
import ssl
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple
from urllib.request import getproxies, proxy_bypass

import h11
import httpx

from hira.policies.names import is_loopback

IDLE_SECONDS = 45.0
MAX_HEADER_BYTES = 100_000
BUFFER_BYTES = 1 << 20
_SIZE = re.compile(rb"([0-9a-fA-F]{1,16})[ \t]*(?:;[^\n]*)?")

Origin = tuple[str, str, int]


@cache
def ssl_context() -> ssl.SSLContext:
    """One for the process, because each costs some 20 ms. Honours SSL_CERT_FILE."""
    context = httpx.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def transport_for(base_url: str) -> httpx.AsyncBaseTransport:
    """Straight to the host, or through the proxy that the environment names; to this machine always straight."""
    url = httpx.URL(base_url)
    proxies = {} if is_loopback(url.host) else getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(url.host):
        return StreamTransport()
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    return httpx.AsyncHTTPTransport(verify=ssl_context(), proxy=proxy, limits=limits)


class StreamTransport(httpx.AsyncBaseTransport):
    """Requests over HTTP/1.1 with connections kept alive. May be used from one event loop after another."""

    def __init__(self) -> None:
        self._idle: dict[asyncio.AbstractEventLoop, dict[Origin, list[_Wire]]] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        heading = heading_of(request.method, request.url, request.headers.raw)
        return await self.send(heading, await request.aread(), request.extensions.get("timeout") or {})

    async def send(self, heading: "Heading", body: bytes, limits: Mapping[str, float | None]) -> httpx.Response:
        """The response to a request of this heading; `limits` are the seconds of a `httpx.Timeout`."""
        idle = self._idle_at(heading.origin)
        wire = _awake(idle)
        while True:
            wire = wire or await _connect(heading.origin, limits.get("connect"))
            try:
                await wire.send(heading, body, limits)
                head = await wire.head()
            except BaseException as error:
                wire.abort()
                # a kept connection may turn out to be closed before the server has said a word
                if not (wire.kept and isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError)):
                    raise
                wire = None
            else:
                chunked = any(name == b"transfer-encoding" for name, _ in head.headers)
                closes = any(name == b"connection" and b"close" in value.lower() for name, value in head.headers)
                kind = _ChunkedBody if chunked else _ResponseBody
                stream = kind(wire, idle, keeps=head.http_version >= b"1.1" and not closes)
                return httpx.Response(head.status_code, headers=list(head.headers.raw_items()), stream=stream)

    async def aclose(self) -> None:
        """Close what is idle in the running loop. Connections in use are closed by those who use them."""
        pools = self._idle.pop(asyncio.get_running_loop(), {})
        for pool in pools.values():
            for wire in pool:
                wire.abort()
        await asyncio.sleep(0)

    def _idle_at(self, origin: Origin) -> "list[_Wire]":
        loop = asyncio.get_running_loop()
        pools = self._idle.get(loop)
        if pools is None:
            for gone in [other for other in self._idle if other.is_closed()]:
                del self._idle[gone]
            pools = self._idle[loop] = {}
        return pools.setdefault(origin, [])


class Heading(NamedTuple):
    """A request without its body, checked and written out: requests to one place share it."""

    origin: Origin
    request: h11.Request
    raw: bytes


def heading_of(method: str, url: httpx.URL, headers: Iterable[tuple[bytes, bytes]]) -> Heading:
    """Raises `httpx.LocalProtocolError` for headers that cannot be sent."""
    origin = (url.scheme, url.raw_host.decode("ascii"), url.port or (443 if url.scheme == "https" else 80))
    kept = [header for header in headers if header[0].lower() not in (b"content-length", b"transfer-encoding")]
    try:
        request = h11.Request(method=method, target=url.raw_path, headers=kept)
        raw = _conversation().send(request)
    except h11.LocalProtocolError as error:
        raise httpx.LocalProtocolError(str(error)) from error
    return Heading(origin, request, raw.removesuffix(b"\r\n"))


def _awake(idle: "list[_Wire]") -> "_Wire | None":
    """Return the connection used last, if it is still open; connections that have idled too long are closed."""
    now = time.monotonic()
    while idle:
        wire = idle.pop()
        if wire.lost is None and now - wire.since < IDLE_SECONDS:
            return wire
        wire.abort()
    return None


async def _connect(origin: Origin, seconds: float | None) -> "_Wire":
    scheme, host, port = origin
    loop = asyncio.get_running_loop()
    ways: dict[str, Any] = {}
    if scheme == "https":
        ways = {"ssl": ssl_context(), "server_hostname": host}
        if seconds is not None:
            ways["ssl_handshake_timeout"] = seconds * 0.8
    if not (host[-1].isdigit() or ":" in host):  # a name may have several addresses, of which some answer
        ways["happy_eyeballs_delay"] = 0.25
    try:
        async with asyncio.timeout(seconds):
            _, wire = await loop.create_connection(_Wire, host, port, **ways)
    except TimeoutError as error:
        raise httpx.ConnectTimeout(f"no connection to {host}:{port} within {seconds} s") from error
    except OSError as error:
        raise httpx.ConnectError(str(error)) from error
    return wire


class _Wire(asyncio.Protocol):
    """One connection: bytes in through h11, bytes out, one exchange at a time."""

    def __init__(self) -> None:
        self.talk = _conversation()
        self.lost: BaseException | None = None
        self.kept = False
        """It has had an exchange before, and nothing has come since."""
        self.since = 0.0
        self._limits: Mapping[str, float | None] = {}
        self._line: asyncio.Transport | None = None
        self._got = bytearray()
        self._paused = False
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - what create_connection makes
        self._line = transport

    def data_received(self, data: bytes) -> None:
        self._got += data
        if len(self._got) > BUFFER_BYTES and self._line and not self._paused:
            self._paused = True
            self._line.pause_reading()
        if self.since:  # idle: whatever this is, it answers nothing
            self.abort()
        _wake(self._reader)
        _wake(self._writer)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = self.lost or exc or EOFError("the server closed the connection")
        _wake(self._reader)
        _wake(self._writer)

    def eof_received(self) -> None:
        self.lost = self.lost or EOFError("the server closed the connection")
        _wake(self._reader)

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        _wake(self._writer)

    def abort(self) -> None:
        """Close at once, without waiting for anybody."""
        self.lost = self.lost or ConnectionAbortedError("closed")
        if self._line is not None:
            self._line.abort()

    async def send(self, heading: Heading, body: bytes, limits: Mapping[str, float | None]) -> None:
        assert self._line is not None  # noqa: S101 - the wire is connected
        self.since, self._limits = 0.0, limits
        self.talk = _conversation()
        self.talk.send(heading.request)  # h11 reads the response by it; the body it need not see
        if self.lost is not None:
            raise httpx.WriteError(str(self.lost)) from self.lost
        self._line.write(b"%bcontent-length: %d\r\n\r\n%b" % (heading.raw, len(body), body))
        if self._full and self.lost is None:  # until the peer takes it; an early response ends the wait, too
            self._writer = asyncio.get_running_loop().create_future()
            await _within(self._writer, self._limits.get("write"), httpx.WriteTimeout, "nothing could be sent")

    async def head(self) -> h11.Response:
        while True:
            event = await self.event()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise httpx.RemoteProtocolError("the server did not send an HTTP response")

    async def event(self) -> Any:
        """The next event of the response; waits for each piece of it as long as the limits allow."""
        while True:
            try:
                event = self.talk.next_event()
                if event is not h11.NEED_DATA:
                    return event
                data = await self.read()
                self.talk.receive_data(data)
            except h11.RemoteProtocolError as error:
                raise httpx.RemoteProtocolError(str(error)) from error

    async def read(self) -> bytes:
        """Bytes as they come; empty at the end of the stream."""
        if not self._got and self.lost is None:
            self._reader = asyncio.get_running_loop().create_future()
            await _within(self._reader, self._limits.get("read"), httpx.ReadTimeout, "nothing was received")
        if not self._got:
            if isinstance(self.lost, EOFError):
                return b""
            raise httpx.ReadError(str(self.lost)) from self.lost
        data = bytes(self._got)
        self._got.clear()
        self.kept = False
        if self._paused and self._line:
            self._paused = False
            self._line.resume_reading()
        return data

    def rest(self, idle: "list[_Wire]", *, keeps: bool) -> None:
        """The exchange is over: keep the connection if the server does, too, and close it otherwise."""
        if keeps and self.lost is None and not self._got and not self._full:
            self.kept, self.since = True, time.monotonic()
            idle.append(self)
        else:
            self.abort()


def _conversation() -> h11.Connection:
    return h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEADER_BYTES)


class _ResponseBody(httpx.AsyncByteStream):
    """The body of one response. The connection goes back when it was read to its end, and is closed otherwise."""

    def __init__(self, wire: _Wire, idle: list[_Wire], *, keeps: bool) -> None:
        self._wire = wire
        self._idle = idle
        self._keeps = keeps
        self._over = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while isinstance(event := await self._wire.event(), h11.Data):
                yield bytes(event.data)
            self._over = True
            self._wire.rest(self._idle, keeps=self._keeps and self._wire.talk.their_state is h11.DONE)
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        if not self._over:
            self._over = True
            self._wire.abort()


class _ChunkedBody(_ResponseBody):
    """A body that comes in chunks, as streams do. All chunks that have come are one piece: h11 makes an event of each,
    which took most of the time of a stream."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = Chunks()
        data, _ = self._wire.talk.trailing_data
        try:
            while True:
                if piece := chunks.take(data):
                    yield piece
                if chunks.over:
                    break
                data = await self._wire.read()
                if not data:
                    raise httpx.RemoteProtocolError("the server closed the connection in the middle of a response")
            self._over = True
            self._wire.rest(self._idle, keeps=self._keeps and not chunks.rest)
        finally:
            await self.aclose()


class Chunks:
    """Puts the data of chunks together (RFC 9112, 7.1). `over` after the last one; `rest` is what came after it."""

    def __init__(self) -> None:
        self.over = False
        self.rest = b""
        self._left = 0
        self._within = self._trailers = False

    def take(self, data: bytes) -> bytes:
        """The data of the chunks that these bytes hold. Raises `httpx.RemoteProtocolError` for what are no chunks."""
        data, position, pieces = self.rest + data, 0, []
        while not self.over:
            if self._left:
                piece = data[position : position + self._left]
                pieces.append(piece)
                position += len(piece)
                self._left -= len(piece)
                if self._left:
                    break
            end = data.find(b"\r\n", position)
            if end < 0:
                if len(data) - position > MAX_HEADER_BYTES:
                    raise httpx.RemoteProtocolError("a line between two chunks does not end")
                break
            self._line(data[position:end])
            position = end + 2
        self.rest = data[position:]
        return b"".join(pieces)

    def _line(self, line: bytes) -> None:
        """Read the line between the data of two chunks: the end of one, the size of the next, or a trailer."""
        if self._trailers:
            self.over = not line
        elif self._within:
            if line:
                raise httpx.RemoteProtocolError("a chunk is longer than its stated size")
            self._within = False
        else:
            size = _SIZE.fullmatch(line)
            if size is None:
                raise httpx.RemoteProtocolError(f"this is not the size of a chunk: {line[:20]!r}")
            self._left = int(size[1], 16)
            self._within, self._trailers = self._left > 0, self._left == 0


def _wake(waiting: "asyncio.Future[None] | None") -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


async def _within(
    waiting: "asyncio.Future[None]", seconds: float | None, late: type[httpx.TimeoutException], what: str
) -> None:
    try:
        async with asyncio.timeout(seconds):
            await waiting
    except TimeoutError:
        raise late(f"{what} for {seconds} s") from None
