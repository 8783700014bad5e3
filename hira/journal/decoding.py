"""How records are read back. A journal may be damaged, of another version, or written by somebody else: each record is
checked once, where it enters, and fields that this version does not know are left out."""

import json
import zlib
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from hira.core.errors import UsageError, uncapitalise

LARGEST = 256 * 2**20
"""Bytes of one record."""
MOST_LINES = 20
"""Lines about damaged records; a file may have millions."""
_COMPRESSED = b"\x78"
"""How compressed records begin, and no JSON does."""


class DamagedRecord(UsageError, ValueError):
    """A record that cannot be read; `what` says why, in one line."""

    def __str__(self) -> str:
        return self.what


@dataclass(slots=True)
class Damage:
    """The records that could not be read, one line each. The last line says if there are more."""

    lines: dict[str, None] = field(default_factory=dict)

    def add(self, line: str) -> None:
        if len(self.lines) <= MOST_LINES:
            self.lines[line if len(self.lines) < MOST_LINES else "more records cannot be read"] = None


def read_json(raw: Any) -> Any:
    """Return the value of a JSON text, which may be compressed. Raises `DamagedRecord` if it is not valid, too large,
    or nested in more than 200 levels."""
    if not isinstance(raw, bytes | str):
        raise DamagedRecord("not JSON")
    if isinstance(raw, bytes):
        raw = decompress(raw)
    try:
        return from_json(raw)
    except ValueError as error:
        problem = DamagedRecord(f"not valid JSON: {error}")
    try:  # halves of characters, as names of files may hold them, are valid in our records
        text = raw.decode("utf-8", "surrogatepass") if isinstance(raw, bytes) else raw
        from_json(text.encode("utf-8", "replace"))  # raises for what is nested too deeply
        return json.loads(text)
    except (ValueError, RecursionError):
        raise problem from None


class RecordTooLarge(DamagedRecord):
    """A record has more bytes than are read."""


def decompress(raw: bytes, most: int = LARGEST) -> bytes:
    """Return a record as it was before it was compressed. Raises `DamagedRecord`."""
    if raw[:1] != _COMPRESSED:
        return raw
    reader = zlib.decompressobj()
    try:
        text = reader.decompress(raw, max(1, most))  # 0 means without end
    except zlib.error as error:
        raise DamagedRecord(f"not readable: {error}") from None
    if reader.unconsumed_tail:
        raise RecordTooLarge(f"larger than {most // 2**20} MB")
    return text


@cache
def _make_adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def validate(kind: Any, value: Any, name: str = "") -> Any:
    """Return the value as this type. Raises `DamagedRecord` that says where the first field does not fit; `name` is for
    one that nobody else names."""
    try:
        return _make_adapter(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"][:6]))
        why = ": ".join(part for part in (place, uncapitalise(first["msg"])) if part)
        raise DamagedRecord(f"{name} cannot be read: {why}" if name else why) from None
