"""The control channel: one JSON object a frame, four bytes of length before it.

Used on both sides; imports nothing of hira.
"""

import json
import struct
from typing import Any

LENGTH = struct.Struct(">I")
ANSWER = 1 << 20
"""Bytes of an answer, at most: a value and an error of 20,000 characters each, of twelve bytes at worst."""


def pack_frame(frame: dict[str, Any]) -> bytes:
    """The bytes of one frame. Text stays ASCII inside, so that lone surrogates survive."""
    body = json.dumps(frame).encode("ascii")
    return LENGTH.pack(len(body)) + body


def shorten_text(text: str, most: int) -> str:
    """At most about `most` characters: the head and the tail, and how many are missing between them."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"
