"""The concurrent pipeline: a window that slides over a data set (paper 003 of MaMs and rubrics, appendix F)."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


async def map_concurrently(
    items: Iterable[T], most: int, work: Callable[[T], Awaitable[R]], *, micro: int = 1
) -> AsyncGenerator[R, None]:
    """What `work` brings for each item, as it comes. No more than `most` items are begun and not yet handed on.

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
