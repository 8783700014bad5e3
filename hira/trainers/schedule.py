"""The pipeline's schedule: problems in progress, complete groups that wait, the gate between sampling and updates."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import chain, count
from types import TracebackType
from typing import Generic, Protocol, TypeVar

from hira.core.concurrency import together

T = TypeVar("T")


class ScheduledWork(Protocol[T]):
    """A step of one problem: groups that are sampled concurrently, each of `size` members of one input. `then` makes
    the next step from the outputs, one sequence of them per group; None ends the problem."""

    @property
    def groups(self) -> Sequence[str]: ...

    @property
    def size(self) -> int: ...

    async def sample(self, group: int, number: int) -> T: ...

    def then(self, outputs: Sequence[Sequence[T]]) -> "ScheduledWork[T] | None": ...


Begin = Callable[[int], Awaitable[ScheduledWork[T] | None]]
"""Returns the first step of the problem with that number, counted from 0; None if it has none."""


@dataclass(frozen=True, slots=True)
class Released(Generic[T]):
    """A complete group. `version` is that of the weights when the group began, the oldest of any of its tokens."""

    problem: int
    name: str
    outputs: tuple[T, ...]
    version: int


@dataclass(frozen=True, slots=True)
class ScheduleLimits:
    """The limits of a schedule: `problems` in progress at once; an update takes at least `least` groups; no token is
    trained on more than `staleness` updates after it was sampled; no problem begins while more than `most` groups
    wait."""

    problems: int = 16
    least: int = 16
    staleness: int = 4
    most: int = 64


class Schedule(Generic[T]):
    """Samples problem after problem and hands complete groups out to updates.

    >>> while batch := await schedule.take():
    ...     await train(batch)
    ...     schedule.record_update()

    Staleness is bounded by waiting, and nothing is thrown away: an update waits for the groups that it would make too
    old. `total` is the number of problems, None for no end; `first` the number to begin with, `again` problems to begin
    before it.
    """

    def __init__(
        self,
        begin: Begin[T],
        limits: ScheduleLimits,
        *,
        total: int | None = None,
        first: int = 0,
        again: Sequence[int] = (),
    ) -> None:
        self.version = 0
        self.limits = limits
        self.queue: list[Released[T]] = []
        self._begin = begin
        self._numbers = chain(again, count(first) if total is None else range(first, total))
        self._under_way: dict[int, asyncio.Task[None]] = {}
        self._sampling: dict[tuple[int, str], int] = {}
        self._failed: Exception | None = None
        self._exhausted = False
        self._updating = False
        self._changed = asyncio.Event()
        self.next = first

    @property
    def problems(self) -> list[int]:
        return sorted(self._under_way)

    @property
    def sampling(self) -> int:
        return len(self._sampling)

    async def take(self) -> list[Released[T]]:
        """Return all complete groups, as soon as there are enough of them; an empty list when every problem is done."""
        while True:
            if self._failed is not None:
                raise self._failed
            self._admit()
            over = not self._under_way
            oldest = self.version + 1 - self.limits.staleness
            # another update must not make a group too old that is still being sampled
            if (self._due or over) and not any(version < oldest for version in self._sampling.values()):
                break
            await self._changed.wait()
        taken, self.queue = self.queue, []
        self._updating = bool(taken)
        return taken

    def record_update(self, version: int | None = None) -> None:
        self.version = self.version + 1 if version is None else version
        self._updating = False
        self._ring()

    async def aclose(self) -> None:
        self._exhausted = True
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._under_way.clear()
        self._sampling.clear()

    @property
    def _due(self) -> bool:
        return len(self.queue) >= self.limits.least

    def _admit(self) -> None:
        limits = self.limits
        while not self._exhausted and len(self._under_way) < limits.problems and len(self.queue) <= limits.most:
            number = next(self._numbers, None)
            if number is None:
                return
            self.next = max(self.next, number + 1)
            self._under_way[number] = asyncio.create_task(self._work_through(number))

    async def _work_through(self, number: int) -> None:
        try:
            work = await self._begin(number)
            while work is not None:
                outputs = await together([self._group(number, work, index) for index in range(len(work.groups))])
                work = work.then(outputs)
        except Exception as error:  # noqa: BLE001 - raised by the next `take`
            self._failed = self._failed or error
        finally:
            self._under_way.pop(number, None)
            if self._failed is None:
                self._admit()
            self._ring()

    async def _group(self, number: int, work: ScheduledWork[T], index: int) -> tuple[T, ...]:
        """Sample one group, and release it when it is complete."""
        # a group that begins before a due or running update is one update old when it is trained on
        while not self.limits.staleness and (self._due or self._updating):
            await self._changed.wait()
        key, version = (number, work.groups[index]), self.version
        self._sampling[key] = version
        try:
            outputs = tuple(await together([work.sample(index, member) for member in range(work.size)]))
        finally:
            self._sampling.pop(key, None)
        self.queue.append(Released(number, key[1], outputs, version))
        self._ring()
        return outputs

    def _ring(self) -> None:
        """Wake everything that waits for a change."""
        self._changed.set()
        self._changed = asyncio.Event()


class Gate:
    """`async with gate:` around each segment of a reply that is sampled. `close()` admits no more and waits until all
    inside have left; `open()` admits again."""

    def __init__(self) -> None:
        self.inside = 0
        self._opened = asyncio.Event()
        self._opened.set()
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def closed(self) -> bool:
        return not self._opened.is_set()

    async def __aenter__(self) -> None:
        while self.closed:
            await self._opened.wait()
        self.inside += 1
        self._empty.clear()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.inside -= 1
        if not self.inside:
            self._empty.set()

    async def close(self) -> None:
        self._opened.clear()
        await self._empty.wait()

    def open(self) -> None:
        self._opened.set()
