"""Pictures and pages of PDF files as data URIs: upright, at most 2048 pixels long."""

import base64
import io
import threading
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from hira.core.errors import ToolError

LONGEST_SIDE = 2048
MOST_ZOOM = 4.0
"""Pixels a point of a PDF page, at most: 288 dots an inch."""
LARGEST_UNTOUCHED = 5 * 2**20
"""Bytes of a picture that is sent as it is where nothing is there to make it smaller."""

_PLAIN = {"image/png", "image/jpeg", "image/webp", "image/gif"}


def renders_pages() -> bool:
    """Whether what makes pictures of the pages of PDF files is installed."""
    return find_spec("pypdfium2") is not None and find_spec("PIL") is not None


def picture(path: Path, kind: str) -> str:
    """The picture as Pillow makes it smaller and turns it; without Pillow, as it is if it is small."""
    data = path.read_bytes()
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError:
        if kind in _PLAIN and len(data) <= LARGEST_UNTOUCHED:
            return _uri(data, kind)
        raise ToolError(f"{path.name} must be resized first: pip install 'hira[images]'") from None
    try:
        with Image.open(io.BytesIO(data)) as opened:
            image: Any = ImageOps.exif_transpose(opened)
            if kind in _PLAIN and max(image.size) <= LONGEST_SIDE and image.size == opened.size:
                return _uri(data, kind)
            image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
            return encode_picture(image)
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ToolError(f"{path.name} cannot be read as a picture: {error}") from None


def page(path: Path, number: str) -> str:
    """One page of a PDF file as a picture."""
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
    """A picture of Pillow's as a data URI: PNG where it may be clear, else JPEG."""
    clear = image.mode in {"RGBA", "LA", "P"}
    form: Literal["PNG", "JPEG"] = "PNG" if clear else "JPEG"
    out = io.BytesIO()
    image.convert("RGBA" if clear else "RGB").save(out, form, quality=85)
    return _uri(out.getvalue(), f"image/{form.lower()}")


def _uri(data: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


@cache
def _one_at_a_time() -> threading.Lock:
    """One for the process, because PDFium works in one thread at a time."""
    return threading.Lock()
