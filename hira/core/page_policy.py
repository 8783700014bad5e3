"""Parts that all pages share: the palette, and the digests that allow a page its own style and script only."""

import base64
import hashlib
from pathlib import Path


def digest(text: str) -> str:
    """Return the source expression (Content-Security-Policy) of an inline style or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def add_palette(style: str) -> str:
    """Return a page's style sheet, preceded by the colours and fonts of all pages (`palette.css`)."""
    return Path(__file__).with_name("palette.css").read_text(encoding="utf-8") + style
