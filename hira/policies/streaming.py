"""Replies that stream in: server-sent events read directly, without a model object for each piece."""

import asyncio
import json
from codecs import BOM_UTF8
from collections.abc import AsyncIterator
from typing import Any

from hira.errors import BadReply, EndpointError
from hira.policies.chat import Parts, add_call, add_old_call, content_of, named_stop, reasoning_of
from hira.policies.failures import failure_in
from hira.policy import Delta, Watch

MAX_LINE_BYTES = 8 << 20
MAX_REPLY_BYTES = 64 << 20
MAX_REPLY_CHARACTERS = 4 << 20
_REARM_SECONDS = 1.0
_AFTER_DONE_SECONDS = 1.0
_AFTER_FINISH_SECONDS = 5.0


async def data_of(pieces: AsyncIterator[bytes], *, where: str) -> AsyncIterator[str]:
    """The data of each event. A line may arrive in any number of pieces; its length is bounded."""
    rest, data, size = b"", [], 0
    async for piece in pieces:
        begun, size = size, size + len(piece)
        lines = (rest + (piece if begun else piece.removeprefix(BOM_UTF8))).split(b"\n")
        rest = lines.pop()
        if len(rest) > MAX_LINE_BYTES:
            raise BadReply(f"one line of the stream is longer than {MAX_LINE_BYTES >> 20} MiB", where=where)
        if size > MAX_REPLY_BYTES:
            raise BadReply(f"the reply did not end within {MAX_REPLY_BYTES >> 20} MiB", where=where)
        for raw in lines:
            line = raw.rstrip(b"\r")
            if line.startswith(b"data:"):
                data.append(line[5:].strip().decode("utf-8", "replace"))
            elif line.startswith(b"error:"):
                data.append(f'{{"error": {line[6:].decode("utf-8", "replace")}}}')
            elif not line and data:
                yield "\n".join(data)
                data.clear()
    if rest.startswith(b"data:"):
        data.append(rest[5:].strip().decode("utf-8", "replace"))
    if data:
        yield "\n".join(data)


async def read_stream(pieces: AsyncIterator[bytes], watch: Watch | None, *, idle: float, where: str) -> Parts:
    """Put a streamed reply together; `idle` is the longest wait in seconds between two pieces of data.

    `BadReply` if the stream ends early, holds something unreadable, or never ends.
    """
    parts, texts, thoughts, size, done = Parts(), [], [], 0, False
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(idle) as timer:
            rearm = loop.time() + min(_REARM_SECONDS, idle / 4)
            async for data in data_of(pieces, where=where):
                if (now := loop.time()) > rearm:
                    timer.reschedule(now + idle)
                    rearm = now + min(_REARM_SECONDS, idle / 4)
                if done := done or data == "[DONE]":
                    timer.reschedule(now + _AFTER_DONE_SECONDS)  # read on, so that the connection can be kept
                    continue
                text, thought = _take(parts, _chunk(data, where), where)
                if parts.finish is not None:  # only the usage may come yet; not every server says that it is done
                    timer.reschedule(min(now + _AFTER_FINISH_SECONDS, now + idle))
                if text or thought:
                    texts.append(text)
                    thoughts.append(thought)
                    tell(watch, text, thought)
                    size += len(text) + len(thought)
                    if size > MAX_REPLY_CHARACTERS:
                        raise BadReply(f"the reply did not end within {size} characters", where=where)
    except TimeoutError:
        if not done and parts.finish is None:
            raise EndpointError(f"the stream paused for {idle:g} seconds", where=where, retryable=True) from None
    if parts.finish is None:
        raise BadReply("the stream ended before the reply did", where=where, retryable=True)
    parts.text, parts.reasoning = "".join(texts), "".join(thoughts)
    return parts


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
    choice = choices[0]
    if choice.get("index"):  # another reply, that nobody asked for
        return "", ""
    parts.finish = choice.get("finish_reason") or parts.finish
    parts.stop = named_stop(choice) or parts.stop
    delta = choice.get("delta")
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
