"""Replies that stream in: server-sent events read directly, without a model object for each piece."""

import asyncio
import json
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from hira.core.errors import BadReply, TimedOut
from hira.core.policy import Delta, Watch
from hira.policies.failures import failure_in
from hira.policies.repetition import Circling
from hira.policies.reply import REPEATS_ITSELF, ReplyParts, add_choice, count_spoken_tokens
from hira.policies.waiting import ALLOWED_SLOWDOWN

MAX_LINE_BYTES = 8 << 20
MAX_REPLY_BYTES = 64 << 20
MAX_REPLY_CHARACTERS = 4 << 20
_REARM_SECONDS = 1.0
_AFTER_DONE_SECONDS = 1.0
_AFTER_FINISH_SECONDS = 5.0
_CLOSING = frozenset("}])>")
_JSON = json.JSONDecoder(strict=False)
_FLOWING, _COUNTED_EVERY, _OVERLONG = 8, 64, 1.25
BROKE_OFF = "the stream ended before the reply did"
SLOW_FIX = "check the endpoint; for a slow one, increase [timeout] in hira.toml"


class NoEvents(Exception):
    """The stream contains no events; `raw` is its beginning."""

    def __init__(self, raw: bytes) -> None:
        super().__init__("no events")
        self.raw = raw


async def data_of(pieces: AsyncIterator[bytes]) -> AsyncIterator[list[str]]:
    """The data of the events that each piece ends. Raises `NoEvents` at the end of what held none."""
    data: list[str] = []
    beside: list[bytes] = []
    none = True
    async for lines in _lines(pieces):
        whole: list[str] = []
        for line in lines:
            if line.startswith((b"data:", b"error:")):
                none = False
                field, _, value = line.partition(b":")
                text = value.strip().decode("utf-8", "replace")
                text = text if field == b"data" else f'{{"error": {text}}}'
                # no empty line between two events: in JSON no object begins directly after another
                if data and data[-1].endswith("}") and (text.startswith("{") or text == "[DONE]"):
                    whole.append("\n".join(data))
                    data.clear()
                data.append(text)
            elif not line and data:
                whole.append("\n".join(data))
                data.clear()
            elif none and not line.startswith(b":"):
                beside.append(line)
        if whole:
            yield whole
    if data:
        yield ["\n".join(data)]
    if none and (raw := b"\n".join(beside)).lstrip().startswith((b"{", b"[", b"<")):
        raise NoEvents(raw)


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """The lines that each piece ends. A line may arrive in any number of pieces; its length is bounded."""
    rest, size = b"", 0
    async for piece in pieces:
        begun, size = size, size + len(piece)
        lines = (rest + (piece if begun else piece.removeprefix(BOM_UTF8))).split(b"\n")
        rest = lines.pop()
        if len(rest) > MAX_LINE_BYTES:
            raise BadReply(f"one line of the stream is longer than {MAX_LINE_BYTES >> 20} MiB")
        if size > MAX_REPLY_BYTES:
            raise BadReply(f"the reply did not end within {MAX_REPLY_BYTES >> 20} MiB")
        yield [line.rstrip(b"\r") for line in lines]
    yield [rest.rstrip(b"\r")]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a stream: seconds until its first token, between two tokens and for all of it, and its most
    `tokens`. At `cut`, on the event loop's clock, the text so far is returned, as soon as there is any."""

    first: float
    between: float
    reply: float
    cut: float | None = None
    tokens: int | None = None


