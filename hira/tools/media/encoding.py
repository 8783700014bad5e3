"""Pictures, pages of PDF files, sounds and moments of videos in the forms that models accept.

Pictures and pages become upright data URIs of at most 2048 pixels, sounds wav of 16 kHz; PyAV, an extra, reads sounds
and videos. A playlist or a script in the guise of a video could make the decoder open other files or addresses: such
formats are not among the `FORMATS`.
"""

import base64
import io
import re
import sys
import threading
import wave
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from hira.core.errors import ToolError

LONGEST_SIDE = 2048
MOST_ZOOM = 4.0
"""The most pixels per point of a PDF page: 288 dots per inch."""
LARGEST_UNTOUCHED = 5 * 2**20
"""The most bytes of a picture that is sent unchanged if Pillow is not installed."""

_PLAIN = {"image/png", "image/jpeg", "image/webp", "image/gif"}


def renders_pages() -> bool:
    """Return whether the packages that render pages of PDF files are installed."""
    return find_spec("pypdfium2") is not None and find_spec("PIL") is not None


def picture(path: Path, kind: str) -> str:
    """Return the picture as Pillow scales and rotates it; without Pillow, unchanged if it is small."""
    data = path.read_bytes()
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError:
        if kind in _PLAIN and len(data) <= LARGEST_UNTOUCHED:
            return encode_uri(data, kind)
        raise ToolError(f"{path.name} must be resized first: pip install 'hira[images]'") from None
    try:
        with Image.open(io.BytesIO(data)) as opened:
            image: Any = ImageOps.exif_transpose(opened)
            if kind in _PLAIN and max(image.size) <= LONGEST_SIDE and image.size == opened.size:
                return encode_uri(data, kind)
            image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
            return encode_picture(image)
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ToolError(f"{path.name} cannot be read as a picture: {error}") from None


def page(path: Path, number: str) -> str:
    """Return one page of a PDF file as a picture."""
    if not renders_pages():
        raise ToolError(f"pages of {path.name} cannot be looked at: pip install 'hira[pdf]'")
    pypdfium2: Any = import_module("pypdfium2")  # no types to import: it is an extra
    with _one_at_a_time():
        try:
            document = pypdfium2.PdfDocument(path)
        except (pypdfium2.PdfiumError, OSError) as error:
            raise ToolError(f"{path.name} cannot be read as a PDF file: {error}") from None
        try:
            wanted = int(number) if number.strip().isdecimal() else 1 if not number and len(document) == 1 else 0
            if not 1 <= wanted <= len(document):
                raise ToolError(f"{path.name} has {len(document)} pages: name one, such as {path.name}#page=1")
            sheet = document[wanted - 1]
            longest = max(*sheet.get_size(), 1.0)
            return encode_picture(sheet.render(scale=min(LONGEST_SIDE / longest, MOST_ZOOM)).to_pil())
        finally:
            document.close()


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


@cache
def _one_at_a_time() -> threading.Lock:
    """Return the one lock of the process, because PDFium works in one thread at a time."""
    return threading.Lock()


FORMATS = "aac,ac3,aiff,amr,asf,avi,caf,flac,flv,gif,matroska,webm,mov,mp4,m4a,3gp,3g2,mj2,mp3,mpeg,mpegts,ogg,w64,wav"
EXTRA = "pip install 'hira[media]'"


def decodes() -> bool:
    """Return whether PyAV is installed."""
    return find_spec("av") is not None


@contextmanager
def open_media(path: Path, what: str) -> Iterator[Any]:
    """Open the file with PyAV. Faults of the file raise `ToolError`, also later, while it is read."""
    av: Any = import_module("av")  # an extra: it may have no types here
    try:
        with av.open(str(path), options={"format_whitelist": FORMATS, "protocol_whitelist": "file"}) as container:
            yield container
    except (av.FFmpegError, OSError, ValueError, EOFError) as error:
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise ToolError(f"{path.name} cannot be read as a {what}: {said}") from None


RATE = 16_000
MINUTES = 13
"""The most minutes of a sound: 25 MiB of 16-bit samples."""
_MOST = MINUTES * 60 * RATE


def convert_sound(path: Path) -> bytes:
    """Convert the sound to a wav file of 16 kHz and one channel.

    Raises `ToolError` if it is broken or longer than 13 minutes, or if PyAV is not installed.
    """
    if not decodes():
        raise ToolError(f"{path.name} must be converted to wav first: {EXTRA}")
    samples = _decode_sound(path)
    if len(samples) > _MOST:
        raise ToolError(f"{path.name} is longer than {MINUTES} minutes; cut it into parts first")
    if not samples:
        raise ToolError(f"{path.name} holds no sound")
    if sys.byteorder == "big":
        samples.byteswap()
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, 2, RATE, len(samples), "NONE", ""))
        file.writeframes(samples.tobytes())
    return out.getvalue()


def _decode_sound(path: Path) -> "array[int]":
    samples = array("h")
    with open_media(path, "sound") as container:
        if not container.streams.audio:
            raise ToolError(f"{path.name} holds no sound")
        resampler: Any = import_module("av").AudioResampler(format="s16", layout="mono", rate=RATE)
        for frame in container.decode(audio=0):
            for part in resampler.resample(frame):
                samples.frombytes(bytes(part.planes[0])[: 2 * part.samples])
            if len(samples) > _MOST:
                break
    return samples


FRAME_SIDE = 1024
LARGEST_FRAME = 50_000_000
"""The most pixels of a frame that is decoded."""
_PASSED = 600
"""The most frames to decode between the nearest entry point of the file and the requested moment."""
_SHARE = re.compile(r"(\d{1,3})/(\d{1,3})")
_TIME = re.compile(r"(?:(\d+):)?(\d+(?:\.\d+)?)")


def moment(path: Path, at: str) -> str:
    """Return a picture of a moment of a video: in seconds, as `1:30`, or as the middle of a share such as `3/8`."""
    if not decodes():
        raise ToolError(f"moments of {path.name} cannot be shown as pictures: {EXTRA}")
    with open_media(path, "video") as container:
        if not container.streams.video:
            raise ToolError(f"{path.name} holds no pictures")
        stream = container.streams.video[0]
        size = stream.codec_context
        if size.width * size.height > LARGEST_FRAME:
            raise ToolError(f"{path.name} is too large to read: {size.width} x {size.height} pixels")
        # 0 if the file does not state it
        length = float((stream.duration or 0) * (stream.time_base or 0)) or (container.duration or 0) / 1_000_000
        image = _find_frame(container, stream, _read_second(path, at, length)).to_image()
        image.thumbnail((FRAME_SIDE, FRAME_SIDE))
        return encode_picture(image)


def _read_second(path: Path, at: str, length: float) -> float:
    at = at.strip()
    if (share := _SHARE.fullmatch(at)) and int(share[2]):
        return length * (min(int(share[1]), int(share[2])) - 0.5) / int(share[2])
    if not (time := _TIME.fullmatch(at)):
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
    found = None
    for passed, frame in enumerate(container.decode(stream)):
        found = frame
        if frame.time is None or frame.time >= second or passed >= _PASSED:
            break
    if found is None:
        raise ToolError("no picture of the video can be read there")
    return found
