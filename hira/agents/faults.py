"""Faults in tools and experts: they are logged, and a command may tell of them."""

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

log = logging.getLogger("hira.agents")
log.addHandler(logging.NullHandler())  # else a program that configures no logging has them on its terminal


def log_fault(what: str, name: str, error: BaseException, redact: Callable[[str], str]) -> None:
    """Log the fault of what has this name. Its traceback goes as text, without the secrets that `redact` masks."""
    if log.isEnabledFor(logging.ERROR):
        record = log.makeRecord(log.name, logging.ERROR, __file__, 0, f"a fault in the {what} %r", (name,), None)
        record.exc_text = redact("".join(traceback.format_exception(error)).rstrip())
        log.handle(record)


@contextmanager
def report_faults_to(tell: Callable[[str], None]) -> Iterator[None]:
    """Tell whoever is at the terminal of the faults, each with its traceback, as long as the context lasts."""
    handler = _Telling(tell)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


class _Telling(logging.Handler):
    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(self.format(record))
