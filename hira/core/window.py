"""A sliding window over a data set: some of its items are worked on at a time."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from itertools import islice
from typing import TypeVar

from hira.core.errors import UsageError

T = TypeVar("T")
R = TypeVar("R")
CONCURRENCY = 8
"""The questions or judgements under way at once, unless a setting says another number."""


def check_concurrency(most: object) -> None:
    """Raise `UsageError` for a `concurrency` that is no whole number, or less than 1."""
    if not isinstance(most, int) or most < 1:
        raise UsageError(f"`concurrency` must be a whole number of at least 1, got {most!r}", fix="write concurrency=8")


async def map_concurrently(
    items: Iterable[T], most: int, work: Callable[[T], Awaitable[R]], *, micro: int = 1
) -> AsyncGenerator[R, None]:
    """Yield the result of `work` for each item, as it completes. At most `most` items are begun and not yet yielded
    (paper 003 of MaMs and rubrics, appendix F).

    Items are taken in micro-batches of `micro`, the next one when there is room for its first item, without a barrier
    between them: each yielded result lets another item begin. |D| items of equal length take |D| / `most` times that
    long. When the generator is closed, or when `work` raises, the other items are cancelled first. An error of
    `items` is raised after the results of those that were begun.
    """
    left = iter(items)
    broken: Exception | None = None
    batch: deque[T] = deque()
    running: dict[asyncio.Future[R], None] = {}
    done: deque[asyncio.Future[R]] = deque()
    try:
        while True:
            while len(running) + len(done) < most:
                if not (batch or broken):
                    try:
                        batch.extend(islice(left, micro))
                    except Exception as error:  # noqa: BLE001 - it is raised once what was begun has ended
                        broken = error
                if not batch:
                    break
                running[asyncio.ensure_future(work(batch.popleft()))] = None
            if not done and not running:
                if broken:
                    raise broken
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
