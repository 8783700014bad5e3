"""Sampling engines: token ids in, token ids and their log-probabilities out; and one reply in progress."""

import asyncio
import math
import random
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, Protocol

from hira.core.errors import EndpointError
from hira.core.policy import Sampling
from hira.policies.local.template import Template
from hira.policies.repetition import Circling


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """A prompt to continue, up to one of the strings in `stops`, with this adapter, None for the base alone."""

    prompt: tuple[int, ...]
    sampling: Sampling
    stops: tuple[str, ...] = ()
    adapter: str | None = None
    seen: Callable[[int], None] | None = None
    """Gets each id as it is sampled, in the caller's event loop."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """The sampled reply to a prompt. `ids` contain everything the model wrote, including the token that ended its turn.

    `logprobs` are those of the model's own distribution at the request's temperature (1 where it is 0), before top-p
    and top-k. `stop` is the stop string that ended the turn, None if a token of the model or the length did. `version`
    counts the updates of the weights that it was sampled with.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish: Literal["stop", "length"]
    stop: str | None = None
    version: int = 0


class Engine(Protocol):
    """Samples for many coroutines at once. `window` is how many tokens a prompt and its reply may have together."""

    @property
    def window(self) -> int: ...

    async def sample(self, request: SampleRequest) -> Sampled:
        """Return one reply. Cancellation takes its row out of the batch. Raises `EndpointError` if the engine died."""
        ...

    async def aclose(self) -> None: ...


_TAIL = 64


@dataclass(slots=True, eq=False)
class PendingReply:
    """A reply in progress. If it only repeats itself it ends like one that is too long; put back into the queue, it
    continues where it was."""

    request: SampleRequest
    limit: int
    """Its most tokens."""
    draw: random.Random
    """Its own source of random numbers."""
    template: Template
    loop: asyncio.AbstractEventLoop
    version: int = 0
    future: "Future[Sampled]" = field(default_factory=Future)
    cancelled: bool = False
    done: bool = False
    """The caller is informed only when `deliver` is called."""
    outcome: Sampled | Exception | None = None
    sampled: list[int] = field(default_factory=list)
    """Grows together with `logprobs`."""
    logprobs: list[float] = field(default_factory=list)
    circling: Circling = field(default_factory=Circling)
    _tail: str = ""

    @property
    def ids(self) -> tuple[int, ...]:
        return (*self.request.prompt, *self.sampled)

    @property
    def held(self) -> int:
        """How many of its tokens the cache holds: all but the one sampled last."""
        return len(self.request.prompt) + len(self.sampled) - 1

    def take(self, token: int, logprob: float) -> None:
        """Take the next token in; `done` says whether it was the last."""
        if self.cancelled:
            self.done = True
            return
        if not math.isfinite(logprob):
            fix = "the weights are broken, or the precision is too low: load them in another precision"
            self.fail(EndpointError("the model's probabilities are not numbers", fix=fix))
            return
        self.sampled.append(token)
        self.logprobs.append(logprob)
        if self.request.seen:
            with suppress(RuntimeError):  # the loop is closed, nobody is listening
                self.loop.call_soon_threadsafe(self.request.seen, token)
        if token in self.template.ends:
            self.finish("stop")
        elif (stop := self._find_stop(token)) is not None:
            self.finish("stop", stop)
        elif len(self.sampled) >= self.limit or self.circling.take(self.template.piece(token)):
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
        else:
            self.future.set_exception(self.outcome or asyncio.CancelledError())

    def _find_stop(self, token: int) -> str | None:
        stops = self.request.stops
        if not stops:
            return None
        self._tail += self.template.piece(token)
        if not any(stop in self._tail for stop in stops):
            self._tail = self._tail[-max(_TAIL, *map(len, stops)) :]
            return None
        text = self.template.decode(self.sampled)
        return min((stop for stop in stops if stop in text), key=lambda stop: (text.index(stop), stop), default=None)
