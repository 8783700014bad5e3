"""A session with one MCP server: opened and closed in its own task, used from any."""

import asyncio
import codecs
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from hira.core.errors import UsageError
from hira.core.sanitize import clean, without_userinfo
from hira.tools.mcp.bounds import LONGEST_MESSAGE, TOO_LONG, BoundedMessages, End, bound_body

if TYPE_CHECKING:
    from mcp import Client

T = TypeVar("T")
# the faults of a server that these log are raised here as well; a program that configures logging still gets them
for _logger in ("mcp", "client"):
    logging.getLogger(_logger).addHandler(logging.NullHandler())

INSTALL = "pip install 'hira[mcp]'"
# The protocol gives a server two seconds to leave and two more after SIGTERM; then it is killed.
CLOSING = 8.0
CANCELLING = 1.0
_LINE = 200
_TAIL = 4_000


@dataclass(frozen=True, slots=True)
class Server:
    """An MCP server, which hira starts or which runs at a URL."""

    name: str
    command: str = ""
    """Starts the server; empty if it runs at `url`."""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Added to PATH, HOME and a few more variables; other keys are not passed on."""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every request to `url`."""
    seconds: float = 120.0
    """The limit of one call."""
    start: float = 60.0
    """The limit of the first contact."""

    @property
    def place(self) -> str:
        """The server's location without secrets: no query, which may hold a key, and no user of a URL."""
        if not self.url:
            return without_userinfo(f"started by: {' '.join((self.command, *self.args))}")[:_LINE]
        parts = urlsplit(self.url)
        return "at " + urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


class SessionEnded(Exception):
    """The session is over, or did not begin; its `why` says what happened."""


