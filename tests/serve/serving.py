"""A real server, in a thread of the test or in its loop, and how tests drive its pages."""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
import uvicorn
from browser import Browser

from hira.core.policy import Completion, Policy, Request, Usage, Watch
from hira.runtime.settings import Settings
from hira.server.app import application
from hira.server.connections import TimedConnection
from hira.server.state import LOCAL

# httpx gives up after five seconds, which a machine that does much else may take
get, post = (partial(asked, timeout=60.0) for asked in (httpx.get, httpx.post))


@dataclass(frozen=True)
class Served:
    url: str


@contextmanager
def served(
    settings: Settings,
    policies: Mapping[str, Policy] | None = None,
    hosts: frozenset[str] | None = LOCAL,
    connection: type[TimedConnection] = TimedConnection,
) -> Iterator[Served]:
    listening = socket.create_server(("127.0.0.1", 0))
    ready = threading.Event()
    kept: list[uvicorn.Server] = []

    async def run() -> None:
        async with application(settings, policies=policies, hosts=hosts) as app:
            config = uvicorn.Config(app, http=connection, log_level="error", timeout_graceful_shutdown=1)
            server = uvicorn.Server(config)
            server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
            kept.append(server)
            ready.set()
            await server.serve(sockets=[listening])

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    assert ready.wait(20)
    try:
        yield Served(f"http://127.0.0.1:{listening.getsockname()[1]}")
    finally:
        kept[0].should_exit = True
        thread.join(20)
        listening.close()
        assert not thread.is_alive()


@asynccontextmanager
async def connect(settings: Settings, policy: Policy | None = None, **headers: str) -> AsyncIterator[httpx.AsyncClient]:
    """Serve these settings in this loop, with this policy if there is one, and yield a client with these headers."""
    async with (
        application(settings, policies={"*": policy} if policy else None) as app,
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost", headers=headers) as client,
    ):
        yield client


def limit_key(settings: Settings, **limits: int) -> Settings:
    """Return the settings with one key, `k`, and its limits."""
    return settings.with_values({"keys": {"someone": {"key": "k", **limits}}}, "test")


class Slow:
    """A policy whose calls take `seconds`. It counts the calls that began and the calls that were cancelled."""

    def __init__(self, seconds: float, usage: Usage = Usage(1, 100, 100)) -> None:
        self.seconds = seconds
        self.usage = usage
        self.begun = self.left = 0

    @property
    def model(self) -> str:
        return "slow"

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        del request, watch
        self.begun += 1
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.left += 1
            raise
        return Completion("The tower of Alta is 31 metres high.", usage=self.usage)

    async def aclose(self) -> None:
        pass


ASK = "document.getElementById('question').value = arguments[0]; document.getElementById('ask').requestSubmit()"


def go(driven: Browser, url: str) -> None:
    """Open the page, and wait until it has loaded or asks for a key."""
    driven.send("POST", "/url", {"url": url})
    until(
        driven,
        "return document.querySelectorAll('#workflows input').length > 10 || document.querySelector('#key').open",
    )


def until(driven: Browser, script: str, what: Callable[[Any], bool] = bool) -> Any:
    """Run the script until `what` accepts its result, and return that result."""
    deadline = time.monotonic() + 20
    while not what(found := driven.run(script)):
        assert time.monotonic() < deadline, f"{script}: {found!r}, {driven.run('return document.body.innerText')!r}"
        time.sleep(0.05)
    return found
