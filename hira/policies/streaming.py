"""Replies that stream in: server-sent events read directly, without a model object for each piece."""

import asyncio
import json
from codecs import BOM_UTF8
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from hira.errors import BadReply, EndpointError
from hira.policies.failures import failure_in
from hira.policies.reply import Parts, add_call, add_old_call, content_of, named_stop, reasoning_of
from hira.policy import Delta, Watch

MAX_LINE_BYTES = 8 << 20
MAX_REPLY_BYTES = 64 << 20
MAX_REPLY_CHARACTERS = 4 << 20
_REARM_SECONDS = 1.0
_AFTER_DONE_SECONDS = 1.0
_AFTER_FINISH_SECONDS = 5.0


class NoEvents(Exception):
    """What came as a stream holds no events; `raw` is how it begins."""

    def __init__(self, raw: bytes) -> None:
        super().__init__("no events")
        self.raw = raw


class Unended(BadReply):
    """The server said that the stream is over, but never how the reply ended. `parts` is what came."""

    def __init__(self, parts: Parts, *, where: str) -> None:
        super().__init__("the stream ended before the reply did", where=where, retryable=True)
        self.parts = parts


async def data_of(pieces: AsyncIterator[bytes], *, where: str) -> AsyncIterator[str]:
    """The data of each event. Raises `NoEvents` at the end of what held none."""
    data: list[str] = []
    beside: list[bytes] = []
    none = True
    async for lines in _lines(pieces, where):
        for line in lines:
            if line.startswith((b"data:", b"error:")):
                told, none = _data(line), False
                if data and _is_whole(data, told):  # no empty line between two events
                    yield "\n".join(data)
                    data.clear()
                data.append(told)
            elif not line and data:
                yield "\n".join(data)
                data.clear()
            elif none and not line.startswith(b":"):
                beside.append(line)
    if data:
        yield "\n".join(data)
    if none and (raw := b"\n".join(beside)).lstrip().startswith((b"{", b"[", b"<")):
        raise NoEvents(raw)


async def _lines(pieces: AsyncIterator[bytes], where: str) -> AsyncIterator[list[bytes]]:
    """The lines that each piece ends. A line may arrive in any number of pieces; its length is bounded."""
    rest, size = b"", 0
    async for piece in pieces:
        begun, size = size, size + len(piece)
        lines = (rest + (piece if begun else piece.removeprefix(BOM_UTF8))).split(b"\n")
        rest = lines.pop()
        if len(rest) > MAX_LINE_BYTES:
            raise BadReply(f"one line of the stream is longer than {MAX_LINE_BYTES >> 20} MiB", where=where)
        if size > MAX_REPLY_BYTES:
            raise BadReply(f"the reply did not end within {MAX_REPLY_BYTES >> 20} MiB", where=where)
        yield [line.rstrip(b"\r") for line in lines]
    yield [rest.rstrip(b"\r")]


def _data(line: bytes) -> str:
    if line.startswith(b"data:"):
        return line[5:].strip().decode("utf-8", "replace")
    return f'{{"error": {line[6:].decode("utf-8", "replace")}}}'


def _is_whole(data: list[str], following: str) -> bool:
    """Whether what follows can only be another event: in JSON no object begins right behind another."""
    return data[-1].endswith("}") and (following.startswith("{") or following == "[DONE]")


@dataclass(slots=True)
class _Heard:
    """What has come of a stream."""

    parts: Parts = field(default_factory=Parts)
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    size: int = 0
    done: bool = False

    def take(self, data: str, watch: Watch | None, where: str) -> None:
        text, thought = _take(self.parts, _chunk(data, where), where)
        if text or thought:
            self.texts.append(text)
            self.thoughts.append(thought)
            tell(watch, text, thought)
            self.size += len(text) + len(thought)
            if self.size > MAX_REPLY_CHARACTERS:
                raise BadReply(f"the reply did not end within {self.size} characters", where=where)


