"""One reply in the making: what it was asked with, what has been sampled, and when it is done."""

import asyncio
import math
import random
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from hira.core.errors import EndpointError
from hira.policies.local.engine import Sampled, Seen
from hira.policies.repetition import Circling

_TAIL = 64


class Pieces:
    """The text of single tokens, for looking out for stop strings; `decode` gives the text of several."""

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self.decode = decode
        self._known: dict[int, str] = {}

    def __getitem__(self, token: int) -> str:
        if token not in self._known:
            self._known[token] = self.decode((token,))
        return self._known[token]


@dataclass(slots=True, eq=False)
class Asked:
    """A reply that is being sampled. `limit` counts its tokens; `draw` is its own source of random numbers.

    `sampled` and `logprobs` grow together. A reply that only repeats itself ends as one that is too long. A row that
    was put back into the queue goes on where it was. A row that is `done` tells who waits for it only when told to
    `deliver` its `outcome`.
    """

    prompt: tuple[int, ...]
    limit: int
    draw: random.Random
    ends: frozenset[int]
    pieces: Pieces
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    stops: tuple[str, ...] = ()
    adapter: str | None = None
    seen: Seen | None = None
    loop: asyncio.AbstractEventLoop | None = None
    version: int = 0
    future: "Future[Sampled]" = field(default_factory=Future)
    cancelled: bool = False
    done: bool = False
    outcome: Sampled | Exception | None = None
    sampled: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    circling: Circling = field(default_factory=Circling)
    _tail: str = ""

    @property
    def ids(self) -> tuple[int, ...]:
        return (*self.prompt, *self.sampled)

    @property
    def held(self) -> int:
        """How many of its tokens the cache holds: all but the one sampled last."""
        return len(self.prompt) + len(self.sampled) - 1

    def take(self, token: int, logprob: float) -> None:
        """Take the next token in; `done` tells whether it was the last."""
        if self.cancelled:
            self.done = True
            return
        if not math.isfinite(logprob):
            fix = "the weights are broken, or the precision is too low: load them in another precision"
            self.fail(EndpointError("the model's probabilities are not numbers", fix=fix))
            return
        self.sampled.append(token)
        self.logprobs.append(logprob)
        if self.seen and self.loop:
            with suppress(RuntimeError):  # the loop is closed, nobody is listening
                self.loop.call_soon_threadsafe(self.seen, token)
        if token in self.ends:
            self.finish("stop")
        elif (stop := self._stopped(token)) is not None:
            self.finish("stop", stop)
        elif len(self.sampled) >= self.limit or self.circling.take(self.pieces[token]):
            self.finish("length")

    def finish(self, finish: Literal["stop", "length"], stop: str | None = None) -> None:
        self.done = True
        self.outcome = Sampled(tuple(self.sampled), tuple(self.logprobs), finish, stop, self.version)

    def fail(self, error: Exception) -> None:
        if not self.done:
            self.done = True
            self.outcome = error

    def deliver(self) -> None:
        if self.future.done() or not self.future.set_running_or_notify_cancel():
            return
        if isinstance(self.outcome, Sampled):
            self.future.set_result(self.outcome)
        elif self.outcome is not None:
            self.future.set_exception(self.outcome)
        else:
            self.future.set_exception(asyncio.CancelledError())

    def _stopped(self, token: int) -> str | None:
        """The stop string that the text so far holds, of several the one that stands first."""
        if not self.stops:
            return None
        self._tail += self.pieces[token]
        if not any(stop in self._tail for stop in self.stops):
            longest = max(map(len, self.stops))
            self._tail = self._tail[-max(longest, _TAIL) :]
            return None
        text = self.pieces.decode(self.sampled)
        return min(((at, stop) for stop in self.stops if (at := text.find(stop)) >= 0), default=(0, None))[1]
