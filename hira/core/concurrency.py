"""Works that run together, calls that run once for all who wait, blocks that end early, long texts off the loop."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


async def together(works: Sequence[Awaitable[T]]) -> list[T]:
    """Run all works concurrently and return their results in order. When one raises, the others are ended first."""
    if len(works) == 1:
        return [await works[0]]
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(slots=True)
class _SharedCall:
    """A call that several callers wait for; the last one to give up ends it."""

    result: asyncio.Future[Any] | None = None
    waiting: int = 0


@dataclass(slots=True)
class SingleFlight:
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


@contextmanager
def contain(what: str) -> Iterator[None]:
    """Contain the user's code: if it would end more than itself, raise `RuntimeError`.

    `SystemExit` would end the event loop, and a cancellation of another task would end this run.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
            raise
        raise RuntimeError(f"{what} raised {type(error).__name__}: {error}".rstrip(": ")) from error


@dataclass(slots=True, eq=False)
class EndsEarly:
    """An `async with` block that another task can `end`, or its own time: the block is cancelled, and the error raised
    in its place.

    `seconds` returns the remaining time, and is asked again when it seems over; `late` then makes the error. Without
    `seconds`, or where they return None, the block may take any time. An `error` that is set from the beginning keeps
    the block from starting. `began` is the time of the event loop's clock at which it started, None before.
    """

    seconds: Callable[[], float | None] | None = None
    late: Callable[[], Exception] = TimeoutError
    error: Exception | None = None
    began: float | None = None
    blocks: "set[EndsEarly] | None" = None
    _task: "asyncio.Task[Any] | None" = None
    _timer: asyncio.TimerHandle | None = None
    _ending: asyncio.Handle | None = None
    _cancelled: bool = False
    _before: int = 0

    async def __aenter__(self) -> None:
        if self.error:
            raise self.error
        self._task = asyncio.current_task()
        assert self._task is not None  # noqa: S101 - only a task runs a block
        self._before = self._task.cancelling()
        self.began = asyncio.get_running_loop().time()
        if self.blocks is not None:
            self.blocks.add(self)
        if self.seconds:
            self._watch_time(self.seconds)

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if self.blocks is not None:
            self.blocks.discard(self)
        for handle in (self._timer, self._ending):
            if handle is not None:
                handle.cancel()
        ours = self._cancelled and self._task is not None and self._task.uncancel() <= self._before
        if ours and self.error and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise self.error from None

    def end(self, error: Exception) -> None:
        """End the block as soon as it waits for something; its work until then is kept."""
        if self.error is None:
            self.error = error
            self._ending = asyncio.get_running_loop().call_soon(self._cancel)

    def _watch_time(self, seconds: Callable[[], float | None]) -> None:
        left = seconds()
        if left is None:
            return
        if left > 0 or self._timer is None:  # a block that does not wait completes even without time
            self._timer = asyncio.get_running_loop().call_later(left, self._watch_time, seconds)
        else:
            self.end(self.late())

    def _cancel(self) -> None:
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()


def count_down(seconds: float) -> Callable[[], float]:
    """Return a function that returns the rest of these seconds, counted from now."""
    end = time.monotonic() + seconds
    return lambda: max(0.0, end - time.monotonic())


TINY, SMALL, LARGE = 4_000, 50_000, 20_000_000
"""Characters. Texts with fewer than the first run at once, because passing them on takes longer. Texts with fewer than
the second run in a thread, which is faster than sending them to a child, and so do texts with more than the third,
because sending them would block the loop."""


async def run_apart(size: int, function: Callable[..., T], *arguments: Any) -> T:
    """Run the function in the best place for a text of that size: here, in the shared worker, or in a thread."""
    if size < TINY:
        await asyncio.sleep(0)  # here it can be cancelled, as in the other cases
        return function(*arguments)
    if not SMALL < size <= LARGE:
        return await asyncio.to_thread(function, *arguments)
    from hira.core.child import TEXTS, open_worker  # few texts are as long

    return await open_worker(TEXTS).run(size, function, *arguments)
