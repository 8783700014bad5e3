"""A client sees names instead of the server's paths, and nothing of the runs of other clients."""

import base64
import json
import logging
import secrets
import tempfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import Slow

from hira.core.errors import EndpointError
from hira.core.policy import Completion, Request, Watch
from hira.journal import Journal
from hira.runtime.settings import KeySettings, Settings
from hira.server.app import application
from hira.server.keys import tag_of
from hira.server.outside import Outside, without_folders

QUESTION = "How high is the tower of Alta?"


def client_of(app: Any, **headers: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost", headers=headers)


def settings_of(tmp_path: Path, *folders: str, **more: Any) -> Settings:
    docs = tuple(tmp_path / name for name in folders or ("docs",))
    for folder in docs:
        folder.mkdir(parents=True)
        (folder / "alta.txt").write_text("The tower of Alta is 31 metres high.\n", encoding="utf-8")
    return Settings(model="offline", docs=docs, journal=tmp_path / "journal.sqlite", **more)


async def all_that_is_told(client: httpx.AsyncClient, body: dict[str, Any]) -> str:
    """Return all that a client can read of a question: the answer, a streamed answer, and the run and its events as the
    page gets them."""
    reply = await client.post("/v1/chat/completions", json=body)
    assert reply.status_code == 200, reply.text
    streamed = await client.post("/v1/chat/completions", json={**body, "stream": True})
    run = reply.json()["hira"]["run_id"]
    pages = [await client.get(f"/api/runs/{run}{path}") for path in ("", "/events")]
    return "\n".join(one.text for one in (reply, streamed, *pages))


async def test_two_documents_of_one_name_are_told_without_the_folders_of_the_server(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "here/docs", "there/docs")
    async with application(settings) as app, client_of(app) as client:
        body = {"model": "hira", "messages": [{"role": "user", "content": QUESTION}]}
        told = await all_that_is_told(client, body)
        run = json.loads(told.splitlines()[0])["hira"]["run_id"]
    async with application(settings) as app, client_of(app) as client:  # from the journal
        told += (await client.get(f"/api/runs/{run}")).text + (await client.get(f"/api/runs/{run}/events")).text
    assert "alta.txt" in told
    assert str(tmp_path) not in told


async def test_an_attached_file_is_told_by_its_name_and_cited_where_the_text_does(tmp_path: Path) -> None:
    data = base64.b64encode(b"The cook of the ferry is Bettine Aalto.\n").decode()
    file = {"filename": "session.txt", "file_data": f"data:text/plain;base64,{data}"}
    content = [{"type": "text", "text": "Who is the cook of the ferry?"}, {"type": "file", "file": file}]
    async with application(settings_of(tmp_path)) as app, client_of(app) as client:
        told = await all_that_is_told(client, {"model": "mams", "messages": [{"role": "user", "content": content}]})
    assert "session.txt" in told
    assert "hira-serve-" not in told
    message = json.loads(told.splitlines()[0])["choices"][0]["message"]
    for one in message["annotations"]:
        cited = one["url_citation"]
        assert message["content"][cited["start_index"] : cited["end_index"]].startswith("[s")


class Broken(Slow):
    """A policy that fails with an error whose text is only for the server."""

    def __init__(self, failure: Exception) -> None:
        super().__init__(0)
        self.failure = failure

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        raise self.failure


@pytest.mark.parametrize(
    ("failure", "says"),
    [
        (KeyError("/srv/secret/place/key.pem"), "a fault in hira (KeyError)"),
        (EndpointError("no adapter at '/srv/secret/place/adapter'"), "no adapter at 'adapter'"),
    ],
    ids=["fault", "error"],
)
async def test_what_fails_is_told_without_paths_and_a_fault_stands_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, failure: Exception, says: str
) -> None:
    body = {"model": "direct", "messages": [{"role": "user", "content": QUESTION}]}
    with caplog.at_level(logging.ERROR, "hira.server"):
        async with application(settings_of(tmp_path), policies={"*": Broken(failure)}) as app, client_of(app) as client:
            reply = await client.post("/v1/chat/completions", json=body)
            (run,) = (await client.get("/api/runs")).json()["runs"]
            page = await client.get(f"/api/runs/{run['id']}")
    assert reply.status_code == 502
    assert says in reply.json()["error"]["message"]
    assert "/srv/secret" not in reply.text + page.text
    assert ("key.pem" in caplog.text) == isinstance(failure, KeyError)


