"""Pictures, sounds and videos as a model's endpoint takes them: data URIs of bounded size."""

import base64
import io
import mimetypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from hira.errors import ToolError
from hira.messages import Media

LONGEST_SIDE = 2048
LARGEST = 25 * 2**20
"""Bytes of a sound or a video that is sent."""

_PLAIN = {"image/png", "image/jpeg", "image/webp", "image/gif"}
_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


def media_reader(readable: Sequence[Path]) -> Callable[[str], Media]:
    """Reads files among or below `readable`, and no others. A path is taken as it is or by its name alone."""
    allowed = [path.resolve() for path in readable]

    def read(name: str) -> Media:
        path = _found(name, allowed)
        kind, _ = mimetypes.guess_type(path.name)
        if kind and kind.startswith("image/"):
            return Media("image", _image(path, kind))
        if kind in _SOUNDS:
            return Media("audio", _uri(path.read_bytes(), kind, path), _SOUNDS[kind])
        if kind and kind.startswith("video/"):
            return Media("video", _uri(path.read_bytes(), kind, path))
        raise ToolError(f"{path.name} is {kind or 'of an unknown kind'}; pictures, wav, mp3 and videos can be sent")

    return read


def _found(name: str, allowed: Sequence[Path]) -> Path:
    named = [root for root in allowed if root.name == Path(name).name and root.is_file()]
    asked = Path(name).resolve()
    inside = [asked] if any(asked == root or root in asked.parents for root in allowed) else []
    below = [root / name for root in allowed if root.is_dir() and root in (root / name).resolve().parents]
    for path in (*inside, *below, *named):
        if path.is_file():
            return path
    known = ", ".join(root.name for root in allowed) or "none"
    raise ToolError(f"there is no file {name!r} here; readable: {known}")


def _image(path: Path, kind: str) -> str:
    """The picture upright and at most 2048 pixels long, as Pillow does it; without Pillow, as it is if it is small."""
    data = path.read_bytes()
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError:
        if kind in _PLAIN and len(data) <= LARGEST // 5:
            return _uri(data, kind, path)
        raise ToolError(f"{path.name} has to be made smaller first: pip install 'hira[images]'") from None
    try:
        with Image.open(io.BytesIO(data)) as opened:
            image: Any = ImageOps.exif_transpose(opened)
            if kind in _PLAIN and max(image.size) <= LONGEST_SIDE and image.size == opened.size:
                return _uri(data, kind, path)
            image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
            return _encoded(image)
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        raise ToolError(f"{path.name} cannot be read as a picture: {error}") from None


def _encoded(image: Any) -> str:
    clear = image.mode in {"RGBA", "LA", "P"}
    form: Literal["PNG", "JPEG"] = "PNG" if clear else "JPEG"
    out = io.BytesIO()
    image.convert("RGBA" if clear else "RGB").save(out, form, quality=85)
    return f"data:image/{form.lower()};base64,{base64.b64encode(out.getvalue()).decode()}"


def _uri(data: bytes, kind: str, path: Path) -> str:
    if len(data) > LARGEST:
        raise ToolError(f"{path.name} has {len(data) / 2**20:.0f} MB; at most {LARGEST // 2**20} MB can be sent")
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
