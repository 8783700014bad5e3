"""Limits of a client: its work ends when it leaves, it spends only its budget, and it never learns where the server's
model is. And endpoints that are down: what the server reports at its start, and what a client gets."""

import asyncio
import json
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import Slow, connect, limit_key

from hira.core.errors import EndpointError
from hira.core.policy import Completion, Request, Usage, Watch
from hira.journal import Journal
from hira.runtime.settings import RoleSettings, Settings
from hira.server.app import application, unready
from hira.testing import Endpoint, ScriptedPolicy
from hira.testing.server import HttpServer

ASKED = {"model": "direct", "messages": [{"role": "user", "content": "How high is the tower of Alta?"}]}
WHERE = "http://10.1.2.3:9000/v1"


class Failing(Slow):
    """A policy whose first call succeeds and whose other calls fail."""

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        if self.begun:
            raise EndpointError("the endpoint answered 503", where=f"at {WHERE}", fix="look there")
        return await super().complete(request, watch)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_at_once_leaves_no_run_behind(settings: Settings, *, stream: bool) -> None:
    slow = Slow(30)
    body = json.dumps({**ASKED, "stream": stream}).encode()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "method": "POST",
        "path": "/v1/chat/completions",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
    }
    coming = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        return coming.pop() if coming else {"type": "http.disconnect"}

    async def send(_message: Any) -> None:
        await asyncio.sleep(0)

    async with application(settings, policies={"*": slow}) as app:
        await app(scope, receive, send)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            for _ in range(100):
                await asyncio.sleep(0.01)
                (run,) = (await client.get("/api/runs")).json()["runs"]
                if run["status"] == "interrupted":
                    break
            told = (await client.get(f"/api/runs/{run['id']}")).json()
    assert (told["status"], told["error"]) == ("interrupted", "the client disconnected")
    assert slow.begun == slow.left


async def test_what_was_spent_before_a_client_left_counts_against_its_key(settings: Settings) -> None:
    slow = Slow(0.2, Usage(1, 40_000, 100))
    settings = limit_key(settings, max_tokens=100_000)
    async with connect(settings, slow, authorization="Bearer k") as client:
        leaving = asyncio.ensure_future(client.post("/v1/chat/completions", json={**ASKED, "model": "marsrl"}))
        while slow.begun < 2:
            await asyncio.sleep(0.01)
        leaving.cancel()
        await asyncio.wait([leaving])
        while (await client.get("/api/runs")).json()["runs"][0]["status"] == "running":
            await asyncio.sleep(0.01)
        assert slow.begun == slow.left + 1
        for _ in range(4):
            refused = await client.post("/v1/chat/completions", json=ASKED)
            if refused.status_code == 429:
                break
    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == "insufficient_quota"
    assert slow.begun - slow.left == 3, "what the run had spent whose client left is missing"


async def test_where_the_model_is_stays_the_servers_own(settings: Settings) -> None:
    failing = Failing(0)
    async with connect(settings, failing) as client:
        told = (await client.post("/v1/chat/completions", json={**ASKED, "model": "marsrl"})).json()
        assert told["hira"]["error"] == "the model of this server: the endpoint answered 503"
        assert told["choices"][0]["finish_reason"] == "length"
        run = told["hira"]["run_id"]
        live = (await client.get(f"/api/runs/{run}")).text
    async with connect(settings) as client:
        past = (await client.get(f"/api/runs/{run}")).text
    for text in (json.dumps(told), live, past):
        assert "503" in text
        assert WHERE not in text


@pytest.mark.parametrize("model", ["rag", "hira", "auto"])
async def test_a_model_that_never_answered_is_an_error_although_passages_were_read(
    settings: Settings, model: str
) -> None:
    failing = Failing(0)
    failing.begun = 1  # as if the first call were over
    async with connect(settings, failing) as client:
        told = await client.post("/v1/chat/completions", json={**ASKED, "model": model})
    assert (told.status_code, "choices" in told.json()) == (502, False)
    assert "the endpoint answered 503" in told.json()["error"]["message"]


async def test_a_run_is_gone_on_with_once_however_often_that_is_asked(settings: Settings) -> None:
    slow = Failing(0)
    async with connect(settings, slow) as client:
        run = (await client.post("/v1/chat/completions", json={**ASKED, "model": "marsrl"})).json()["hira"]["run_id"]
        replies = await asyncio.gather(*(client.post(f"/api/runs/{run}/resume", json={}) for _ in range(3)))
    assert sorted(reply.status_code for reply in replies) == [200, 200, 201]


async def test_a_strange_name_of_an_attachment_is_the_clients_fault(settings: Settings) -> None:
    for part in (
        {"type": "input_audio", "input_audio": {"data": "eA==", "format": "../x"}},
        {"type": "file", "file": {"file_data": "data:text/plain;base64,eA==", "filename": "x." + "a" * 400}},
        {"type": "file", "file": {"file_data": "data:text/plain;base64,eA==", "filename": "x.a\0b"}},
    ):
        content = [{"type": "text", "text": "What is this?"}, part]
        async with connect(settings) as client:
            asked = {"model": "direct", "messages": [{"role": "user", "content": content}]}
            reply = await client.post("/v1/chat/completions", json=asked)
        assert reply.status_code == 400
        assert "is not a file format" in reply.json()["error"]["message"]


