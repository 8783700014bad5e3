"""Limits of a client: its work ends when it leaves, it spends only its budget, and it never learns where the server's
model is."""

import asyncio
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import Slow

from hira.core.errors import EndpointError
from hira.core.policy import Completion, Request, Usage, Watch
from hira.journal import Journal
from hira.runtime.settings import KeySettings, Settings
from hira.server.app import application

ASKED = {"model": "direct", "messages": [{"role": "user", "content": "How high is the tower of Alta?"}]}
WHERE = "http://10.1.2.3:9000/v1"


def settings_of(tmp_path: Path, **more: Any) -> Settings:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "alta.txt").write_text("The tower of Alta is 31 metres high.\n", encoding="utf-8")
    return Settings(model="offline", docs=(docs,), journal=tmp_path / "journal.sqlite", **more)


def client_of(app: Any, **headers: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost", headers=headers)


class Failing(Slow):
    """A policy whose first call succeeds and whose other calls fail."""

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        if self.begun:
            raise EndpointError("the endpoint answered 503", where=f"at {WHERE}", fix="look there")
        return await super().complete(request, watch)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_at_once_leaves_no_run_behind(tmp_path: Path, *, stream: bool) -> None:
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

    async with application(settings_of(tmp_path), policies={"*": slow}) as app:
        await app(scope, receive, send)
        for _ in range(100):
            await asyncio.sleep(0.01)
            async with client_of(app) as client:
                (run,) = (await client.get("/api/runs")).json()["runs"]
            if run["status"] == "interrupted":
                break
        assert run["status"] == "interrupted"
        assert slow.begun == slow.left
        async with client_of(app) as client:
            told = (await client.get(f"/api/runs/{run['id']}")).json()
    assert told["error"] == "the client disconnected"


async def test_what_was_spent_before_a_client_left_counts_against_its_key(tmp_path: Path) -> None:
    slow = Slow(0.2, Usage(1, 40_000, 100))
    settings = settings_of(tmp_path, keys={"someone": KeySettings.model_validate({"key": "k", "max_tokens": 100_000})})
    async with application(settings, policies={"*": slow}) as app, client_of(app, authorization="Bearer k") as client:
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


async def test_where_the_model_is_stays_the_servers_own(tmp_path: Path) -> None:
    failing, settings = Failing(0), settings_of(tmp_path)
    async with application(settings, policies={"*": failing}) as app, client_of(app) as client:
        told = (await client.post("/v1/chat/completions", json={**ASKED, "model": "marsrl"})).json()
        assert told["hira"]["error"] == "the model of this server: the endpoint answered 503"
        assert told["choices"][0]["finish_reason"] == "length"
        run = told["hira"]["run_id"]
        live = (await client.get(f"/api/runs/{run}")).text
    async with application(settings) as app, client_of(app) as client:
        past = (await client.get(f"/api/runs/{run}")).text
    for text in (json.dumps(told), live, past):
        assert "503" in text
        assert WHERE not in text


async def test_a_run_is_gone_on_with_once_however_often_that_is_asked(tmp_path: Path) -> None:
    slow = Failing(0)
    async with application(settings_of(tmp_path), policies={"*": slow}) as app, client_of(app) as client:
        run = (await client.post("/v1/chat/completions", json={**ASKED, "model": "marsrl"})).json()["hira"]["run_id"]
        replies = await asyncio.gather(*(client.post(f"/api/runs/{run}/resume", json={}) for _ in range(3)))
    assert sorted(reply.status_code for reply in replies) == [200, 200, 201]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_audio", "input_audio": {"data": "eA==", "format": "../x"}},
        {"type": "file", "file": {"file_data": "data:text/plain;base64,eA==", "filename": "x." + "a" * 400}},
        {"type": "file", "file": {"file_data": "data:text/plain;base64,eA==", "filename": "x.a\0b"}},
    ],
    ids=["a folder", "too long", "a zero"],
)
async def test_a_strange_name_of_an_attachment_is_the_clients_fault(tmp_path: Path, part: dict[str, Any]) -> None:
    content = [{"type": "text", "text": "What is this?"}, part]
    async with application(settings_of(tmp_path)) as app, client_of(app) as client:
        asked = {"model": "direct", "messages": [{"role": "user", "content": content}]}
        reply = await client.post("/v1/chat/completions", json=asked)
    assert reply.status_code == 400
    assert "is not a file format" in reply.json()["error"]["message"]


async def test_a_run_that_its_key_has_nothing_left_for_stays_as_it_ended(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, keys={"someone": KeySettings.model_validate({"key": "k", "max_tokens": 30_000})})
    failing = Failing(0, Usage(1, 40_000, 100))
    async with (
        application(settings, policies={"*": failing}) as app,
        client_of(app, authorization="Bearer k") as client,
    ):
        told = await client.post("/v1/chat/completions", json={**ASKED, "model": "marsrl"})
        run = told.json()["hira"]["run_id"]
        before = (await client.get("/api/runs")).json()["runs"]
        refused = await client.post(f"/api/runs/{run}/resume", json={})
        after = (await client.get("/api/runs")).json()["runs"]
    assert refused.status_code == 429
    assert [one["status"] for one in before] == [one["status"] for one in after]
    with closing(Journal(tmp_path / "journal.sqlite")) as journal:
        assert journal.entry(run).status != "running"


@pytest.mark.parametrize("soon", [True, False])
async def test_a_run_that_ends_while_it_waits_for_a_place_can_be_gone_on_with(tmp_path: Path, *, soon: bool) -> None:
    settings = settings_of(tmp_path, keys={"someone": KeySettings.model_validate({"key": "k", "concurrency": 1})})
    path = tmp_path / "journal.sqlite"
    async with (
        application(settings, policies={"*": Failing(0)}) as app,
        client_of(app, authorization="Bearer k") as client,
    ):
        told = await client.post("/v1/chat/completions", json={**ASKED, "model": "marsrl"})
        run = told.json()["hira"]["run_id"]
    with closing(Journal(path)) as journal:
        ended = journal.entry(run)
    async with (
        application(settings, policies={"*": Slow(30)}) as app,
        client_of(app, authorization="Bearer k") as client,
    ):
        await client.post("/api/runs", json={"question": "How high?", "workflow": "direct"})
        reply = await client.post(f"/api/runs/{run}/resume", json={})
        assert (reply.status_code, reply.json()["status"]) == (201, "running")
        if not soon:
            await asyncio.sleep(0.05)
    with closing(Journal(path)) as journal:
        entry = journal.entry(run)
    assert (entry.status, entry.answer, entry.usage) == (ended.status, ended.answer, ended.usage)


async def test_a_run_that_only_calls_under_way_stand_against_may_be_asked_again(tmp_path: Path) -> None:
    slow = Slow(0.3)
    settings = settings_of(tmp_path, keys={"someone": KeySettings.model_validate({"key": "k", "max_tokens": 3_000})})
    async with application(settings, policies={"*": slow}) as app, client_of(app, authorization="Bearer k") as client:
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
