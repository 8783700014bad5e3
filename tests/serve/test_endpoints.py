"""Unreachable models: what the server reports at its start, and what a client gets that asks anyway."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from serving import Slow

from hira.core.errors import EndpointError
from hira.core.policy import Completion, Request, Watch
from hira.runtime.settings import KeySettings, RoleSettings, Settings
from hira.server.app import application, unready

ASKED = {"model": "direct", "messages": [{"role": "user", "content": "How high is the tower of Alta?"}]}


def nowhere() -> str:
    """Return a base URL where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return f"http://127.0.0.1:{one.getsockname()[1]}/v1"


async def test_an_endpoint_that_is_down_is_told_with_the_models_that_are_asked_there() -> None:
    url = nowhere()
    settings = Settings(model="m", base_url=url, roles={"planner": RoleSettings(model="big")})
    (line,) = await unready(settings)
    assert line == f"{url} does not answer (nothing listens there): questions to big, m fail until it does"


@asynccontextmanager
async def answering(status: str, body: str = "{}") -> AsyncIterator[str]:
    """Yield the base URL of a server that gives the same response to every request."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        writer.write(f"{head}connection: close\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


LISTED = '{"object": "list", "data": [{"id": "m"}, {"id": "other"}]}'


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        ("200 OK", LISTED, ""),
        ("200 OK", LISTED.replace('"m"', '"n"'), "lists no model m; it has n, other"),
        ("200 OK", "{}", ""),
        ("404 Not Found", "{}", ""),
        ("401 Unauthorized", "{}", "refuses the key, and questions to m fail"),
        ("500 Internal Server Error", "{}", "answers with status 500: questions to m may fail"),
    ],
)
async def test_an_endpoint_is_told_by_what_it_answers_to_a_list_of_models(status: str, body: str, says: str) -> None:
    async with answering(status, body) as url:
        told = await unready(Settings(model="m", base_url=url))
    assert [line.removeprefix(f"{url} ").partition(";")[0] for line in told] == [says.partition(";")[0]] * bool(says)


class Down(Slow):
    """A policy whose endpoint is down."""

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        raise EndpointError("nothing listens there", where=f"at {nowhere()}")


async def test_a_server_whose_model_is_down_is_well_itself_and_says_whose_fault_it_is(tmp_path: Path) -> None:
    keys = {"ada": KeySettings.model_validate({"key": "key-of-ada-1"})}
    settings = Settings(model="m", base_url=nowhere(), keys=keys, journal=tmp_path / "journal.sqlite")
    async with (
        application(settings, policies={"*": Down(0)}) as app,
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client,
    ):
        for path in ("/health", "/healthz"):
            well = await client.get(path)
            assert (well.status_code, well.json()) == (200, {"status": "ok"})
        reply = await client.post("/v1/chat/completions", json=ASKED, headers={"authorization": "Bearer key-of-ada-1"})
    assert reply.status_code == 502
    assert reply.json()["error"]["message"] == "the model of this server: nothing listens there"
