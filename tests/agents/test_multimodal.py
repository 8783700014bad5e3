"""The expert that has pictures, sounds and videos looked at, over real HTTP."""

import base64
import wave
from pathlib import Path

import pytest

from hira.agents.expert import Task
from hira.agents.experts import Multimodal
from hira.api import Hira
from hira.journal import Journal
from hira.runtime.factory import open_session
from hira.runtime.replay import replay
from hira.runtime.session import Session
from hira.runtime.settings import Settings
from hira.testing import Endpoint, calling

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "docs" / "trip").mkdir(parents=True)
    (tmp_path / "docs" / "notes.txt").write_text("We saw the tower.", encoding="utf-8")
    return tmp_path / "docs"


@pytest.fixture
def seen(docs: Path) -> Path:
    Image.new("RGB", (4, 3), "red").save(docs / "trip" / "tower.png")
    with wave.open(str(docs / "bell.wav"), "wb") as sound:
        sound.setparams((1, 2, 16000, 10, "NONE", ""))
        sound.writeframes(b"\0" * 20)
    (docs / "walk.mp4").write_bytes(b"a video")
    return docs


async def opened(docs: Path, endpoint: Endpoint, dialect: str = "native") -> Session:
    return await open_session(Settings(model="m", base_url=endpoint.base_url, docs=(docs,), dialect=dialect), ports=())  # type: ignore[arg-type]


async def test_a_picture_a_sound_and_a_video_are_looked_at_by_a_model_that_is_sent_them(seen: Path) -> None:
    replies = [
        calling("look", data="trip/tower.png", question="What colour?"),
        "Red.",
        calling("look", data="bell.wav", question="What rings?"),
        "A bell.",
        calling("look", data=str(seen / "walk.mp4"), question="Who walks?"),
        "A dog.",
        r"\boxed{A dog walks to the red tower [s1].}",
    ]
    with Endpoint(replies) as endpoint:
        made = await opened(seen, endpoint)
        async with made.open_context("r", "What was seen?", (), ()) as context:
            account = await Multimodal().work(Task("1", "What was seen?"), context)
        await made.aclose()
        endpoint.assert_done()
    assert account.conclusion == "A dog walks to the red tower [s1]."
    assert [source.kind for source in context.rollout.sources.read.values()] == ["media"] * 3
    worker, *looked = (endpoint.calls[at].body for at in (0, 1, 3, 5))
    listed = worker["tools"][0]["function"]["description"]
    assert all(name in listed for name in ("trip/tower.png", "bell.wav", "walk.mp4"))
    assert "notes.txt" not in listed
    parts = [body["messages"][0]["content"][1] for body in looked]
    assert [part["type"] for part in parts] == ["image_url", "input_audio", "video_url"]
    picture, sound, video = parts[0]["image_url"]["url"], parts[1]["input_audio"], parts[2]["video_url"]["url"]
    assert base64.b64decode(picture.removeprefix("data:image/png;base64,")) == (seen / "trip/tower.png").read_bytes()
    assert sound == {"data": base64.b64encode((seen / "bell.wav").read_bytes()).decode(), "format": "wav"}
    assert base64.b64decode(video.removeprefix("data:video/mp4;base64,")) == b"a video"


async def test_what_can_be_looked_at_is_named_in_the_prompt_where_calls_are_text(seen: Path) -> None:
    with Endpoint(["Nothing."]) as endpoint:
        made = await opened(seen, endpoint, "tags")
        async with made.open_context("r", "What was seen?", (), ()) as context:
            await Multimodal().work(Task("1", "What was seen?"), context)
        await made.aclose()
    assert "- trip/tower.png" in endpoint.calls[0].body["messages"][0]["content"]


async def test_a_path_that_is_not_there_is_told_to_the_model(seen: Path) -> None:
    with Endpoint([calling("look", data="/etc/passwd", question="What?"), "It is not to be seen."]) as endpoint:
        made = await opened(seen, endpoint)
        async with made.open_context("r", "What was seen?", (), ()) as context:
            await Multimodal().work(Task("1", "What was seen?"), context)
        await made.aclose()
    assert "there is no file '/etc/passwd' here" in endpoint.calls[1].body["messages"][-1]["content"]


async def test_the_expert_is_offered_only_where_there_is_something_to_be_seen(docs: Path, tmp_path: Path) -> None:
    picture = tmp_path / "attached.png"
    Image.new("RGB", (4, 3), "red").save(picture)
    with Endpoint() as endpoint:
        made = await opened(docs, endpoint)
        for files, there in (((), False), ((picture,), True)):
            async with made.open_context("r", "?", files, ()) as context:
                assert context.tools.has("media") is there
                assert context.tools.visible == tuple(map(str, files))
        await made.aclose()


async def test_what_was_looked_at_is_paid_for_in_a_resumed_and_a_replayed_run_too(seen: Path, tmp_path: Path) -> None:
    replies = [
        calling("subtask", task="What colour is the tower?"),
        calling("look", data="trip/tower.png", question="What colour?"),
        "Red.",
        "The tower is red [s1].",
        '{"reasoning": "", "conclusion": "The tower is red [s1]."}',
        "The tower is red [s1].",
    ]
    with Endpoint(replies, faults=lambda number: "401" if number == 6 else "") as endpoint:
        settings = Settings(
            model=endpoint.model, base_url=endpoint.base_url, docs=(seen,), journal=tmp_path / "j.sqlite",
            without=frozenset({"search", "code"}), max_calls=40,
        )  # fmt: skip
        async with Hira(settings=settings) as hira:
            first = hira.stream("What colour is the tower?")
            await first.work()
            resumed = await hira.resume(first.id)
            await resumed.work()
            looked = [one for one in endpoint.calls if "image_url" in str(one.body["messages"][-1]["content"])]
            assert len(looked) == 1, [one.body["messages"][-1] for one in endpoint.calls]
    journal = Journal(tmp_path / "j.sqlite")
    again = await replay(journal, first.id)
    journal.close()
    for answer in (resumed.answer, again.answer):
        assert answer.rollout.trajectories["1/look"].usage.calls == 1
        assert answer.rollout.usage == resumed.answer.rollout.usage
    assert again.same
