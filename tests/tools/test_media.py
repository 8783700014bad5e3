"""Pictures, pages of PDF files, sounds and moments of videos, as models are sent them."""

import base64
import io
import math
import struct
import subprocess
import sys
import wave
import zlib
from array import array
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from made_documents import pdf, video

from hira.core.errors import ToolError
from hira.core.messages import Media, user
from hira.tools.file_kinds import can_be_sent
from hira.tools.media import LONGEST_SIDE, RATE, TooLarge, media_reader

Image = pytest.importorskip("PIL.Image")


def picture(path: Path, size: tuple[int, int] = (40, 30), orientation: int = 0) -> Path:
    image = Image.new("RGB", size, "red")
    exif = image.getexif()
    if orientation:
        exif[0x0112] = orientation
    image.save(path, exif=exif)
    return path


def opened(url: str) -> "Image.Image":
    return Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))


def test_a_small_picture_goes_as_it_is_a_large_one_smaller_and_a_turned_one_upright(tmp_path: Path) -> None:
    path = picture(tmp_path / "a.png")
    media = media_reader([path])(str(path))
    assert base64.b64decode(media.url.partition(",")[2]) == path.read_bytes()
    assert user("see", media).wire["content"][1] == {"type": "image_url", "image_url": {"url": media.url}}
    picture(tmp_path / "large.jpg", (4000, 1000))
    picture(tmp_path / "turned.jpg", (40, 30), orientation=6)
    read = media_reader([tmp_path])
    assert opened(read(str(tmp_path / "large.jpg")).url).size == (LONGEST_SIDE, 512)
    assert opened(read("turned.jpg").url).size == (30, 40)


def test_only_what_was_given_and_is_a_picture_sound_or_video_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    picture(tmp_path / "secret.png")
    (tmp_path / "in" / "a.csv").write_text("1,2")
    (tmp_path / "in" / "b.png").write_bytes(b"not a picture")
    (tmp_path / "in" / "large.mp4").write_bytes(bytes(26 * 2**20))
    read = media_reader([tmp_path / "in"])
    for name in ("/etc/passwd", "../secret.png", "nothing.png", "a\0.png", "a" * 5000):
        with pytest.raises(ToolError, match=r"no file .* readable: in"):
            read(name)
    with pytest.raises(ToolError, match="pictures, sounds and videos"):
        read("a.csv")
    with pytest.raises(ToolError, match=r"b\.png cannot be read as a picture"):
        read("b.png")
    with pytest.raises(TooLarge, match="has 26 MB; at most 25 MB"):
        read("large.mp4")


def test_a_page_of_a_pdf_file_is_sent_as_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("pypdfium2")
    pdf(tmp_path / "scan.pdf", ["one", "two"])
    read = media_reader([tmp_path])
    assert opened(read("scan.pdf#page=2").url).height == LONGEST_SIDE
    for name in ("scan.pdf", "scan.pdf#page=3", "scan.pdf#page=0", "scan.pdf#page=x"):
        with pytest.raises(ToolError, match="has 2 pages: name one, such as"):
            read(name)
    (tmp_path / "broken.pdf").write_bytes(b"not a file")
    with pytest.raises(ToolError, match=r"broken\.pdf cannot be read as a PDF file"):
        read("broken.pdf")


def heard(media: Media) -> "array[int]":
    data = base64.b64decode(media.url.partition(",")[2])
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, RATE)
        samples = array("h", file.readframes(file.getnframes()))
    if sys.byteorder == "big":
        samples.byteswap()
    return samples


def hertz_of(samples: "array[int]") -> float:
    ups = sum(1 for a, b in pairwise(samples) if a < 0 <= b)
    return ups * RATE / len(samples)


def encoded(path: Path, codec: str, seconds: float = 1.0) -> Path:
    av: Any = pytest.importorskip("av")
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=44_100)
        total = int(44_100 * seconds)
        samples = array("h", (int(12_000 * math.sin(2 * math.pi * 440 * at / 44_100)) for at in range(total)))
        frame = av.AudioFrame(format="s16", layout="mono", samples=total)
        frame.sample_rate = 44_100
        frame.planes[0].update(samples.tobytes().ljust(frame.planes[0].buffer_size, b"\0"))
        resampler = av.AudioResampler(format=stream.format, layout=stream.layout, rate=44_100, frame_size=1024)
        for part in [*resampler.resample(frame), *resampler.resample(None)]:
            container.mux(stream.encode(part))
        container.mux(stream.encode())
    return path


