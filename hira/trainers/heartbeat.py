"""A line now and then while something long goes on, also where the event loop stands still meanwhile."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def beating(seconds: float, tell: Callable[[str], None], told: Callable[[], str]) -> Iterator[None]:
    """Tell every so many `seconds` what `told` says then, until the context is left."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(seconds):
            tell(told())

    thread = threading.Thread(target=beat, name="hira-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
