"""What an endpoint does not take: said clearly, learned once, and a video becomes pictures."""

from pathlib import Path
from typing import Any

import pytest

from hira.agents.expert import Account, Task
from hira.agents.experts import Multimodal
from hira.agents.run_context import RunContext
from hira.core.errors import UsageError
from hira.core.events import Event, Notice
from hira.core.messages import Media, user
from hira.core.policy import Request
from hira.policies.accepted import no_media
from hira.runtime.factory import open_session
from hira.runtime.settings import Settings
from hira.testing import Endpoint, calling
from hira.testing.faults import FAULTS, error, refuses

Image = pytest.importorskip("PIL.Image")
NO_VIDEO = "Invalid value: 'video_url'. Supported values are: 'text', 'image_url', 'input_audio', and 'file'."


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "notes.txt").write_text("We saw the tower.", encoding="utf-8")
    Image.new("RGB", (4, 3), "red").save(tmp_path / "tower.png")
    return tmp_path


async def worked(docs: Path, endpoint: Endpoint, notices: list[str] | None = None) -> tuple[Account, RunContext]:
    def told(event: Event) -> None:
        if isinstance(event, Notice) and notices is not None:
            notices.append(event.text)

    made = await open_session(Settings(model="m", base_url=endpoint.base_url, docs=(docs,)), ports=())
    async with made.open_context("r", "What was seen?", (), [told]) as context:
        account = await Multimodal().work(Task("1", "What was seen?"), context)
    await made.aclose()
    return account, context


async def test_a_model_without_eyes_is_said_to_be_one_and_is_not_sent_a_picture_again(docs: Path) -> None:
    look = calling("look", data="tower.png", question="What colour?")
    replies = [look, "It cannot be told.", look, "It cannot be told."]
    notices: list[str] = []
    with Endpoint(replies, faults=lambda number: "400-no-images" if number == 2 else "") as endpoint:
        for _ in range(2):  # two runs of one process
            account, context = await worked(docs, endpoint, notices)
            assert account.conclusion == "It cannot be told."
            assert not context.rollout.sources.read
        sent = [str(one.body) for one in endpoint.calls]
    assert ["'type': 'image_url'" in body for body in sent] == [False, True, False, False, False]
    assert "look failed: the model takes no pictures" in sent[2]
    assert "look failed: the model takes no pictures" in sent[4]
    assert [note for note in notices if "use a model that takes pictures for the role look" in note]


def video(path: Path, colours: list[str], *, rate: int = 4) -> Path:
    av: Any = pytest.importorskip("av")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=rate)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for colour in colours:
            for _ in range(rate):
                frame = av.VideoFrame.from_image(Image.new("RGB", (64, 48), colour))
                container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


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
    assert no_media(status, said, Request((user("See.", Media(kind, "data:,")),))) == kind
    assert not no_media(status, said, Request((user("See."),)))


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
    assert not no_media(status, said, Request((user("See.", Media("image", "data:,")),)))


@pytest.mark.parametrize("workflow", ["hira", "rag"])
async def test_where_nobody_sees_a_folder_of_pictures_is_refused_before_any_work(tmp_path: Path, workflow: str) -> None:
    Image.new("RGB", (4, 3), "red").save(tmp_path / "tower.png")
    model = "offline" if workflow == "hira" else "m"
    settings = Settings(model=model, base_url="http://127.0.0.1:9/v1", docs=(tmp_path,), workflow=workflow)
    with pytest.raises(UsageError, match="only pictures, sounds or videos") as error:
        await open_session(settings, ports=())
    assert "[roles.look]" in error.value.fix
