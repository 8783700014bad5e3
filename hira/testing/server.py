"""A server on this machine, in a separate thread, so that synchronous code can use it too."""

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class Received:
    """One HTTP request as it arrived: `body` is the parsed JSON, header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


class Exchange:
    """The server's side of one request."""

    def __init__(self, transport: asyncio.Transport, headers: Mapping[str, str]) -> None:
        self.transport = transport
        self.headers = headers

    async def send(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        """Send a whole response. Underscores in header names become hyphens."""
        header_lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{header_lines}\r\n"
        self.transport.write(head.encode() + body)

    async def json(self, status: int, body: Any, **headers: str) -> None:
        await self.send(status, json.dumps(body, ensure_ascii=False).encode(), **headers)

    async def begin(self) -> None:
        """The head of a chunked response."""
        self.transport.write(b"HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")

    async def chunk(self, data: bytes) -> None:
        self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        self.transport.write(b"0\r\n\r\n")

    async def stream(self, events: Iterable[bytes], pause: float | None = None) -> None:
        """A whole streamed response, with a pause in seconds after each event."""
        await self.begin()
        for event in events:
            await self.chunk(event)
            if pause is not None:
                await asyncio.sleep(pause)
        await self.end()

    async def reset(self) -> None:
        """Break the connection as a crash would."""
        linger = struct.pack("ii", 1, 0)
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.transport.abort()


Respond = Callable[[Received, Exchange], Awaitable[None]]


class HttpServer:
    """Answers HTTP requests with `respond` on the port, or on a free one if that is 0."""

    def __init__(self, respond: Respond, port: int = 0) -> None:
        self.respond = respond
        self.port = port
        self.connections: set[_ClientConnection] = set()
        self._listening: asyncio.Server | None = None

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="hira-testing")
        self._thread.start()
        opening = self._loop.create_server(lambda: _ClientConnection(self), "127.0.0.1", self.port, backlog=4096)
        self._listening = asyncio.run_coroutine_threadsafe(opening, self._loop).result(PATIENCE)
        self.port = self._listening.sockets[0].getsockname()[1]

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    async def _shut(self) -> None:
        if self._listening:
            self._listening.close()
        tasks = [connection.task for connection in self.connections if connection.task]
        for connection in list(self.connections):
            connection.close()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)


class _ClientConnection(asyncio.Protocol):
    """One client's connection; requests are answered one after another."""

    def __init__(self, server: HttpServer) -> None:
        self.server = server
        self.task: asyncio.Future[None] | None = None
        self.transport: asyncio.Transport | None = None
        self._got = b""

    @property
    def serving(self) -> bool:
        return self.task is not None and not self.task.done()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - what create_server makes
        self.transport = transport
        self.server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.server.connections.discard(self)
        if self.task:
            self.task.cancel()

    def close(self) -> None:
        if self.task:
            self.task.cancel()
        if self.transport:
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        self._got += data
        end = self._got.find(b"\r\n\r\n")
        if end < 0 or self.serving:
            return
        first, *lines = self._got[:end].decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        total = end + 4 + int(headers.get("content-length", 0))
        if len(self._got) < total:
            return
        body, self._got = self._got[end + 4 : total], self._got[total:]
        method, target, _ = first.split(" ")
        path, _, query = target.partition("?")
        parameters = dict(parse_qsl(query, keep_blank_values=True))
        received = Received(method, path, parameters, headers, json.loads(body) if body else None)
        self.task = asyncio.ensure_future(self._answer(received))

    async def _answer(self, received: Received) -> None:
        assert self.transport is not None  # noqa: S101 - data comes over it
        try:
            await self.server.respond(received, Exchange(self.transport, received.headers))
        except Exception:
            self.transport.abort()  # the client would wait for ever
            raise