class McpSession:
    """A client of the package "mcp". It has to be entered and left in one task, and a failure in its background ends
    that task, so it has a separate task, which does not end the callers of tools with it."""

    client: "Client"

    def __init__(self, server: Server) -> None:
        self.server = server
        self.why = ""
        self.refused = False
        self._status = 0
        self._entered = asyncio.Event()
        self._leaving = asyncio.Event()
        self._alive: Callable[[], bool] = lambda: True
        self._task = asyncio.create_task(self._hold(), name=f"mcp {server.name}")

    @property
    def ended(self) -> bool:
        return self._task.done() or self._leaving.is_set() or not self._alive()

    async def begin(self) -> None:
        """Return when the client can be used. Raises `SessionEnded` if it cannot."""
        try:
            async with asyncio.timeout(self.server.start):
                await self._entered.wait()
        except TimeoutError:
            self.why = f"did not answer within {self.server.start:g} seconds"
        if self.why or self._leaving.is_set():
            raise SessionEnded

    async def ask(self, request: Coroutine[Any, Any, T]) -> T:
        """Return the server's reply. Raises `SessionEnded` if the session is over first, else the client's error."""
        from mcp import MCPError

        asking = asyncio.create_task(request)
        try:
            await asyncio.wait({asking, self._task}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise SessionEnded
            return asking.result()
        except MCPError as error:
            if error.message == "Connection closed":  # servers send errors with the same code themselves
                raise SessionEnded from None
            raise
        finally:
            if not asking.done():
                asking.cancel()
                await asyncio.wait({asking}, timeout=CANCELLING)

    async def end(self) -> None:
        """Close the session and end the server's process. A cancellation waits until that is done."""
        self._leaving.set()
        if not self._entered.is_set():
            self._task.cancel()
        cancelled = None
        clock = asyncio.get_running_loop().time
        until = clock() + CLOSING
        while not self._task.done() and (left := until - clock()) > 0:
            try:
                await asyncio.wait({self._task}, timeout=left)
            except asyncio.CancelledError as error:
                cancelled = error
        self._task.cancel()
        if cancelled:
            raise cancelled

    async def _hold(self) -> None:
        failure: Exception | None = None
        stderr = _Stderr()
        with stderr.file:  # the server has its own end
            try:
                from mcp import Client

                transport: Any = self._open_http() if self.server.url else self._open_pipes(stderr)
                async with Client(transport) as self.client:
                    self._entered.set()
                    await self._leaving.wait()
                    failure = None if self._alive() else SessionEnded()
            except Exception as error:  # noqa: BLE001 - the users of the session get the reason
                failure = error
            except asyncio.CancelledError:
                self._entered.set()
                raise
        if failure and not self.refused:
            self.why = self._explain(failure, await stderr.last())
        self._entered.set()

    @asynccontextmanager
    async def _open_pipes(self, stderr: "_Stderr") -> AsyncIterator[tuple[Any, Any]]:
        from mcp import StdioServerParameters
        from mcp.client.stdio import stdio_client

        server = self.server
        _register_codec()
        _end.set(self._refuse)
        started = StdioServerParameters(
            command=server.command, args=list(server.args), env=dict(server.env), encoding=_BOUNDED
        )
        async with stdio_client(started, errlog=stderr.file) as (read, write):
            stderr.file.close()
            pipe: Any = read
            self._alive = lambda: pipe.statistics().open_send_streams > 0  # until the server's stdout ends
            yield BoundedMessages(read, self._refuse), write

    @asynccontextmanager
    async def _open_http(self) -> AsyncIterator[tuple[Any, Any]]:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        async def note(response: httpx2.Response) -> None:
            self._status = response.status_code
            await bound_body(response, self._refuse)

        async with (
            httpx2.AsyncClient(
                headers={"accept-encoding": "identity", **self.server.headers},
                timeout=httpx2.Timeout(30, connect=10, read=self.server.seconds),
                trust_env=False,
                event_hooks={"response": [note]},
            ) as http,
            streamable_http_client(self.server.url, http_client=http) as (read, write),
        ):
            yield BoundedMessages(read, self._refuse), write

    def _refuse(self, why: str) -> None:
        """End the session because of what the server sends."""
        self.refused = True
        self.why = why
        self._leaving.set()

    def _explain(self, error: BaseException, last: str) -> str:
        """Explain what happened, as the rest of a sentence that begins with the server's name."""
        cause = leaf(error)
        if isinstance(cause, FileNotFoundError | NotADirectoryError):
            return f"cannot be started: there is no command {self.server.command!r}"
        if isinstance(cause, OSError) and not self.server.url:
            return f"cannot be started: {cause.strerror or cause}"
        if self.server.url and self._status >= 400:
            return f"answered with HTTP {self._status}"
        if self.server.url:
            return f"cannot be used: {reason(cause)}"
        return f"ended, saying: {last}" if last else "ended without a message"


_BOUNDED = "hira-mcp-lines"
_end: ContextVar[End] = ContextVar("_end")


class _BoundedLines(codecs.IncrementalDecoder):
    """UTF-8 in lines of at most `LONGEST_MESSAGE`; a longer line ends the session that reads it."""

    def __init__(self, errors: str = "strict") -> None:
        super().__init__(errors)
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._length = 0
        self._end = _end.get()

    def decode(self, data: Any, final: bool = False) -> str:  # noqa: FBT001, FBT002 - the signature is that of codecs
        text = self._utf8.decode(data, final)
        _, newline, rest = text.rpartition("\n")
        self._length = len(rest) if newline else self._length + len(text)
        if self._length <= LONGEST_MESSAGE:
            return text
        self._end(TOO_LONG)
        return ""


@cache
def _register_codec() -> None:
    """Register the codec with Python, because the package "mcp" looks up the decoder of a server's output by name."""
    utf8 = codecs.lookup("utf-8")
    bounded = codecs.CodecInfo(utf8.encode, utf8.decode, incrementaldecoder=_BoundedLines, name=_BOUNDED)
    codecs.register(lambda name: bounded if name == _BOUNDED.replace("-", "_") else None)


class _Stderr:
    """The end of a server's stderr. It is not shown as it arrives, because the terminal belongs to the run."""

    def __init__(self) -> None:
        out, into = os.pipe()
        self.file = os.fdopen(into, "w")
        self._tail = b""
        self._reader = threading.Thread(target=self._read, args=(out,), name="mcp stderr", daemon=True)
        self._reader.start()

    async def last(self) -> str:
        """Return the last line that was written, once the server has ended."""
        await asyncio.to_thread(self._reader.join, 0.5)
        lines = self._tail.decode("utf-8", "replace").split("\n")
        return next((clean(line).strip()[:_LINE] for line in reversed(lines) if line.strip()), "")

    def _read(self, out: int) -> None:
        with os.fdopen(out, "rb", buffering=0) as stream:
            while piece := stream.read(_TAIL):
                self._tail = (self._tail + piece)[-_TAIL:]


def require() -> None:
    """Raise `UsageError` if the package "mcp" is missing."""
    try:
        import mcp  # noqa: F401 - only its presence is asked for
    except ImportError:
        raise UsageError("MCP needs the package 'mcp'", fix=INSTALL) from None


def leaf(error: BaseException) -> BaseException:
    """Return the error itself, out of the groups that its tasks wrapped around it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def reason(error: BaseException) -> str:
    """Return an error in one line, safe to show to a person or a model."""
    return clean(" ".join(str(leaf(error))[: 4 * _LINE].split()))[:_LINE] or type(leaf(error)).__name__
