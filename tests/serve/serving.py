"""A real server in a thread of the test, for clients that speak HTTP."""

import asyncio
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import httpx
import uvicorn

from hira.core.policy import Completion, Policy, Request, Usage, Watch
from hira.runtime.settings import Settings
from hira.server.app import application
from hira.server.connections import Connection
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
    connection: type[Connection] = Connection,
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
