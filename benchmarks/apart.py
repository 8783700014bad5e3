"""Servers of benchmarks: in a process of its own, so that what it computes is not counted as hira's, or in this one."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from hira.testing import Endpoint, FakeWeb


@contextmanager
def apart(*command: str) -> Iterator[str]:
    """The base URL of what `python COMMAND` serves. It ends with the context, and with this process."""
    started = [sys.executable, *command]
    with subprocess.Popen(started, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()


def serve(server: Endpoint | FakeWeb) -> None:
    """The other side of it: tell where the server is, and answer until the process that wants it is gone."""
    with server:
        print(server.url if isinstance(server, FakeWeb) else server.base_url, flush=True)
        sys.stdin.read()


@asynccontextmanager
async def serve_app(app: Any, **options: Any) -> AsyncIterator[tuple[str, int]]:
    """The host and the port at which this process serves an ASGI app; the options are uvicorn's."""
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    server = uvicorn.Server(uvicorn.Config(app, **options))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield listening.getsockname()
    finally:
        server.should_exit = True
        await serving
