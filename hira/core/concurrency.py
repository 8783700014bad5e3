"""Work side by side: a window that slides over a data set, and calls that are made once, however many wait."""

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
    """What `work` brings for each item, as it comes. No more than `most` items are begun and not yet handed on
    (paper 003 of MaMs and rubrics, appendix F).

    Items are taken in micro-batches of `micro`, the next one when there is room for its first item, and there is no
    barrier between them: with each result that is handed on another item begins. |D| items of one length take |D| /
    `most` times that long. When the generator is left, and when a work raises, the others are ended first.
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
                done.extend(task for task in running if task in finished)  # in the order in which they were begun
                running = {task: None for task in running if task not in finished}
            yield done.popleft().result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, *done, return_exceptions=True)


@dataclass(slots=True)
class _Shared:
    """A call that several wait for; the last one to give up ends it."""

    result: asyncio.Future[Any] | None = None
    waiting: int = 0


@dataclass(slots=True)
class Once:
    """What was brought, by key, for as long as this object lives; in one event loop."""

    _made: dict[str, _Shared] = field(default_factory=dict)

    async def __call__(
        self, key: str, call: Callable[[], Awaitable[T]], good: Callable[[T], bool] = lambda _: True
    ) -> T:
        """The result of the call; calls under one key are made once, also while the first is under way.

        What raises and what is not `good` is not kept, and an empty key keeps nothing.
        """
        if not key:
            return await call()
        made = self._made.setdefault(key, _Shared())
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
