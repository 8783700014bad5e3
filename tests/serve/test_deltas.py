"""A path of the server stays hidden when a model writes it piece by piece, as it does in one piece."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from serving import Slow

from hira.core.events import Event, TurnEnded, TurnText
from hira.core.policy import Completion, Delta, Request, Usage, Watch
from hira.runtime.settings import Settings
from hira.server.app import application
from hira.server.outside import Deltas, Hidden, Outside

SECRET = "sk-of-the-server"


def told(hidden: Hidden, pieces: list[str]) -> list[str]:
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


@pytest.mark.parametrize("seed", range(40))
def test_however_a_text_is_cut_it_is_told_as_if_it_were_whole(tmp_path: Path, seed: int) -> None:
    docs, attached = tmp_path / "my papers", tmp_path / "attached"
    outside = Outside(Settings(docs=(docs,)), attached)
    text = (
        f"In {docs}/a.txt, at file://{docs}/c d.md, in {attached}/tmp_x1/b.txt and {attached}/tmp2, of and/or 3/4, "
        f"{str(docs)[:-3]} and {docs}"
    )
    pieces = told(outside.hidden, cut(text, seed))
    assert "".join(pieces) == text
    assert "".join(map(outside, pieces)) == outside(text)


@pytest.mark.parametrize("seed", range(10))
def test_a_secret_in_pieces_is_masked(seed: int) -> None:
    hidden = Hidden(["/srv/papers"], ["/tmp/attached"], frozenset({SECRET}))
    said = "".join(told(hidden, cut(f"the key {SECRET} is sk-of-nobody, sk", seed)))
    assert said == "the key [secret] is sk-of-nobody, sk"


def test_only_what_may_be_hidden_is_held_back() -> None:
    hidden = Hidden(["/srv/papers"], ["/tmp/attached"], frozenset())
    assert told(hidden, ["on ", "the ", "/s", "ea ", "/srv/pap", "ers/a"]) == ["on ", "the ", "/sea ", "/srv/papers/a"]
    assert told(hidden, ["to the end /srv"]) == ["to the end ", "/srv"]
    longest = ["/tmp/attached/", *["x" * 50] * 9, " over"]
    assert "".join(told(hidden, longest)) == "".join(longest)
    assert told(Hidden([], [], frozenset()), ["/srv", "/x"]) == ["/srv", "/x"]


class Writing(Slow):
    """A policy that streams its text piece by piece."""

    def __init__(self, pieces: list[str]) -> None:
        super().__init__(0)
        self.pieces = pieces

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        for one in self.pieces:
            if watch:
                watch(Delta(one))
        return Completion("".join(self.pieces), usage=self.usage)


def events(text: str) -> Iterator[dict[str, str]]:
    return (json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: "))


async def test_a_page_is_told_no_folder_of_the_server_live_or_later(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "alta.txt").write_text("The tower of Alta is 31 metres high.\n", encoding="utf-8")
    settings = Settings(model="offline", docs=(docs,), journal=tmp_path / "journal.sqlite")
    policy = Writing(cut(f"It stands in {docs}/alta.txt that it is 31 metres high.", 3))
    told_of = []
    async with (
        application(settings, policies={"*": policy}) as app,
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client,
    ):
        run = (await client.post("/api/runs", json={"question": "How high?", "workflow": "direct"})).json()["id"]
        told_of.append((await client.get(f"/api/runs/{run}/events")).text)
    async with (
        application(settings) as app,
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client,
    ):
        told_of.append((await client.get(f"/api/runs/{run}/events")).text)
    said = "".join(one["text"] for one in events(told_of[0]) if one["event"] == "TurnText")
    assert said.startswith("It stands in alta.txt that")
    assert all(str(tmp_path) not in text for text in told_of)
    live, later = ([one["event"] for one in events(text)] for text in told_of)
    assert [one for one in live if one != "TurnText"] == later, "pieces of text are shown live and not recorded"
