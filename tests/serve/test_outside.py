"""A client sees names instead of the server's paths, whole or in pieces, and nothing of the runs of other clients."""

import base64
import json
import logging
import random
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import Slow, connect

from hira.core.errors import EndpointError
from hira.core.events import Event, TurnEnded, TurnText
from hira.core.policy import Usage
from hira.journal import Journal
from hira.runtime.settings import Settings
from hira.server.keys import tag_of
from hira.server.outside import Deltas, Hidden, PathScrubber, without_folders
from hira.testing import ScriptedPolicy

QUESTION = "How high is the tower of Alta?"


async def all_that_is_told(client: httpx.AsyncClient, body: dict[str, Any]) -> str:
    """Return all that a client can read of a question: the answer, a streamed answer, and the run and its events as the
    page gets them."""
    reply = await client.post("/v1/chat/completions", json=body)
    assert reply.status_code == 200, reply.text
    streamed = await client.post("/v1/chat/completions", json={**body, "stream": True})
    run = reply.json()["hira"]["run_id"]
    pages = [await client.get(f"/api/runs/{run}{path}") for path in ("", "/events")]
    return "\n".join(one.text for one in (reply, streamed, *pages))


async def test_two_documents_of_one_name_are_told_without_the_folders_of_the_server(
    settings: Settings, tmp_path: Path
) -> None:
    docs = tuple(tmp_path / name / "docs" for name in ("here", "there"))
    for folder in docs:
        shutil.copytree(tmp_path / "docs", folder)
    settings = settings.with_values({"docs": docs}, "test")
    async with connect(settings) as client:
        body = {"model": "hira", "messages": [{"role": "user", "content": QUESTION}]}
        told = await all_that_is_told(client, body)
        run = json.loads(told.splitlines()[0])["hira"]["run_id"]
    async with connect(settings) as client:  # from the journal
        told += (await client.get(f"/api/runs/{run}")).text + (await client.get(f"/api/runs/{run}/events")).text
    assert "alta.txt" in told
    assert str(tmp_path) not in told


async def test_an_attached_file_is_told_by_its_name_and_cited_where_the_text_does(settings: Settings) -> None:
    data = base64.b64encode(b"The cook of the ferry is Bettine Aalto.\n").decode()
    file = {"filename": "session.txt", "file_data": f"data:text/plain;base64,{data}"}
    content = [{"type": "text", "text": "Who is the cook of the ferry?"}, {"type": "file", "file": file}]
    async with connect(settings) as client:
        told = await all_that_is_told(client, {"model": "hira", "messages": [{"role": "user", "content": content}]})
    assert "session.txt" in told
    assert "hira-serve-" not in told
    message = json.loads(told.splitlines()[0])["choices"][0]["message"]
    for one in message["annotations"]:
        cited = one["url_citation"]
        assert message["content"][cited["start_index"] : cited["end_index"]].startswith("[s")


@pytest.mark.parametrize(
    ("failure", "says"),
    [
        (KeyError("/srv/secret/place/key.pem"), "a fault in hira (KeyError)"),
        (EndpointError("no adapter at '/srv/secret/place/adapter'"), "no adapter at 'adapter'"),
    ],
    ids=["fault", "error"],
)
async def test_what_fails_is_told_without_paths_and_a_fault_stands_in_the_log(
    settings: Settings, caplog: pytest.LogCaptureFixture, failure: Exception, says: str
) -> None:
    body = {"model": "direct", "messages": [{"role": "user", "content": QUESTION}]}
    with caplog.at_level(logging.ERROR, "hira.server"):
        async with connect(settings, ScriptedPolicy([failure])) as client:
            reply = await client.post("/v1/chat/completions", json=body)
            (run,) = (await client.get("/api/runs")).json()["runs"]
            page = await client.get(f"/api/runs/{run['id']}")
    assert reply.status_code == 502
    assert says in reply.json()["error"]["message"]
    assert "/srv/secret" not in reply.text + page.text
    assert ("key.pem" in caplog.text) == isinstance(failure, KeyError)


async def test_the_runs_of_others_hide_none_of_ones_own(settings: Settings) -> None:
    keys = {name: {"key": f"key-of-{name}-1"} for name in ("ada", "bob")}
    journal = Journal(settings.journal or Path())
    for at in range(205):
        name = "ada" if at < 3 else "bob"
        run = f"20260101-{at:06}-{tag_of(f'key-of-{name}-1')}-000000"
        log = journal.begin(run, f"question of {name}", "hira", settings={}, files=(), versions={})
        log.end("answered", "", "")
    journal.close()
    async with connect(settings.with_values({"keys": keys}, "test")) as client:
        for name, many in (("ada", 3), ("bob", 200)):
            headers = {"authorization": f"Bearer key-of-{name}-1"}
            runs = (await client.get("/api/runs", headers=headers)).json()["runs"]
            assert [one["question"] for one in runs] == [f"question of {name}"] * many


def test_folders_of_the_server_are_taken_off_and_nothing_else(tmp_path: Path) -> None:
    docs, attached = tmp_path / "docs", tmp_path / "attached"
    docs.mkdir()
    outside = PathScrubber(Settings(docs=(docs,)), attached)
    assert outside({"a": [f"{attached}/tmp1/b.txt of {docs}/c/d.md", 1, None]}) == {"a": ["b.txt of c/d.md", 1, None]}
    assert outside(f"in {docs}, it stands") == "in docs, it stands"
    assert outside(f"x{docs}/y and http://example.org{docs}/y") == f"x{docs}/y and http://example.org{docs}/y"
    assert outside(f"at file://{docs}/a.txt, file://{docs} and file:///etc") == "at a.txt, docs and file:///etc"
    assert outside("and/or") == "and/or"


