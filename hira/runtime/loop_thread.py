"""An event loop for code that is not async."""

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, TypeVar

from hira.core.concurrency import contain
from hira.core.errors import UsageError
from hira.runtime.session import CLOSING_SECONDS, make_closed_error

T = TypeVar("T")


class LoopThread:
    """An event loop in a daemon thread, so that a forgotten `Hira` never keeps a program alive."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._closing = False
        self._waiting: set[Future[Any]] = set()
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
            self._waiting.add(future)
        try:
            return future.result()
        except CancelledError:
            if self._closing:
                raise make_closed_error() from None
            raise
        except BaseException:
            future.cancel()
            raise
        finally:
            self._waiting.discard(future)

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Do the `last` work, which ends the runs, cancel the other work of the threads that wait, and end this thread.
        If work ignores its cancellation for some seconds, this thread stays until it has ended; who waits for it gets
        the `UsageError`.

        Raises `UsageError` inside of the thread.
        """
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
            late = [future for future in list(self._waiting) if not future.done()]
            for future in late:
                future.cancel()
            asyncio.run_coroutine_threadsafe(self._stop(), self.loop)
            if not late and not self._working:  # an interrupted call, whose work may go on, waits no more
                self._thread.join()

    async def _track(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - only a task runs it
        self._working.add(task)
        try:
            with contain("the program's own code"):
                return await work
        finally:
            self._working.discard(task)

    async def _end(self, last: Coroutine[Any, Any, None]) -> None:
        await last
        working = {task for task in self._working if not task.cancelling()}
        for task in working:
            task.cancel()
        if working:
            await asyncio.wait(working, timeout=CLOSING_SECONDS)
        await self.loop.shutdown_default_executor()

    async def _stop(self) -> None:
        """Stop the loop when nothing works in it any longer."""
        if self._working:
            await asyncio.wait(self._working)
        self.loop.stop()

    def _serve(self) -> None:
        ended = False
        while not ended:
            # SystemExit ends only its task; the caller that waits for the task receives it
            with suppress(SystemExit, KeyboardInterrupt):
                self.loop.run_forever()
                ended = True
        self.loop.close()
