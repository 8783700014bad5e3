"""Concurrent work: a sliding window over a data set, and calls that run once for all who wait."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


async def map_concurrently(
    items: Iterable[T], most: int, work: Callable[[T], Awaitable[R]], *, micro: int = 1
) -> AsyncGenerator[R, None]:
    """Yield the result of `work` for each item, as it completes. At most `most` items are begun and not yet yielded
    (paper 003 of MaMs and rubrics, appendix F).

    Items are taken in micro-batches of `micro`, the next one when there is room for its first item, without a barrier
    between them: each yielded result lets another item begin. |D| items of equal length take |D| / `most` times that
    long. When the generator is closed, or when `work` raises, the other items are cancelled first.
    """
    left = iter(items)
    batch: deque[T] = deque()
    running: dict[asyncio.Future[R], None] = {}
    done: deque[asyncio.Future[R]] = deque()
    try:
        while True:
            while len(running) + len(done) < most:
                if not batch:
                    batch.extend(islice(left, micro))
                if not batch:
                    break
                running[asyncio.ensure_future(work(batch.popleft()))] = None
            if not done and not running:
                return
            if not done:
                finished, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                done.extend(task for task in running if task in finished)  # in the order of their start
                running = {task: None for task in running if task not in finished}
            yield done.popleft().result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, *done, return_exceptions=True)


@dataclass(slots=True)
class _SharedCall:
    """A call that several callers wait for; the last one to give up ends it."""

    result: asyncio.Future[Any] | None = None
    waiting: int = 0


@dataclass(slots=True)
class Once:
    """Results of calls by key, kept for the lifetime of this object; for one event loop."""

    _made: dict[str, _SharedCall] = field(default_factory=dict)

    async def __call__(
        self, key: str, call: Callable[[], Awaitable[T]], good: Callable[[T], bool] = lambda _: True
    ) -> T:
        """Return the result of the call. Calls with one key run once, also while the first is in progress.

        Errors and results that are not `good` are not kept, and an empty key keeps nothing.
        """
        if not key:
            return await call()
        made = self._made.setdefault(key, _SharedCall())
        if made.result is None:
            made.result = asyncio.ensure_future(call())
        made.waiting += 1
        kept = False
        try:
            result: T = await asyncio.shield(made.result)
            kept = good(result)
            return result
        finally:
            made.waiting -= 1
            if not kept and self._made.get(key) is made and (made.result.done() or not made.waiting):
                del self._made[key]
            if not made.result.done() and not made.waiting:
                made.result.cancel()
                await asyncio.wait((made.result,))
