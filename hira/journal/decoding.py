"""How records are read back. A journal may be damaged, of another version, or written by somebody else: each record is
checked once, where it enters, and fields that this version does not know are left out."""

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, NotRequired

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import from_json
from typing_extensions import TypedDict

from hira.core.errors import UsageError, uncapitalise
from hira.core.events import KINDS, Event
from hira.core.messages import Speaker
from hira.core.policy import Completion, Count, Dollars, Sampling, Seconds
from hira.core.sources import Source

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


class SettingsRecord(TypedDict, total=False):
    """The recorded settings that are read before they are checked as settings. Others are kept as they are."""

    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]

    model: str
    base_url: str
    base_url_from: str
    searxng_url: str
    workflow: str
    instructions: str
    docs: list[str]
    roles: dict[str, dict[str, Any]]
    dialects: dict[str, str]
    handed: list[str]
    continues: str
    history: list[tuple[str, str]]
    output_schema: dict[str, Any]


class UsageRecord(TypedDict, total=False):
    calls: Count
    prompt_tokens: Count
    completion_tokens: Count
    cached_tokens: Count
    cost: Dollars | None
    seconds: Seconds


def decode_entry(row: sqlite3.Row) -> dict[str, Any]:
    """Return a row of the table `runs` with its JSON columns as values. Raises `DamagedRecord`."""
    values = dict(row)
    for name in ("settings", "files", "versions", "tools", "usage"):
        try:
            values[name] = read_json(values.get(name))
        except DamagedRecord as error:
            raise DamagedRecord(f"{name}: {error.what}") from None
    return values


class _Function(TypedDict):
    name: str
    arguments: str


class _WireCall(TypedDict):
    id: NotRequired[str]
    function: _Function


class _Url(TypedDict):
    url: str


class _Sound(TypedDict):
    data: str
    format: str


class _Text(TypedDict):
    type: Literal["text"]
    text: str


class _Image(TypedDict):
    type: Literal["image_url"]
    image_url: _Url


class _Video(TypedDict):
    type: Literal["video_url"]
    video_url: _Url


class _Audio(TypedDict):
    type: Literal["input_audio"]
    input_audio: _Sound


class WireMessage(TypedDict):
    """A message in its wire form, with the name of its prompt."""

    role: Speaker
    content: NotRequired[str | list[_Text | _Image | _Video | _Audio] | None]
    tool_calls: NotRequired[list[_WireCall]]
    tool_call_id: NotRequired[str]
    prompt: NotRequired[str]


class RequestRecord(TypedDict):
    """A request: the messages that it has `added` to those that it has `kept` of the conversation's previous one."""

    kept: Count
    added: list[WireMessage]
    sampling: Sampling
    stop: tuple[str, ...]


NO_REQUEST = RequestRecord(kept=0, added=[], sampling=Sampling(), stop=())
"""Replaces a request that cannot be read: its reply can still be used."""


class FailureRecord(TypedDict):
    """A failure of an endpoint; `failed` names its class."""

    failed: str
    what: str
    where: NotRequired[str]
    fix: NotRequired[str]
    status: NotRequired[Count]
    retryable: NotRequired[bool]
    retry_after: NotRequired[Seconds | None]


class PassageRecord(TypedDict):
    source: Source
    text: str


class _ToolResult(TypedDict):
    """The result of a tool's call, as far as it is read without the tool; what makes it decodes the rest."""

    passages: NotRequired[list[PassageRecord]]


def decode_result(kind: str, raw: Any) -> Any:
    """Return the recorded result of a call as JSON values, whose maker decodes them. Raises `DamagedRecord`."""
    result = read_json(raw)
    if isinstance(result, dict) and "failed" in result:
        return validate(FailureRecord, result)
    if kind == "policy":
        validate(Completion, result)
        return result
    if isinstance(result, dict):
        validate(_ToolResult, result)
    return result


def decode_events(records: Iterable[Mapping[str, Any]], report: Callable[[str], None] | None = None) -> Iterator[Event]:
    """Yield the events of the records. Those of another version may differ: unknown kinds and fields are skipped, and
    so is an event whose fields do not fit, which is reported."""
    for number, record in enumerate(records, 1):
        kind = KINDS.get(str(record.get("event")))
        if kind is None:
            continue
        try:
            yield validate(kind, record)
        except DamagedRecord as error:
            if report:
                report(f"event {number} ({kind.__name__}) cannot be read: {error.what}")
