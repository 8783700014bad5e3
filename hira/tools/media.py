"""Pictures, sounds, videos and pages of PDF files in the form that endpoints accept: data URIs of bounded size.

Pictures and pages become upright pictures of at most 2048 pixels, sounds wav of 16 kHz; PyAV, an extra, reads sounds
and videos. A playlist or a script in the guise of a video could make the decoder open other files or addresses: such
formats are not among the `FORMATS`.

A file is opened once, without links, and decoded in the child that reads files, one for all clients of this process:
however many pictures they look at, one is in memory, and no more of it than `LARGEST_PICTURE` pixels.
"""

import base64
import io
import os
import re
import sys
import wave
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from hira.core.errors import ToolError
from hira.core.messages import Media
from hira.tools.file_kinds import MP3, PDF, WAV, decodes, kind_of, renders_pages
from hira.tools.opening import OpenFile, ReadingChild, open_regular

LARGEST = 25 * 2**20
"""The most bytes of a video, and of a wav or mp3 file that is sent unchanged."""
LONGEST_SIDE = 2048
MOST_ZOOM = 4.0
"""The most pixels per point of a PDF page: 288 dots per inch."""
LARGEST_UNTOUCHED = 5 * 2**20
"""The most bytes of a picture that is sent unchanged if Pillow is not installed."""
RATE = 16_000
MINUTES = 13
"""The most minutes of a sound: 25 MiB of 16-bit samples."""
FRAME_SIDE = 1024
LARGEST_PICTURE = 100_000_000
"""The most pixels of a picture that are decoded; a JPEG file is decoded at a fraction of its size."""
LARGEST_FRAME = 50_000_000
"""The most pixels of a frame that is decoded."""
FORMATS = "aac,ac3,aiff,amr,asf,avi,caf,flac,flv,gif,matroska,webm,mov,mp4,m4a,3gp,3g2,mj2,mp3,mpeg,mpegts,ogg,w64,wav"
EXTRA = "pip install 'hira[media]'"

_PASSED = 600
"""The most frames to decode between the nearest entry point of the file and the requested moment."""
_ORIENTATION = 0x0112
_PART = 1_000_000
_PLAIN = {"image/png", "image/jpeg", "image/webp", "image/gif"}
_SHARE = re.compile(r"(\d{1,3})/(\d{1,3})")
_TIME = re.compile(r"(?:(\d+):)?(\d+(?:\.\d+)?)")
_PLACE = re.compile(r"#(page|second|share)=(.*)$", re.DOTALL)


class TooLarge(ToolError):
    """A video is too large to be sent whole."""


def media_reader(readable: Sequence[Path], named: Mapping[str, Path] = MappingProxyType({})) -> Callable[[str], Media]:
    """Return a reader of files among or below `readable`, and no others. It accepts a path or a file's name alone;
    `named` are the shown names of files.

    `paper.pdf#page=3` is a page of a PDF file. `walk.mp4#second=75` is a moment of a video as a picture, and
    `walk.mp4#share=3/8` the middle of the third of eight parts of it.
    """
    allowed = [path.resolve() for path in readable]

    def read(name: str) -> Media:
        plain, place, value = (*_PLACE.split(name.strip(), maxsplit=1), "", "")[:3]
        if plain not in named:
            path = _find_file(plain, allowed)
        else:
            path = named[plain].resolve()
            if not any(path.is_relative_to(root) for root in allowed):
                raise ToolError(f"{named[plain].name} leads out of the documents now; it is not read")
        with open_regular(path, allowed, limit=sys.maxsize) as file:
            return _read_media(file, kind_of(path.name), place, value)

    return read


def _read_media(file: OpenFile, kind: str, place: str, value: str) -> Media:
    path = file.path
    if kind.startswith("image/"):
        return Media("image", read_picture(file, kind))
    if kind.startswith("audio/"):
        if kind in WAV | MP3 and file.size <= LARGEST:
            return Media("audio", encode_uri(file.rewind().read(LARGEST), kind), "mp3" if kind in MP3 else "wav")
        check_decoder(f"{path.name} must be converted to wav first: {EXTRA}")
        return Media("audio", _decode(send_sound, file), "wav")
    if kind.startswith("video/"):
        if place not in {"", "page"}:
            check_decoder(f"moments of {path.name} cannot be shown as pictures: {EXTRA}")
            return Media("image", _decode(send_moment, file, value))
        if file.size > LARGEST:
            raise TooLarge(f"{path.name} has {file.size / 2**20:.0f} MB; at most {LARGEST // 2**20} MB can be sent")
        return Media("video", encode_uri(file.rewind().read(LARGEST), kind))
    if kind == PDF:
        if not renders_pages():
            raise ToolError(f"pages of {path.name} cannot be looked at: pip install 'hira[pdf]'")
        return Media("image", _decode(send_page, file, value))
    raise ToolError(f"{path.name} is {kind or 'of an unknown kind'}; pictures, sounds and videos can be sent")


