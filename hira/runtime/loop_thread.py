"""An event loop for code that is not async."""

import asyncio
import os
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from hira.core.concurrency import contain
from hira.core.errors import UsageError

T = TypeVar("T")


def make_closed_error() -> UsageError:
    return UsageError("this Hira is closed", fix="make another, or ask before the end of its `with`")


class LoopThread:
    """An event loop in a daemon thread, so that a forgotten `Hira` never keeps a program alive."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._closing = False
        self._working: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=self._serve, name="hira", daemon=True)
        self._thread.start()

    def elsewhere(self) -> bool:
        return threading.current_thread() is not self._thread

    def is_of_this_process(self) -> bool:
        """Return whether the thread exists: a process that was forked has the object without it."""
        return self._process == os.getpid()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work; what interrupts the waiting cancels the work.

        Raises `UsageError` in the thread of the loop, which cannot wait for itself, and once the loop is closed, also
        for work that has begun.
        """
        if not self.elsewhere():
            work.close()
            raise UsageError("ask_sync would wait for its own event loop", fix="in async code, write await ask(…)")
        with self._lock:
            if self._closing:
                work.close()
                raise make_closed_error()
            future = asyncio.run_coroutine_threadsafe(self._track(work), self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Cancel the work of other threads, do the `last` work, end the thread. Raises `UsageError` inside of it."""
        if not self.elsewhere():
            last.close()
            raise UsageError(
                "close() would wait for its own event loop", fix="do not call it in tools, hooks or workflows"
            )
        with self._lock:
            self._closing = True
        try:
            asyncio.run_coroutine_threadsafe(self._end(last), self.loop).result()
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
            self.loop.close()

    async def _track(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - only a task runs it
        self._working.add(task)
        try:
            with contain("the program's own code"):
                return await work
        except asyncio.CancelledError:
            if self._closing:
                raise make_closed_error() from None
            raise
        finally:
            self._working.discard(task)

    async def _end(self, last: Coroutine[Any, Any, None]) -> None:
        for task in self._working:
            task.cancel()
        if self._working:
            await asyncio.wait(self._working)
        await last
        await self.loop.shutdown_default_executor()

    def _serve(self) -> None:
        ended = False
        while not ended:
            # SystemExit ends only its task; the caller that waits for the task receives it
            with suppress(SystemExit, KeyboardInterrupt):
                self.loop.run_forever()
                ended = True
