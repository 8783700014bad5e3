"""The parts that all pages share: the palette, and the digests that let a page run its own style and script alone."""

import base64
import hashlib
from pathlib import Path


def digest(text: str) -> str:
    """The source expression of a style or a script that stands in the page."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def add_palette(style: str) -> str:
    """A page's style sheet below the colours and fonts of all pages (`palette.css`)."""
    return Path(__file__).with_name("palette.css").read_text(encoding="utf-8") + style
