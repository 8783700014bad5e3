"""The records of a journal, as they are read back."""

import os
import socket
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NotRequired

from pydantic import ConfigDict
from typing_extensions import TypedDict

from hira.core.events import KINDS, Event
from hira.core.messages import Speaker
from hira.core.policy import VERIFIER, Completion, Count, Sampling, Seconds, Usage, role_of
from hira.core.sources import Source
from hira.journal.encoding import Damage, DamagedRecord, read_json, validate
from hira.journal.log import Key, RecordedCall
from hira.journal.store import BEAT

SILENT = 4 * BEAT
"""Seconds without a sign of life after which a run counts as gone."""


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
    """A request: the messages that it has `added` to those that it has `kept` of the conversation's previous one.
    `forced` marks the last resort of a run that had to end."""

    kept: Count
    added: list[WireMessage]
    sampling: Sampling
    stop: tuple[str, ...]
    forced: NotRequired[bool]


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
    """Yield the events of known kinds, without unknown fields; an event whose fields do not fit is reported."""
    for number, record in enumerate(records, 1):
        kind = KINDS.get(str(record.get("event")))
        if kind is None:
            continue
        try:
            yield validate(kind, record)
        except DamagedRecord as error:
            if report:
                report(f"event {number} ({kind.__name__}) cannot be read: {error.what}")


@dataclass(frozen=True, slots=True)
class Entry:
    """A run as the journal lists it; times are seconds since the epoch."""

    id: str
    question: str
    workflow: str
    status: str
    """`running` until the run ends."""
    answer: str
    error: str
    settings: SettingsRecord
    files: tuple[str, ...]
    versions: dict[str, str]
    began: Seconds
    ended: Seconds | None
    pid: Count
    host: str
    tools: dict[str, Any]
    """The tools that the run had."""
    usage: Usage | None
    """The cost of the run, None until it ends."""
    scope: str
    """Names the runs whose tools see the same."""
    heard: Seconds | None
    """The last sign of life."""

    @property
    def alive(self) -> bool:
        """Return whether the process that wrote the run still works on it, as far as this machine can tell.

        The number of a process may be reused, and means nothing in a container, so a sign of life is required as well.
        """
        if self.status != "running" or time.time() - (self.heard or self.began) > SILENT:
            return False
        if self.host != socket.gethostname():
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        try:  # the process may have ended without its parent's notice; only Linux tells
            status = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return True
        return status.rpartition(")")[2].split()[0] not in "ZX"

    @property
    def state(self) -> str:
        """The status, `interrupted` for a run whose process is gone."""
        return "interrupted" if self.status == "running" and not self.alive else self.status


def read_entry(row: sqlite3.Row) -> Entry:
    """Read a row of the table `runs`, whose columns with JSON are values. Raises `DamagedRecord`."""
    values = dict(row)
    for name in ("settings", "files", "versions", "tools", "usage"):
        try:
            values[name] = read_json(values.get(name))
        except DamagedRecord as error:
            raise DamagedRecord(f"{name}: {error.what}") from None
    entry: Entry = validate(Entry, {**values, "usage": None if values["usage"] == {} else values["usage"]})
    return entry


def read_call(row: Mapping[str, Any], run: str, damage: Damage) -> RecordedCall | None:
    """Read a row of the table `calls`, None if it is damaged; a damaged request or result counts as missing."""
    place = f"the call {row['position']!s:.20} of {row['conversation']!s:.80}"
    try:
        call: RecordedCall = validate(RecordedCall, {**row, "request": NO_REQUEST, "result": None})
    except DamagedRecord as error:
        damage.add(f"run {run}: {place} cannot be read: {error.what}")
        return None
    try:
        raw = read_json(row["request"])
        call = replace(call, request=validate(RequestRecord, raw) if call.kind == "policy" else raw)
    except DamagedRecord as error:
        damage.add(f"run {run}: the request of {place} cannot be read: {error.what}")
    try:
        if row["result"] is not None:
            call = replace(call, result=decode_result(call.kind, row["result"]))
    except DamagedRecord as error:
        damage.add(f"run {run}: the result of {place} cannot be read: {error.what}")
    return call


def is_forced(call: RecordedCall) -> bool:
    """Return whether a policy was asked because the run had to end."""
    return call.kind == "policy" and "forced" in call.request


def find_ending(known: Mapping[Key, RecordedCall], *, cut: bool) -> set[Key]:
    """Return the calls with which a run ended early: a failure at the end of the record, the answer that was forced,
    and, if a limit `cut` the run off, a last reply that is incomplete; the verifier may have checked it."""
    replied = (call for call in known.values() if call.replied and call.position and not is_forced(call))
    replies = sorted(replied, key=lambda call: call.began)
    last = replies[-1].began if replies else 0.0
    ending = {call.key for call in known.values() if is_forced(call) or (call.failed and call.ended > last)}
    written = [call for call in replies if role_of(call.conversation) != VERIFIER] if cut else []
    return ending | {call.key for call in written[-1:] if call.result.get("finish") == "length"}
