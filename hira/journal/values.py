"""What the journal keeps as bytes: JSON, compressed where it is long."""

import json
import zlib
from typing import Any

from pydantic_core import to_json

COMPRESSED = 8192
"""Bytes from which on a value is compressed."""


def pack(value: Any) -> bytes:
    """The value as JSON. What pydantic cannot write, as halves of characters, is written by the slower way."""
    try:
        return to_json(value)
    except ValueError:
        text = json.dumps(value, ensure_ascii=False, check_circular=False, separators=(",", ":"), default=str)
        return text.encode("utf-8", "surrogatepass")


def compress(raw: bytes) -> bytes:
    """As the file keeps it. No JSON begins as what is compressed does."""
    return zlib.compress(raw, 1) if len(raw) > COMPRESSED and raw[:1] != b"\x78" else raw


def unpack(raw: bytes) -> Any:
    return json.loads((zlib.decompress(raw) if raw[:1] == b"\x78" else raw).decode("utf-8", "surrogatepass"))


def storable(text: str) -> str:
    """The text as SQLite can keep it: halves of characters, as names of files may hold them, are spelled out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
