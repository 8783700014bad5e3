"""The frames between the parent and the child: a JSON object each, preceded by four bytes of length."""

import json
import struct
from typing import Any

LENGTH = struct.Struct(">I")
ANSWER = 1 << 20
"""The most bytes of an answer: a value and an error of 20,000 characters each, of twelve bytes at worst."""


def pack_frame(frame: dict[str, Any]) -> bytes:
    """Return the bytes of one frame. Text stays ASCII inside, so that lone surrogates survive."""
    body = json.dumps(frame).encode("ascii")
    return LENGTH.pack(len(body)) + body


def shorten_text(text: str, most: int) -> str:
    """Shorten a text to about `most` characters: its head and tail, and the number of characters between them."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"
