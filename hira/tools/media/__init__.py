"""Pictures, sounds, videos and pages of PDF files in the form that endpoints accept: data URIs of bounded size."""

import mimetypes
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from hira.core.errors import ToolError
from hira.core.messages import Media
from hira.tools.media.encoding import convert_sound, decodes, encode_uri, moment, page, picture, renders_pages

LARGEST = 25 * 2**20
"""The most bytes of a video, and of a wav or mp3 file that is sent unchanged."""

_PLACE = re.compile(r"#(page|second|share)=(.*)$", re.DOTALL)
_PDF = "application/pdf"
_WAV = {"audio/wav", "audio/x-wav", "audio/vnd.wave"}
_MP3 = {"audio/mpeg", "audio/mp3"}
# kinds that some machines' tables lack
_KINDS = {
    ".flac": "audio/flac",
    ".ogg": "audio/ogg",
    ".oga": "audio/ogg",
    ".opus": "audio/ogg",
    ".m4a": "audio/mp4",
    ".aac": "audio/aac",
    ".wma": "audio/x-ms-wma",
    ".webp": "image/webp",
    ".heic": "image/heic",
    ".avif": "image/avif",
    ".mkv": "video/x-matroska",
    ".webm": "video/webm",
    ".mp4": "video/mp4",
    ".mov": "video/quicktime",
}


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
        path = named[plain] if plain in named else _find_file(plain, allowed)
        kind = kind_of(path.name)
        if kind.startswith("image/"):
            return Media("image", picture(path, kind))
        if kind.startswith("audio/"):
            if kind in _WAV | _MP3 and path.stat().st_size <= LARGEST:
                return Media("audio", encode_uri(path.read_bytes(), kind), "mp3" if kind in _MP3 else "wav")
            return Media("audio", encode_uri(convert_sound(path), "audio/wav"), "wav")
        if kind.startswith("video/"):
            if place not in {"", "page"}:
                return Media("image", moment(path, value))
            if (size := path.stat().st_size) > LARGEST:
                raise TooLarge(f"{path.name} has {size / 2**20:.0f} MB; at most {LARGEST // 2**20} MB can be sent")
            return Media("video", encode_uri(path.read_bytes(), kind))
        if kind == _PDF:
            return Media("image", page(path, value))
        raise ToolError(f"{path.name} is {kind or 'of an unknown kind'}; pictures, sounds and videos can be sent")

    return read


def kind_of(name: str) -> str:
    """Return the media type of a file's name, empty if it is unknown."""
    return _KINDS.get(Path(name).suffix.lower()) or mimetypes.guess_type(name)[0] or ""


def can_be_sent(name: str) -> bool:
    """Return whether a file of this name has something to see or hear that can be sent to a model."""
    kind = kind_of(name)
    if kind == "image/svg+xml":
        return False
    if kind.startswith("audio/"):
        return kind in _WAV | _MP3 or decodes()
    return kind.startswith(("image/", "video/")) or (kind == _PDF and renders_pages())


def how_to_see(name: str) -> str:
    """Return, as a part of a sentence, how to see the pages of a document that hold no text."""
    if kind_of(name) != _PDF:
        return "saved as a PDF file, the multimodal expert can look at it"
    return "the multimodal expert can look at it" + ("" if renders_pages() else " after: pip install 'hira[pdf]'")


def _find_file(name: str, allowed: Sequence[Path]) -> Path:
    """Return the file that a name means: a path, a path below a folder (also as programs name files of other
    sessions, `../1/a.png`), or the name of an allowed file alone."""
    below = [root / one for root in allowed for one in (name, name.removeprefix("../"))]
    alone = [root for root in allowed if root.name == Path(name).name]
    for path in (Path(name), *below, *alone):
        real = path.resolve()
        if real.is_file() and any(real.is_relative_to(root) for root in allowed):
            return real
    known = ", ".join(root.name for root in allowed) or "none"
    raise ToolError(f"there is no file {name!r} here; readable: {known}")