async def test_the_runs_of_others_hide_none_of_ones_own(tmp_path: Path) -> None:
    keys = {name: KeySettings.model_validate({"key": f"key-of-{name}-1"}) for name in ("ada", "bob")}
    settings = settings_of(tmp_path, keys=keys)
    journal = Journal(tmp_path / "journal.sqlite")
    for at in range(205):
        name = "ada" if at < 3 else "bob"
        run = f"20260101-{at:06}-{tag_of(f'key-of-{name}-1')}-000000"
        log = journal.begin(run, settings={}, files=(), versions={})
        log.describe(f"question of {name}", "hira")
        log.end("answered", "", "")
    journal.close()
    async with application(settings) as app:
        for name, many in (("ada", 3), ("bob", 200)):
            async with client_of(app, authorization=f"Bearer key-of-{name}-1") as client:
                runs = (await client.get("/api/runs")).json()["runs"]
            assert [one["question"] for one in runs] == [f"question of {name}"] * many


def test_folders_of_the_server_are_taken_off_and_nothing_else(tmp_path: Path) -> None:
    docs, attached = tmp_path / "docs", tmp_path / "attached"
    docs.mkdir()
    outside = Outside(Settings(docs=(docs,)), attached)
    assert outside({"a": [f"{attached}/tmp1/b.txt of {docs}/c/d.md", 1, None]}) == {"a": ["b.txt of c/d.md", 1, None]}
    assert outside(f"in {docs}, it stands") == "in docs, it stands"
    assert outside(f"x{docs}/y and http://example.org{docs}/y") == f"x{docs}/y and http://example.org{docs}/y"
    assert outside(f"at file://{docs}/a.txt, file://{docs} and file:///etc") == "at a.txt, docs and file:///etc"
    assert outside("and/or") == "and/or"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no such file: '/srv/papers/alta.txt'", "no such file: 'alta.txt'"),
        ("http://example.org/a/b is away", "http://example.org/a/b is away"),
        ("file:///srv/papers/alta.txt is away", "alta.txt is away"),
        ("3/4 of a/b, and/or", "3/4 of a/b, and/or"),
        (r"at C:\Users\me\x.txt", "at x.txt"),
    ],
)
def test_an_error_tells_the_last_name_of_a_path(text: str, told: str) -> None:
    assert without_folders(text) == told


@pytest.mark.heavy
async def test_attached_files_go_with_their_run_and_those_of_a_refused_request_at_once(tmp_path: Path) -> None:
    def asked(*parts: dict[str, Any]) -> dict[str, Any]:
        content = [{"type": "text", "text": "Who is the cook of the ferry?"}, *parts]
        return {"model": "direct", "messages": [{"role": "user", "content": content}]}

    name = f"crew-{secrets.token_hex(6)}.txt"
    data = base64.b64encode(b"The cook of the ferry is Bettine Aalto.\n").decode()
    file = {"type": "file", "file": {"filename": name, "file_data": f"data:text/plain;base64,{data}"}}

    def kept() -> int:
        return len(list(Path(tempfile.gettempdir()).glob(f"hira-serve-*/*/{name}")))

    async with application(settings_of(tmp_path), policies={"*": Slow(0)}) as app, client_of(app) as client:
        assert (await client.post("/v1/chat/completions", json=asked(file, {"type": "file"}))).status_code == 400
        assert kept() == 0
        for _ in range(3):
            assert (await client.post("/v1/chat/completions", json=asked(file))).status_code == 200
        assert kept() == 3
        for _ in range(200):
            await client.post("/v1/chat/completions", json=asked())
        assert kept() == 1
    assert kept() == 0
