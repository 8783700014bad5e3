"""The expert that has pictures, sounds and videos looked at, over real HTTP, also by endpoints that do not take
them."""

import base64
import wave
from pathlib import Path
from typing import Any

import pytest

from hira.agents.expert import Account, Task
from hira.agents.experts import Multimodal
from hira.agents.run_context import RunContext
from hira.api import Hira
from hira.core.errors import UsageError
from hira.core.events import Event, Notice
from hira.journal import Journal
from hira.policies.chat import no_media
from hira.runtime.factory import open_session
from hira.runtime.replay import replay
from hira.runtime.settings import Settings
from hira.testing import Endpoint, calling
from hira.testing.faults import FAULTS, error, refuses
from tests.tools.made_documents import video

Image = pytest.importorskip("PIL.Image")
NO_VIDEO = "Invalid value: 'video_url'. Supported values are: 'text', 'image_url', 'input_audio', and 'file'."


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


async def worked(
    docs: Path, endpoint: Endpoint, notices: list[str] | None = None, dialect: Any = None
) -> tuple[Account, RunContext]:
    def told(event: Event) -> None:
        if isinstance(event, Notice) and notices is not None:
            notices.append(event.text)

    made = await open_session(Settings(model="m", base_url=endpoint.base_url, docs=(docs,), dialect=dialect), ports=())
    async with made.open_context("r", "What was seen?", (), [told]) as context:
        account = await Multimodal().work(Task("1", "What was seen?"), context)
    await made.aclose()
    return account, context


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
        account, context = await worked(seen, endpoint)
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
        await worked(seen, endpoint, dialect="tags")
    assert "- trip/tower.png" in endpoint.calls[0].body["messages"][0]["content"]


async def test_a_path_that_is_not_there_is_told_to_the_model(seen: Path) -> None:
    with Endpoint([calling("look", data="/etc/passwd", question="What?"), "It is not to be seen."]) as endpoint:
        await worked(seen, endpoint)
    assert "there is no file '/etc/passwd' here" in endpoint.calls[1].body["messages"][-1]["content"]


async def test_the_expert_is_offered_only_where_there_is_something_to_be_seen(docs: Path, tmp_path: Path) -> None:
    picture = tmp_path / "attached.png"
    Image.new("RGB", (4, 3), "red").save(picture)
    with Endpoint() as endpoint:
        made = await open_session(Settings(model="m", base_url=endpoint.base_url, docs=(docs,)), ports=())
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
    with Endpoint(replies, faults=lambda number: "401" if number == 5 else "") as endpoint:
        settings = Settings(
            model=endpoint.model, base_url=endpoint.base_url, docs=(seen,), journal=tmp_path / "j.sqlite",
            without=frozenset({"search", "code"}), max_calls=40, verify="lexical",
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
    roles = {"planner": "planner", "1/multimodal": "multimodal", "1/look": "look"}
    for answer in (resumed.answer, again.answer):
        assert {name: path.role for name, path in answer.rollout.trajectories.items()} == roles
        assert answer.rollout.trajectories["1/look"].usage.calls == 1
        assert answer.rollout.usage == resumed.answer.rollout.usage
    assert again.same


async def test_a_model_without_eyes_is_said_to_be_one_and_is_not_sent_a_picture_again(seen: Path) -> None:
    look = calling("look", data="trip/tower.png", question="What colour?")
    replies = [look, "It cannot be told.", look, "It cannot be told."]
    notices: list[str] = []
    with Endpoint(replies, faults=lambda number: "400-no-images" if number == 2 else "") as endpoint:
        for _ in range(2):  # two runs of one process
            account, context = await worked(seen, endpoint, notices)
            assert account.conclusion == "It cannot be told."
            assert not context.rollout.sources.read
        sent = [str(one.body) for one in endpoint.calls]
    assert ["'type': 'image_url'" in body for body in sent] == [False, True, False, False, False]
    assert "look failed: the model takes no pictures" in sent[2]
    assert "look failed: the model takes no pictures" in sent[4]
    assert [note for note in notices if "use a model that takes pictures for the role look" in note]


async def test_a_video_that_is_refused_is_shown_as_pictures_out_of_it(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    video(docs / "walk.mp4", ["red"] * 2 + ["blue"] * 2)
    monkeypatch.setitem(FAULTS, "no-video", refuses(400, error(NO_VIDEO)))  # type: ignore[arg-type]
    look = calling("look", data="walk.mp4", question="What happens?")
    again = calling("look", data="walk.mp4", question="And then?")
    replies = [look, "Red, then blue.", again, "Nothing.", r"\boxed{It turns blue [s1].}"]
    notices: list[str] = []
    with Endpoint(replies, faults=lambda number: "no-video" if number == 2 else "") as endpoint:
        account, context = await worked(docs, endpoint, notices)
        asked = [one.body["messages"][0]["content"] for one in endpoint.calls]
    assert account.conclusion == "It turns blue [s1]."
    assert asked[1][1]["type"] == "video_url"
    for parts in (asked[2], asked[4]):  # the second time, the video is not sent first
        assert [part["type"] for part in parts] == ["text"] + ["image_url"] * 8
        assert "8 pictures" in parts[0]["text"]
    assert "walk.mp4#second=12" in str(endpoint.calls[0].body)
    assert any("8 pictures of a video, without its sound" in note for note in notices)
    assert [source.location for source in context.rollout.sources.read.values()] == ["walk.mp4"]


@pytest.mark.parametrize(
    ("kind", "status", "said"),
    [
        ("image", 400, "Invalid content type. image_url is only supported by certain models."),
        (
            "image",
            422,
            "Failed to deserialize the JSON body: messages[0]: unknown variant `image_url`, expected `text`",
        ),
        (
            "image",
            500,
            "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        ),
        ("image", 400, "At most 0 image(s) may be provided in one prompt."),
        ("image", 400, "tiny is not a multimodal model"),
        ("image", 404, "No endpoints found that support image input"),
        ("image", 500, "this model is missing data required for image input"),
        ("audio", 500, "audio input is not supported - hint: you may need to provide the mmproj"),
        ("audio", 400, "This model does not support audio inputs"),
        ("video", 400, NO_VIDEO),
        ("video", 500, "unsupported content[].type"),
    ],
)
def test_what_servers_say_of_what_they_never_take(kind: Any, status: int, said: str) -> None:
    assert no_media(status, said, [kind]) == kind
    assert not no_media(status, said, [])


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "You uploaded an unsupported image. Use one of the following formats: ['png', 'jpeg', 'gif', 'webp']."),
        (400, "Failed to download the image at image_url"),
        (400, "Invalid image data: cannot identify image file"),
        (400, "image_url: invalid base64"),
        (413, "the image is too large"),
        (429, "too many requests with images are not supported on this tier"),
        (400, "temperature is not supported with this model"),
        (503, "vision models are not available right now"),
    ],
)
def test_what_is_said_of_one_picture_is_not_taken_for_all(status: int, said: str) -> None:
    assert not no_media(status, said, ["image"])


@pytest.mark.parametrize("workflow", ["hira", "rag"])
async def test_where_nobody_sees_a_folder_of_pictures_is_refused_before_any_work(tmp_path: Path, workflow: str) -> None:
    Image.new("RGB", (4, 3), "red").save(tmp_path / "tower.png")
    model = "offline" if workflow == "hira" else "m"
    settings = Settings(model=model, base_url="http://127.0.0.1:9/v1", docs=(tmp_path,), workflow=workflow)
    with pytest.raises(UsageError, match="only pictures, sounds or videos") as error:
        await open_session(settings, ports=())
    assert "[roles.look]" in error.value.fix