def test_other_sounds_are_made_into_wav_by_the_library(tmp_path: Path) -> None:
    for name, codec in (("a.flac", "flac"), ("a.m4a", "aac")):
        path = encoded(tmp_path / name, codec)
        assert can_be_sent(name)
        media = media_reader([path])(name)
        assert (media.kind, media.format) == ("audio", "wav")
        assert abs(hertz_of(heard(media)) - 440) < 10
        (tmp_path / f"broken-{name}").write_bytes(b"nothing")
        with pytest.raises(ToolError, match=r"cannot be read as a sound|holds no sound"):
            media_reader([tmp_path])(f"broken-{name}")


def test_without_the_library_it_is_said_what_to_install(tmp_path: Path) -> None:
    """In a process where the library cannot be found."""
    for name, start in (("a.flac", b"fLaC"), ("a.mp3", b"ID3 as it is"), ("a.mp4", b"video")):
        (tmp_path / name).write_bytes(start)
    program = (
        "import importlib.util, sys\nfrom pathlib import Path\nsys.modules['av'] = None\n"
        "import hira.tools.file_kinds as kinds\nkinds.find_spec = lambda name: None\n"
        "from hira.tools.media import media_reader\nfrom hira.core.errors import ToolError\n"
        "read = media_reader([Path(sys.argv[1])])\n"
        "for name in ('a.flac', 'a.mp3', 'a.mp4#second=1'):\n"
        "    try:\n        print(read(name).format)\n    except ToolError as error:\n        print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    flac, mp3, video = done.stdout.splitlines()
    assert flac == "a.flac must be converted to wav first: pip install 'hira[media]'"
    assert mp3 == "mp3"
    assert "pip install 'hira[media]'" in video


def colour(media: Media) -> str:
    assert media.kind == "image"
    red, _, blue = opened(media.url).convert("RGB").getpixel((30, 20))
    return "red" if red > 180 > blue else "blue" if blue > 180 > red else "other"


def test_a_moment_of_a_video_is_a_picture(tmp_path: Path) -> None:
    video(tmp_path / "walk.mp4", ["red", "red", "blue", "blue"])
    read = media_reader([tmp_path])
    asked = ("second=0", "second=0.5", "second=2.5", "second=0:03", "share=1/4", "share=4/4")
    assert [colour(read(f"walk.mp4#{at}")) for at in asked] == ["red", "red", "blue", "blue", "red", "blue"]
    assert read("walk.mp4").kind == "video"
    with pytest.raises(ToolError, match=r"only 4\.0 seconds long"):
        read("walk.mp4#second=77")
    with pytest.raises(ToolError, match="in seconds, such as"):
        read("walk.mp4#second=soon")


def test_what_only_calls_itself_a_video_opens_nothing_else(tmp_path: Path) -> None:
    """A playlist would make the decoder read what it names."""
    pytest.importorskip("av")
    video(tmp_path / "real.mp4", ["red"])
    for text in ("#EXTM3U\n#EXTINF:1,\nreal.mp4\n#EXT-X-ENDLIST\n", "ffconcat version 1.0\nfile real.mp4\n"):
        (tmp_path / "list.mp4").write_text(text)
        with pytest.raises(ToolError, match=r"list\.mp4 cannot be read as a video"):
            media_reader([tmp_path])("list.mp4#second=0")


def test_a_picture_of_too_many_pixels_is_refused_before_it_is_decoded_and_a_jpeg_file_is_decoded_smaller(
    tmp_path: Path,
) -> None:
    image = pytest.importorskip("PIL.Image")
    many = tmp_path / "many.png"
    picture(many)
    data = bytearray(many.read_bytes())
    data[16:24] = struct.pack(">II", 20_000, 20_000)  # its header says so; no such pixels follow
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    many.write_bytes(data)
    image.new("L", (10_100, 10_100)).save(tmp_path / "large.jpg")
    read = media_reader([tmp_path])
    with pytest.raises(ToolError, match="has 20000 x 20000 pixels; at most 100 million"):
        read("many.png")
    assert opened(read("large.jpg").url).size == (2048, 2048)


def test_a_file_that_leads_out_of_its_folder_is_not_looked_at(tmp_path: Path) -> None:
    picture(tmp_path / "secret.png")
    (tmp_path / "in").mkdir()
    shown = tmp_path / "in" / "a.png"
    picture(shown)
    read = media_reader([tmp_path / "in"], {"a.png": shown})
    assert read("a.png").kind == "image"
    shown.unlink()
    shown.symlink_to(tmp_path / "secret.png")
    with pytest.raises(ToolError, match=r"a\.png leads out of the documents"):
        read("a.png")