def _decode(function: Callable[..., Iterator[str]], file: OpenFile, *more: str) -> str:
    with ReadingChild() as child:
        return "".join(child.collect(function, file, *more))


def _find_file(name: str, allowed: Sequence[Path]) -> Path:
    """Return the file that a name means: a path, a path below a folder (also as programs name files of other
    sessions, `../1/a.png`), or the name of an allowed file alone."""
    below = [root / relative for root in allowed for relative in (name, name.removeprefix("../"))]
    alone = [root for root in allowed if root.name == Path(name).name]
    for path in (Path(name), *below, *alone):
        with suppress(OSError, ValueError):  # a name that no file can have
            real = path.resolve()
            if real.is_file() and any(real.is_relative_to(root) for root in allowed):
                return real
    known = ", ".join(root.name for root in allowed) or "none"
    raise ToolError(f"there is no file {name!r} here; readable: {known}")


def read_picture(file: OpenFile, kind: str) -> str:
    """Return the picture, unchanged if it is small and upright, otherwise as Pillow scales and rotates it in the child;
    without Pillow, unchanged if it is small."""
    if find_spec("PIL"):
        return _decode(send_picture, file) or encode_uri(file.rewind().read(), kind)
    if kind in _PLAIN and file.size <= LARGEST_UNTOUCHED:
        return encode_uri(file.rewind().read(LARGEST_UNTOUCHED), kind)
    raise ToolError(f"{file.path.name} must be resized first: pip install 'hira[images]'")


def send_picture(handle: int, path: Path) -> Iterator[str]:
    """Yield the data URI of a picture that has to be scaled, rotated or converted. Runs in the child."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = None  # counted here
    try:
        with os.fdopen(handle, "rb", closefd=False) as data, Image.open(data) as opened:
            size = opened.size
            opened.draft("RGB", (LONGEST_SIDE, LONGEST_SIDE))
            if opened.width * opened.height > LARGEST_PICTURE:
                most = f"at most {LARGEST_PICTURE // 1_000_000} million can be decoded; save it smaller"
                raise ToolError(f"{path.name} has {size[0]} x {size[1]} pixels; {most}")
            turned = opened.getexif().get(_ORIENTATION, 1) != 1  # decodes some pictures
            if kind_of(path.name) in _PLAIN and max(size) <= LONGEST_SIDE and not turned:
                return
            opened.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
            yield from _in_parts(encode_picture(ImageOps.exif_transpose(opened)))
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise ToolError(f"{path.name} cannot be read as a picture: {error}") from None


def send_page(handle: int, path: Path, number: str) -> Iterator[str]:
    """Yield the data URI of one page of a PDF file as a picture. Runs in the child."""
    pypdfium2: Any = import_module("pypdfium2")  # no types to import: it is an extra
    with os.fdopen(handle, "rb", closefd=False) as data:
        try:
            document = pypdfium2.PdfDocument(data)
        except (pypdfium2.PdfiumError, OSError) as error:
            raise ToolError(f"{path.name} cannot be read as a PDF file: {error}") from None
        try:
            wanted = int(number) if number.strip().isdecimal() else 1 if not number and len(document) == 1 else 0
            if not 1 <= wanted <= len(document):
                raise ToolError(f"{path.name} has {len(document)} pages: name one, such as {path.name}#page=1")
            sheet = document[wanted - 1]
            longest = max(*sheet.get_size(), 1.0)
            yield from _in_parts(encode_picture(sheet.render(scale=min(LONGEST_SIDE / longest, MOST_ZOOM)).to_pil()))
        finally:
            document.close()


def _in_parts(text: str) -> Iterator[str]:
    """Yield a long text in parts, so that no part holds up the event loop."""
    for start in range(0, len(text), _PART):
        yield text[start : start + _PART]


def encode_picture(image: Any) -> str:
    """Encode a picture of Pillow's as a data URI: PNG if it may be transparent, otherwise JPEG."""
    clear = image.mode in {"RGBA", "LA", "P"}
    form: Literal["PNG", "JPEG"] = "PNG" if clear else "JPEG"
    out = io.BytesIO()
    image.convert("RGBA" if clear else "RGB").save(out, form, quality=85)
    return encode_uri(out.getvalue(), f"image/{form.lower()}")


