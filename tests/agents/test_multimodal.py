"""The expert that has pictures, sounds and videos looked at, over real HTTP."""

import base64
import wave
from pathlib import Path

import pytest

from hira.agents.expert import Task
from hira.agents.experts import Multimodal
from hira.casting import Crew, crew
from hira.settings import Settings
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


async def opened(docs: Path, endpoint: Endpoint, dialect: str = "native") -> Crew:
    return await crew(Settings(model="m", base_url=endpoint.base_url, docs=(docs,), dialect=dialect), ports=())  # type: ignore[arg-type]


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
        async with made.team("r", "What was seen?", (), ()) as team:
            account = await Multimodal().work(Task("1", "What was seen?"), team)
        await made.aclose()
        endpoint.assert_done()
    assert account.conclusion == "A dog walks to the red tower [s1]."
    assert [source.kind for source in team.rollout.sources.read.values()] == ["media"] * 3
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
        async with made.team("r", "What was seen?", (), ()) as team:
            await Multimodal().work(Task("1", "What was seen?"), team)
        await made.aclose()
    assert "- trip/tower.png" in endpoint.calls[0].body["messages"][0]["content"]


async def test_a_path_that_is_not_there_is_told_to_the_model(seen: Path) -> None:
    with Endpoint([calling("look", data="/etc/passwd", question="What?"), "It is not to be seen."]) as endpoint:
        made = await opened(seen, endpoint)
        async with made.team("r", "What was seen?", (), ()) as team:
            await Multimodal().work(Task("1", "What was seen?"), team)
        await made.aclose()
    assert "there is no file '/etc/passwd' here" in endpoint.calls[1].body["messages"][-1]["content"]


async def test_the_expert_is_offered_only_where_there_is_something_to_be_seen(docs: Path, tmp_path: Path) -> None:
    picture = tmp_path / "attached.png"
    Image.new("RGB", (4, 3), "red").save(picture)
    with Endpoint() as endpoint:
        made = await opened(docs, endpoint)
        for files, there in (((), False), ((picture,), True)):
            async with made.team("r", "?", files, ()) as team:
                assert team.tools.has("media") is there
                assert team.tools.visible == tuple(map(str, files))
        await made.aclose()