async def read_stream(pieces: AsyncIterator[bytes], watch: Watch | None, *, idle: float, where: str) -> Parts:
    """Put a streamed reply together; `idle` is the longest wait in seconds between two pieces of data.

    `BadReply` if the stream ends early, holds something unreadable, or never ends; of that, `Unended` if the server
    says that it is over. A connection that breaks when the reply was whole breaks nothing.
    """
    heard = _Heard()
    parts = heard.parts
    try:
        await _hear(heard, pieces, watch, idle=idle, where=where)
    except TimeoutError:
        if not heard.done and parts.finish is None:
            raise EndpointError(f"the stream paused for {idle:g} seconds", where=where, retryable=True) from None
    except httpx.HTTPError:
        if parts.finish is None:
            raise
    parts.text, parts.reasoning = "".join(heard.texts), "".join(heard.thoughts)
    if parts.finish is None and heard.done:
        raise Unended(parts, where=where)
    if parts.finish is None:
        raise BadReply("the stream ended before the reply did", where=where, retryable=True)
    return parts


async def _hear(heard: _Heard, pieces: AsyncIterator[bytes], watch: Watch | None, *, idle: float, where: str) -> None:
    """Take in what comes. Raises `TimeoutError` when nothing has come for too long."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(idle) as timer:
        rearm = loop.time() + min(_REARM_SECONDS, idle / 4)
        async for data in data_of(pieces, where=where):
            if (now := loop.time()) > rearm:
                timer.reschedule(now + idle)
                rearm = now + min(_REARM_SECONDS, idle / 4)
            if data == "[DONE]":
                heard.done = True
                timer.reschedule(now + _AFTER_DONE_SECONDS)  # read on, so that the connection can be kept
                continue
            heard.take(data, watch, where)
            if heard.parts.finish is not None:  # only the usage may come yet; not every server says that it is done
                timer.reschedule(min(now + _AFTER_FINISH_SECONDS, now + idle))


def _chunk(data: str, where: str) -> dict[str, Any]:
    try:
        chunk = json.loads(data, strict=False)
    except (ValueError, RecursionError):
        raise BadReply(f"a piece of the stream is not JSON: {data[:100]!r}", where=where, retryable=True) from None
    if not isinstance(chunk, dict):
        raise BadReply(f"a piece of the stream is no object: {data[:100]!r}", where=where, retryable=True)
    if error := failure_in(chunk, where=where):
        raise error
    return chunk


def _take(parts: Parts, chunk: dict[str, Any], where: str) -> tuple[str, str]:
    """Take one chunk in; the text and the reasoning that it brought."""
    if isinstance(chunk.get("usage"), dict):
        parts.usage = chunk["usage"]
    if not parts.model and isinstance(chunk.get("model"), str):
        parts.model = chunk["model"]
    choices = chunk.get("choices")
    if not choices:
        return "", ""
    if not isinstance(choices, list) or not isinstance(choices[0], dict):
        raise BadReply("a piece of the stream holds no choice", where=where, retryable=True)
    ours = (one for one in choices if isinstance(one, dict) and str(one.get("index") or 0) == "0")
    if (choice := next(ours, None)) is None:  # another reply, that nobody asked for
        return "", ""
    parts.finish = choice.get("finish_reason") or parts.finish
    parts.stop = named_stop(choice) or parts.stop
    delta = choice.get("delta")
    delta = delta if isinstance(delta, dict) else choice.get("message")
    if not isinstance(delta, dict):
        return content_of(choice.get("text"))
    for call in delta.get("tool_calls") or ():
        add_call(parts, call)
    add_old_call(parts, delta)
    if isinstance(delta.get("refusal"), str):
        parts.refusal += delta["refusal"]
    text, thought = content_of(delta.get("content"))
    return text, thought or reasoning_of(delta)


def tell(watch: Watch | None, text: str, thought: str) -> None:
    """Hand a piece to who watches."""
    if watch is None:
        return
    if thought:
        watch(Delta(thought, reasoning=True))
    if text:
        watch(Delta(text))
