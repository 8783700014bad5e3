"""How requests are named, and records stored and read back: digests of what is new in a request, and compressed JSON.

A journal may be damaged, of another version, or written by somebody else: each record is checked once, where it enters,
and fields that this version does not know are left out.
"""

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from itertools import takewhile
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from hira.core.errors import UsageError, uncapitalise
from hira.core.messages import Message
from hira.core.policy import Request, fields_of

MOST_BEGINNINGS = 64
"""Beginnings of digests that are kept for conversations to come."""


class _DigestedRequest(NamedTuple):
    about: tuple[Any, ...]
    messages: tuple[Message, ...]
    total: "hashlib.blake2b"


@dataclass(slots=True)
class Digests:
    """Digests of the requests of one run. Each conversation's last one is remembered, because the next request begins
    with it; so is the digest of a request's other fields, because roles send the same objects again and again."""

    latest: dict[str, _DigestedRequest] = field(default_factory=dict)
    """The last request of each conversation."""
    _begun: dict[tuple[Any, ...], tuple[tuple[Any, ...], "hashlib.blake2b"]] = field(default_factory=dict)

    def of(self, model: str, request: Request) -> tuple[str, int]:
        """Return the request's digest, and the number of messages shared with the conversation's previous request."""
        about = (model, request.stop, request.sampling, request.tools, request.schema, request.continues)
        earlier = self.latest.get(request.conversation)
        pairs = zip(earlier.messages if earlier else (), request.messages, strict=False)
        kept = sum(takewhile(bool, (before is message for before, message in pairs)))
        if earlier and kept == len(earlier.messages) and earlier.about == about:
            total, begin = earlier.total.copy(), kept
        else:
            ids = (id(request.sampling), id(request.schema), *map(id, request.tools))
            same, begin = (model, request.stop, request.continues, *ids), 0
            if known := self._begun.get(same):
                total = known[1].copy()
            else:
                total = hashlib.blake2b(repr(about).encode("utf-8", "surrogatepass"), digest_size=16)
                if len(self._begun) < MOST_BEGINNINGS:
                    self._begun[same] = about, total.copy()  # with the fields, so that nothing else gets those ids
        for message in request.messages[begin:]:
            # most messages are plain text, which `repr` would read character by character
            text = f"{message.role} {len(message.text)} {message.text}"
            if message.calls or message.media or message.call_id:
                text = repr(message.wire)
            total.update(text.encode("utf-8", "surrogatepass"))
        self.latest[request.conversation] = _DigestedRequest(about, request.messages, total)
        return total.hexdigest(), kept

    def back(self, conversation: str, to: _DigestedRequest | None) -> None:
        """Forget a request that was not recorded after all."""
        if to:
            self.latest[conversation] = to
        else:
            self.latest.pop(conversation, None)


def digest_of_tool(name: str, arguments: Mapping[str, Any]) -> str:
    """Names a tool's call: its name and its arguments, whatever their order."""
    spelled = json.dumps(dict(arguments), ensure_ascii=False, sort_keys=True, default=str)
    return hashlib.blake2b(f"{name} {spelled}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def digest_text(text: str) -> str:
    """Return a short digest that names a text where its equality counts."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def dump_request(model: str, request: Request, kept: int, *, forced: bool = False) -> dict[str, Any]:
    """Return the stored form of a request: what it adds to the first `kept` messages of the previous one."""
    sampling = {name: value for name, value in fields_of(request.sampling).items() if value is not None}
    added = dump_messages(request.messages[kept:])
    stored = {"model": model, "kept": kept, "added": added, "sampling": sampling, "stop": request.stop}
    return {**stored, "forced": True} if forced else stored


def dump_messages(messages: Iterable[Message], known: Sequence[Message] = ()) -> list[Any]:
    """Return the stored form of messages: the position of a `known` one, else the wire form with its prompt's name."""
    places = {id(message): index for index, message in enumerate(known)}
    return [places.get(id(message), {**message.wire, "prompt": message.prompt}) for message in messages]


COMPRESSED = 8192
"""Bytes from which on a record is compressed."""
_COMPRESSED = b"\x78"
"""How compressed records begin, and no JSON does."""


def pack(value: Any) -> bytes:
    """Return a value as JSON, compressed if it is long. pydantic refuses halves of characters, `json` does not."""
    try:
        raw = to_json(value)
    except ValueError:
        text = json.dumps(value, ensure_ascii=False, check_circular=False, separators=(",", ":"), default=spell_value)
        raw = text.encode("utf-8", "surrogatepass")
    return zlib.compress(raw, 1) if len(raw) > COMPRESSED else raw


def spell_value(value: Any) -> Any:
    """Return what `json` writes for a value that it does not know."""
    return fields_of(value) if is_dataclass(value) else str(value)


def storable(text: str) -> str:
    """The text as SQLite can keep it: halves of characters, as names of files may hold them, are spelled out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


LARGEST = 256 * 2**20
"""Bytes of one record."""
MOST_LINES = 20
"""Lines about damaged records; a file may have millions."""


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
    """Return the value of a JSON text, compressed or not. Raises `DamagedRecord`, also for more than 200 levels."""
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


_make_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def validate(kind: Any, value: Any, name: str = "") -> Any:
    """Return the value as this type. Raises `DamagedRecord` that names the first wrong field, or else `name`."""
    try:
        return _make_adapter(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"][:6]))
        why = ": ".join(part for part in (place, uncapitalise(first["msg"])) if part)
        raise DamagedRecord(f"{name} cannot be read: {why}" if name else why) from None