@dataclass(slots=True)
class StreamState:
    """The stream so far, and what bounds it."""

    read: Callable[[ReplyParts, dict[str, Any]], tuple[str, str, str]]
    """Takes in a chunk and returns its text, reasoning and arguments of calls."""
    bounds: Bounds
    watch: Watch | None = None
    is_enough: Callable[[str], bool] | None = None
    """Called with the text at each closing bracket."""
    parts: ReplyParts = field(default_factory=ReplyParts)
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    size: int = 0
    pieces: int = 0
    began: float = 0.0
    """Seconds on the event loop's clock, as are `first` and `last`."""
    first: float = 0.0
    last: float = 0.0
    done: bool = False
    enough: bool = False
    _shown: int = 0
    _circling: tuple[Circling, ...] = field(default_factory=lambda: tuple(Circling() for _ in range(3)))

    def take(self, data: str, now: float) -> None:
        text, thought, written = told = self.read(self.parts, _chunk(data))
        if not (text or thought or written):
            return
        self.texts.append(text)
        self.thoughts.append(thought)
        self.first, self.last, self.pieces = self.first or now, now, self.pieces + 1
        self.size += len(text) + len(thought) + len(written)
        if self.size > MAX_REPLY_CHARACTERS:
            raise BadReply(f"the reply did not end within {self.size} characters")
        for circling, piece in zip(self._circling, told, strict=True):
            if piece and circling.take(piece):
                self.parts.cut = REPEATS_ITSELF
        if self.is_enough and may_end(text) and self.is_enough("".join(self.texts)):
            self.parts.finish, self.enough = "stop", True

    def tell(self) -> None:
        begin, self._shown = self._shown, len(self.texts)
        if self.watch and begin < self._shown:
            tell(self.watch, "".join(self.texts[begin:]), "".join(self.thoughts[begin:]))

    def join(self) -> ReplyParts:
        self.parts.text, self.parts.reasoning = "".join(self.texts), "".join(self.thoughts)
        self.parts.pieces = self.pieces
        return self.parts

    def overlong(self) -> bool:
        """Return whether the reply exceeds the requested length; a small excess is a matter of counting."""
        tokens = self.bounds.tokens
        if tokens is None or self.pieces <= tokens or (self.pieces - tokens) % _COUNTED_EVERY:
            return False
        return count_spoken_tokens(self.join()) > _OVERLONG * tokens

    def ends_by(self) -> float:
        """The deadline of the whole reply; while it flows, it may take as long as its tokens need."""
        bounds = self.bounds
        by = self.began + bounds.reply
        if bounds.tokens and self.pieces > _FLOWING:
            by = max(by, self.first + ALLOWED_SLOWDOWN * bounds.tokens * (self.last - self.first) / self.pieces)
        return by if bounds.cut is None or not self.pieces else min(by, bounds.cut)

    async def receive(self, pieces: AsyncIterator[bytes]) -> ReplyParts:
        """Join a streamed reply; after an error, the state holds what has arrived.

        A reply that repeats itself, is longer than it may be, or still flows when its time is over is cut
        (`ReplyParts.cut`). `TimedOut` if nothing comes for too long, `BadReply` if the stream ends early, holds
        something unreadable, or never ends. A connection that breaks after the whole reply does no harm.
        """
        parts = self.parts
        try:
            await self._hear(data_of(pieces))
        except TimeoutError:
            now = asyncio.get_running_loop().time()
            if not self.done and parts.finish is None:
                if not self.pieces:
                    waited = min(self.bounds.first, self.bounds.reply)
                    raise TimedOut(f"no token came within {waited:.3g} seconds", fix=SLOW_FIX, retryable=True) from None
                if now < self.ends_by():
                    raise TimedOut(f"the stream paused for {now - self.last:.3g} seconds", retryable=True) from None
                parts.cut = "the reply took too long; it is cut there"
        except httpx.HTTPError:
            if parts.finish is None:
                raise
        self.join()
        if parts.cut:
            parts.finish = "length"
        if parts.finish is None and not self.done:
            raise BadReply(BROKE_OFF, retryable=True)
        return parts

    async def _hear(self, events: AsyncIterator[list[str]]) -> None:
        """Read the events until the reply ends or has to be cut. Raises `TimeoutError` after too long a silence."""
        loop, bounds, parts = asyncio.get_running_loop(), self.bounds, self.parts
        self.began = self.began or loop.time()
        often = min(_REARM_SECONDS, bounds.between / 4)
        async with asyncio.timeout_at(min(self.began + bounds.first, self.ends_by())) as timer:
            rearm = 0.0
            async for batch in events:
                now = loop.time()
                for data in batch:
                    if data == "[DONE]":
                        self.done = True
                        timer.reschedule(now + _AFTER_DONE_SECONDS)  # read on, so that the connection can be kept
                        continue
                    self.take(data, now)
                    if self.overlong():
                        parts.cut = "the endpoint ignores the limit of the reply's length; the reply is cut"
                    if parts.cut or self.enough:
                        break
                self.tell()
                if parts.cut or self.enough:
                    return
                if self.done:
                    continue
                if parts.finish is not None:  # only the usage may come yet; not every server says that it is done
                    timer.reschedule(min(now + _AFTER_FINISH_SECONDS, now + bounds.between))
                elif now > min(rearm, (timer.when() or now) - often):
                    timer.reschedule(min(now + (bounds.between if self.pieces else bounds.first), self.ends_by()))
                    rearm = now + often if self.pieces else 0.0  # the first token has other bounds


def may_end(text: str) -> bool:
    return not _CLOSING.isdisjoint(text)


def _chunk(data: str) -> dict[str, Any]:
    try:
        chunk = _JSON.decode(data)
    except (ValueError, RecursionError):
        raise BadReply(f"a piece of the stream is not JSON: {data[:100]!r}", retryable=True) from None
    if not isinstance(chunk, dict):
        raise BadReply(f"a piece of the stream is not an object: {data[:100]!r}", retryable=True)
    if ('"error"' in data or not chunk.get("choices")) and (error := failure_in(chunk)):
        raise error
    return chunk


def take_chunk(parts: ReplyParts, chunk: dict[str, Any]) -> tuple[str, str, str]:
    """Take one chunk in; the text, the reasoning and the arguments of calls that it brought."""
    if isinstance(chunk.get("usage"), dict):
        parts.usage = chunk["usage"]
    if not parts.model and isinstance(chunk.get("model"), str):
        parts.model = chunk["model"]
    choices = chunk.get("choices")
    if not choices:
        return "", "", ""
    if not isinstance(choices, list) or not isinstance(choices[0], dict):
        raise BadReply("a piece of the stream contains no choice", retryable=True)
    choice = choices[0]
    if choice.get("index") or len(choices) > 1:
        ours = [each for each in choices if isinstance(each, dict) and str(each.get("index") or 0) == "0"]
        if not ours:  # another reply, which hira did not request
            return "", "", ""
        choice = ours[0]
    return add_choice(parts, chunk, choice)


def tell(watch: Watch | None, text: str, thought: str) -> None:
    if watch is None:
        return
    if thought:
        watch(Delta(thought, reasoning=True))
    if text:
        watch(Delta(text))
