"""Pictures, sounds, videos and pages of PDF files as a model's endpoint takes them: data URIs of bounded size."""

import base64
import io
import mimetypes
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from hira.errors import ToolError
from hira.messages import Media

LONGEST_SIDE = 2048
MOST_ZOOM = 4.0
"""Pixels a point of a PDF page, at most: 288 dots an inch."""
LARGEST = 25 * 2**20
"""Bytes of a sound or a video that is sent."""

_PLAIN = {"image/png", "image/jpeg", "image/webp", "image/gif"}
_PDF = "application/pdf"
_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


def media_reader(readable: Sequence[Path], named: Mapping[str, Path] = MappingProxyType({})) -> Callable[[str], Media]:
    """Reads files among or below `readable`, and no others. A path is taken as it is or by its name alone; `named` are
    the names that files are shown by. `paper.pdf#page=3` is a page of a PDF file.
    """
    allowed = [path.resolve() for path in readable]

    def read(name: str) -> Media:
        plain, _, page = name.strip().partition("#page=")
        path = named[plain] if plain in named else _found(plain, allowed)
        kind, _ = mimetypes.guess_type(path.name)
        if kind and kind.startswith("image/"):
            return Media("image", _image(path, kind))
        if kind in _SOUNDS:
            return Media("audio", _uri(path.read_bytes(), kind, path), _SOUNDS[kind])
        if kind and kind.startswith("video/"):
            return Media("video", _uri(path.read_bytes(), kind, path))
        if kind == _PDF:
            return Media("image", _page(path, page))
        raise ToolError(f"{path.name} is {kind or 'of an unknown kind'}; pictures, wav, mp3 and videos can be sent")

    return read


def can_be_sent(name: str) -> bool:
    """Whether there is something to see or hear in a file of this name that a model can be sent."""
    kind = mimetypes.guess_type(name)[0] or ""
    if kind == "image/svg+xml":
        return False
    return kind.startswith(("image/", "video/")) or kind in _SOUNDS or (kind == _PDF and renders_pages())


def renders_pages() -> bool:
    """Whether what makes pictures of the pages of PDF files is installed."""
    return find_spec("pypdfium2") is not None and find_spec("PIL") is not None


def how_to_see(name: str) -> str:
    """What to do about the pages of a document that hold no text, as a part of a sentence."""
    if mimetypes.guess_type(name)[0] != _PDF:
        return "saved as a PDF file, the multimodal expert can look at it"
    return "the multimodal expert can look at it" + ("" if renders_pages() else " after: pip install 'hira[pdf]'")


def _found(name: str, allowed: Sequence[Path]) -> Path:
    named = [root for root in allowed if root.name == Path(name).name and root.is_file()]
    asked = Path(name).resolve()
    inside = [asked] if any(asked == root or root in asked.parents for root in allowed) else []
    beside = name.removeprefix("../")  # as programs name what other sessions wrote
    below = [
        root / one
        for root in allowed
        for one in (name, beside)
        if root.is_dir() and root in (root / one).resolve().parents
    ]
    for path in (*inside, *below, *named):
        if path.is_file():
            return path
    known = ", ".join(root.name for root in allowed) or "none"
    raise ToolError(f"there is no file {name!r} here; readable: {known}")


@cache
def _one_at_a_time() -> threading.Lock:
    """One for the process, because PDFium works in one thread at a time."""
    return threading.Lock()


def _page(path: Path, page: str) -> str:
    """One page of a PDF file as a picture, at most 2048 pixels long."""
    if not renders_pages():
        raise ToolError(f"pages of {path.name} cannot be looked at: pip install 'hira[pdf]'")
    pypdfium2: Any = import_module("pypdfium2")  # no types to import: it is an extra
    with _one_at_a_time():
        try:
            document = pypdfium2.PdfDocument(path)
        except (pypdfium2.PdfiumError, OSError) as error:
            raise ToolError(f"{path.name} cannot be read as a PDF file: {error}") from None
        try:
            number = int(page) if page.strip().isdecimal() else 1 if not page and len(document) == 1 else 0
            if not 1 <= number <= len(document):
                raise ToolError(f"{path.name} has {len(document)} pages: name one, such as {path.name}#page=1")
            sheet = document[number - 1]
            longest = max(*sheet.get_size(), 1.0)
            return _encoded(sheet.render(scale=min(LONGEST_SIDE / longest, MOST_ZOOM)).to_pil())
        finally:
            document.close()


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