def test_an_error_tells_the_last_name_of_a_path() -> None:
    for text, told in (
        ("no such file: '/srv/papers/alta.txt'", "no such file: 'alta.txt'"),
        ("http://example.org/a/b is away", "http://example.org/a/b is away"),
        ("file:///srv/papers/alta.txt is away", "alta.txt is away"),
        ("3/4 of a/b, and/or", "3/4 of a/b, and/or"),
        (r"at C:\Users\me\x.txt", "at x.txt"),
    ):
        assert without_folders(text) == told


@pytest.mark.heavy
async def test_attached_files_go_with_their_run_and_those_of_a_refused_request_at_once(settings: Settings) -> None:
    def asked(*parts: dict[str, Any]) -> dict[str, Any]:
        content = [{"type": "text", "text": "Who is the cook of the ferry?"}, *parts]
        return {"model": "direct", "messages": [{"role": "user", "content": content}]}

    name = f"crew-{secrets.token_hex(6)}.txt"
    data = base64.b64encode(b"The cook of the ferry is Bettine Aalto.\n").decode()
    file = {"type": "file", "file": {"filename": name, "file_data": f"data:text/plain;base64,{data}"}}

    def kept() -> int:
        return len(list(Path(tempfile.gettempdir()).glob(f"hira-serve-*/*/{name}")))

    async with connect(settings, Slow(0)) as client:
        assert (await client.post("/v1/chat/completions", json=asked(file, {"type": "file"}))).status_code == 400
        assert kept() == 0
        for _ in range(3):
            assert (await client.post("/v1/chat/completions", json=asked(file))).status_code == 200
        assert kept() == 3
        for _ in range(200):
            await client.post("/v1/chat/completions", json=asked())
        assert kept() == 1
    assert kept() == 0


SECRET = "sk-of-the-server"


def tell_pieces(hidden: Hidden, pieces: list[str]) -> list[str]:
    whole = Deltas(hidden)
    events: list[Event] = [TurnText("1", one, reasoning=False) for one in pieces]
    events.append(TurnEnded("1", "direct", "", Usage()))
    return [one.text for event in events for one in whole(event) if isinstance(one, TurnText)]


def cut(text: str, seed: int) -> list[str]:
    """Cut the text into pieces of one to nine characters."""
    drawn = random.Random(seed)
    pieces = []
    while text:
        size = drawn.randint(1, 9)
        pieces, text = [*pieces, text[:size]], text[size:]
    return pieces


def test_however_a_text_is_cut_it_is_told_as_if_it_were_whole_without_folders_and_secrets(tmp_path: Path) -> None:
    docs, attached = tmp_path / "my papers", tmp_path / "attached"
    outside = PathScrubber(Settings(docs=(docs,)), attached)
    text = (
        f"In {docs}/a.txt, at file://{docs}/c d.md, in {attached}/tmp_x1/b.txt and {attached}/tmp2, of and/or 3/4, "
        f"{str(docs)[:-3]} and {docs}"
    )
    hidden = Hidden(["/srv/papers"], ["/tmp/attached"], frozenset({SECRET}))
    for seed in range(20):
        pieces = tell_pieces(outside.hidden, cut(text, seed))
        assert "".join(pieces) == text
        assert "".join(map(outside, pieces)) == outside(text)
        said = "".join(tell_pieces(hidden, cut(f"the key {SECRET} is sk-of-nobody, sk", seed)))
        assert said == "the key [secret] is sk-of-nobody, sk"


def test_only_what_may_be_hidden_is_held_back() -> None:
    hidden = Hidden(["/srv/papers"], ["/tmp/attached"], frozenset())
    assert tell_pieces(hidden, ["on ", "the ", "/s", "ea ", "/srv/pap", "ers/a"]) == [
        "on ",
        "the ",
        "/sea ",
        "/srv/papers/a",
    ]
    assert tell_pieces(hidden, ["to the end /srv"]) == ["to the end ", "/srv"]
    longest = ["/tmp/attached/", *["x" * 50] * 9, " over"]
    assert "".join(tell_pieces(hidden, longest)) == "".join(longest)
    assert tell_pieces(Hidden([], [], frozenset()), ["/srv", "/x"]) == ["/srv", "/x"]


def events(text: str) -> Iterator[dict[str, str]]:
    return (json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: "))


async def test_a_page_is_told_no_folder_of_the_server_live_or_later(settings: Settings, tmp_path: Path) -> None:
    docs = shutil.copytree(tmp_path / "docs", tmp_path / "my papers")
    settings = settings.with_values({"docs": (docs,)}, "test")
    policy = ScriptedPolicy([f"It stands in {docs}/alta.txt that it is 31 metres high."])  # it streams word by word
    told_of = []
    async with connect(settings, policy) as client:
        run = (await client.post("/api/runs", json={"question": "How high?", "workflow": "direct"})).json()["id"]
        told_of.append((await client.get(f"/api/runs/{run}/events")).text)
    async with connect(settings) as client:
        told_of.append((await client.get(f"/api/runs/{run}/events")).text)
    said = "".join(one["text"] for one in events(told_of[0]) if one["event"] == "TurnText")
    assert said.startswith("It stands in alta.txt that")
    assert all(str(tmp_path) not in text for text in told_of)
    live, later = ([one["event"] for one in events(text)] for text in told_of)
    assert [one for one in live if one != "TurnText"] == later, "pieces of text are shown live and not recorded"
