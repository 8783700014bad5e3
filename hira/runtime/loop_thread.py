"""An event loop for code that is not async."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """An event loop in a daemon thread, so that a forgotten `Hira` never keeps a program alive."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="hira", daemon=True)
        self._thread.start()

    def elsewhere(self) -> bool:
        return threading.current_thread() is not self._thread

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work; what interrupts the waiting cancels the work."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        self.run(self.loop.shutdown_default_executor())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
