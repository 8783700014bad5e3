"""Clocks that do not wait, and an engine that only counts tokens: schedules of hours are tried in a second."""

import asyncio
import selectors
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hira.core.policy import Policy
from hira.policies.endpoint import Endpoint
from hira.policies.limited import RateLimiter
from hira.policies.openai import OpenAIPolicy
from hira.policies.waiting import Timeout

T = TypeVar("T")


class Stuck(RuntimeError):
    """All wait, and nothing will ever happen."""


class _Selector(selectors.SelectSelector):
    """Waits for nothing: it turns the clock on by as much as it was to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Stuck("all wait for each other: no timer is set and nothing is ready")
        self.now += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in which sleeping takes no time, and `time()` tells how long it would have taken."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


def virtually(work: Coroutine[Any, Any, T]) -> T:
    """The result of the work, run in virtual time. Raises `Stuck` instead of hanging.

    >>> virtually(asyncio.sleep(3600, "an hour later"))
    'an hour later'
    """
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


class Clock:
    """A clock that waiting moves on, so that nobody really waits; `slept` are the waits."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        self.slept.append(seconds)
        await asyncio.sleep(0)
        self.now = max(self.now, until)


def quick_policy(base_url: str, model: str = "scripted") -> Policy:
    """What hira opens for an endpoint, with shorter waits."""
    time = Clock()
    timeout = Timeout(connect=0.3, first_token=0.4, between_tokens=0.2, reply=0.4)
    policy = OpenAIPolicy(model, base_url, "sk-test", timeout=timeout)
    gate = RateLimiter(clock=time.clock, sleep=time.sleep)
    return Endpoint(policy, lambda: gate, policy.where, sleep=time.sleep)


@dataclass(slots=True)
class _Row:
    left: int
    done: asyncio.Future[None]


@dataclass(slots=True)
class VirtualEngine:
    """Decodes rows together as a real engine does: every step gives each of at most `places` rows one token and takes
    `step` seconds and `row` more for each row. `reading` is the seconds for one token that a row already has when it
    comes. Rows join every `turn` steps.

    `tokens` counts what was decoded; `waiting` rows have no place yet.
    """

    places: int = 64
    step: float = 0.02
    row: float = 0.0002
    reading: float = 0.0
    turn: int = 16
    tokens: int = 0
    waiting: deque[_Row] = field(default_factory=deque)
    running: list[_Row] = field(default_factory=list)
    _read: float = 0.0
    _working: asyncio.Task[None] | None = None

    async def decode(self, tokens: int, held: int = 0) -> None:
        """Come back when so many tokens were decoded for a row that has `held` already."""
        row = _Row(tokens, asyncio.get_running_loop().create_future())
        self.waiting.append(row)
        self._read += held * self.reading
        if self._working is None:
            self._working = asyncio.create_task(self._work())
        try:
            await row.done
        finally:
            row.left = 0

    async def _work(self) -> None:
        while True:
            self.running = [row for row in self.running if not row.done.done()]
            while self.waiting and len(self.running) < self.places:
                row = self.waiting.popleft()
                if not row.done.done():
                    self.running.append(row)
            if not self.running:
                self._working = None
                return
            steps = min(self.turn, *(row.left for row in self.running))
            took = steps * (self.step + self.row * len(self.running)) + self._read
            self._read = 0.0
            await asyncio.sleep(took)
            for row in self.running:
                row.left -= steps
                self.tokens += steps
                if row.left <= 0 and not row.done.done():
                    row.done.set_result(None)