async def test_a_run_that_its_key_has_nothing_left_for_stays_as_it_ended(settings: Settings) -> None:
    settings = limit_key(settings, max_tokens=30_000)
    failing = Failing(0, Usage(1, 40_000, 100))
    async with connect(settings, failing, authorization="Bearer k") as client:
        told = await client.post("/v1/chat/completions", json={**ASKED, "model": "marsrl"})
        run = told.json()["hira"]["run_id"]
        before = (await client.get("/api/runs")).json()["runs"]
        refused = await client.post(f"/api/runs/{run}/resume", json={})
        after = (await client.get("/api/runs")).json()["runs"]
    assert refused.status_code == 429
    assert [one["status"] for one in before] == [one["status"] for one in after]
    with closing(Journal(settings.journal or Path())) as journal:
        assert journal.entry(run).status != "running"


@pytest.mark.parametrize("soon", [True, False])
async def test_a_run_that_ends_while_it_waits_for_a_place_can_be_gone_on_with(
    settings: Settings, *, soon: bool
) -> None:
    settings = limit_key(settings, concurrency=1)
    path = settings.journal or Path()
    async with connect(settings, Failing(0), authorization="Bearer k") as client:
        told = await client.post("/v1/chat/completions", json={**ASKED, "model": "marsrl"})
        run = told.json()["hira"]["run_id"]
    with closing(Journal(path)) as journal:
        ended = journal.entry(run)
    async with connect(settings, Slow(30), authorization="Bearer k") as client:
        await client.post("/api/runs", json={"question": "How high?", "workflow": "direct"})
        reply = await client.post(f"/api/runs/{run}/resume", json={})
        assert (reply.status_code, reply.json()["status"]) == (201, "running")
        if not soon:
            await asyncio.sleep(0.05)
    with closing(Journal(path)) as journal:
        entry = journal.entry(run)
    assert (entry.status, entry.answer, entry.usage) == (ended.status, ended.answer, ended.usage)


async def test_a_run_that_only_calls_under_way_stand_against_may_be_asked_again(settings: Settings) -> None:
    slow = Slow(0.3)
    settings = limit_key(settings, max_tokens=3_000)
    async with connect(settings, slow, authorization="Bearer k") as client:
        first = asyncio.ensure_future(client.post("/v1/chat/completions", json=ASKED))
        while not slow.begun:
            await asyncio.sleep(0.01)
        refused = await client.post("/v1/chat/completions", json=ASKED)
        assert (await first).status_code == 200
        again = await client.post("/v1/chat/completions", json=ASKED)
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (429, "rate_limit_exceeded")
    assert "is held by other calls under way; try again" in error["message"]
    assert again.status_code == 200


def nowhere() -> str:
    """Return a base URL where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return f"http://127.0.0.1:{one.getsockname()[1]}/v1"


async def test_an_endpoint_that_is_down_is_told_with_the_models_that_are_asked_there() -> None:
    url = nowhere()
    settings = Settings(model="m", base_url=url, roles={"planner": RoleSettings(model="big")})
    (line,) = await unready(settings)
    assert line == f"{url} does not answer (nothing listens there): questions to big, m fail until it does"


LISTED = '{"object": "list", "data": [{"id": "m"}, {"id": "other"}]}'


async def test_an_endpoint_is_told_by_what_it_answers_to_a_list_of_models() -> None:
    for status, body, says in (
        (200, LISTED, ""),
        (200, LISTED.replace('"m"', '"n"'), "lists no model m; it has n, other"),
        (200, "{}", ""),
        (404, "{}", ""),
        (401, "{}", "refuses the key, and questions to m fail"),
        (500, "{}", "answers with status 500: questions to m may fail"),
    ):
        answer = (status, body.encode())
        server = HttpServer(lambda _, exchange, answer=answer: exchange.send(*answer))
        server.start()
        url = f"http://127.0.0.1:{server.port}/v1"
        told = await unready(Settings(model="m", base_url=url))
        server.close()
        assert [line.removeprefix(f"{url} ").partition(";")[0] for line in told] == (
            [says.partition(";")[0]] if says else []
        )


async def test_an_endpoint_that_lists_its_models_and_fails_to_chat_is_told_once() -> None:
    with Endpoint(faults=lambda _: "500") as endpoint:
        settings = Settings(
            model=endpoint.model, base_url=endpoint.base_url, roles={"planner": RoleSettings(model=endpoint.model)}
        )
        (line,) = await unready(settings)
    expected = f"answers a chat with status 500: questions to {endpoint.model} may fail"
    assert line == f"{endpoint.base_url} {expected}"


async def test_a_server_whose_model_is_down_is_well_itself_and_says_whose_fault_it_is(settings: Settings) -> None:
    down = ScriptedPolicy([EndpointError("nothing listens there", where=f"at {nowhere()}")])
    async with connect(limit_key(settings), down) as client:
        for path in ("/health", "/healthz"):
            well = await client.get(path)
            assert (well.status_code, well.json()) == (200, {"status": "ok"})
        reply = await client.post("/v1/chat/completions", json=ASKED, headers={"authorization": "Bearer k"})
    assert reply.status_code == 502
    assert reply.json()["error"]["message"] == "the model of this server: nothing listens there"