def encode_uri(data: bytes, kind: str) -> str:
    """Encode bytes of a media type as a data URI."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


@contextmanager
def open_media(handle: int, path: Path, what: str) -> Iterator[Any]:
    """Open the file with PyAV. Faults of the file raise `ToolError`, also later, while it is read."""
    av: Any = import_module("av")  # an extra: it may have no types here
    try:
        with os.fdopen(handle, "rb", closefd=False) as data:
            options = {"format_whitelist": FORMATS, "protocol_whitelist": "file"}
            with av.open(data, options=options) as container:
                yield container
    except (av.FFmpegError, OSError, ValueError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise ToolError(f"{path.name} cannot be read as a {what}: {reason}") from None


def check_decoder(otherwise: str) -> None:
    """Raise `ToolError` with that text if PyAV is not installed."""
    if not decodes():
        raise ToolError(otherwise)


def send_sound(handle: int, path: Path) -> Iterator[str]:
    """Yield the data URI of the sound as a wav file of 16 kHz and one channel. Runs in the child.

    Raises `ToolError` if it is broken or longer than 13 minutes.
    """
    samples = array("h")
    with open_media(handle, path, "sound") as container:
        resampler: Any = import_module("av").AudioResampler(format="s16", layout="mono", rate=RATE)
        for frame in container.decode(audio=0) if container.streams.audio else ():
            for part in resampler.resample(frame):
                samples.frombytes(bytes(part.planes[0])[: 2 * part.samples])
            if len(samples) > MINUTES * 60 * RATE:
                break
    if len(samples) > MINUTES * 60 * RATE:
        raise ToolError(f"{path.name} is longer than {MINUTES} minutes; cut it into parts first")
    if not samples:
        raise ToolError(f"{path.name} holds no sound")
    if sys.byteorder == "big":
        samples.byteswap()
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, 2, RATE, len(samples), "NONE", ""))
        file.writeframes(samples.tobytes())
    yield from _in_parts(encode_uri(out.getvalue(), "audio/wav"))


def send_moment(handle: int, path: Path, moment: str) -> Iterator[str]:
    """Yield a moment of a video (`75`, `1:30`, or `3/8`: mid-share) as the data URI of a picture. Runs in the child."""
    with open_media(handle, path, "video") as container:
        if not container.streams.video:
            raise ToolError(f"{path.name} holds no pictures")
        stream = container.streams.video[0]
        size = stream.codec_context
        if size.width * size.height > LARGEST_FRAME:
            raise ToolError(f"{path.name} is too large to read: {size.width} x {size.height} pixels")
        # 0 if the file does not state it
        length = float((stream.duration or 0) * (stream.time_base or 0)) or (container.duration or 0) / 1_000_000
        image = _find_frame(container, stream, _read_second(path, moment, length)).to_image()
        image.thumbnail((FRAME_SIDE, FRAME_SIDE))
        yield from _in_parts(encode_picture(image))


def _read_second(path: Path, moment: str, length: float) -> float:
    moment = moment.strip()
    if (share := _SHARE.fullmatch(moment)) and int(share[2]):
        return length * (min(int(share[1]), int(share[2])) - 0.5) / int(share[2])
    if not (time := _TIME.fullmatch(moment)):
        raise ToolError(f"name a moment of {path.name} in seconds, such as {path.name}#second=12")
    second = int(time[1] or 0) * 60 + float(time[2])
    if length and second > length:
        raise ToolError(f"{path.name} is only {length:.1f} seconds long")
    return second


def _find_frame(container: Any, stream: Any, second: float) -> Any:
    """Return the first frame shown at that second or later, otherwise the last frame."""
    if second > 0 and stream.time_base:
        start = stream.start_time or 0
        container.seek(start + int(second / stream.time_base), stream=stream, backward=True)
    chosen = None
    for passed, frame in enumerate(container.decode(stream)):
        chosen = frame
        if frame.time is None or frame.time >= second or passed >= _PASSED:
            break
    if chosen is None:
        raise ToolError("no picture of the video can be read there")
    return chosen
