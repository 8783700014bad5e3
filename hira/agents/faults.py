"""Faults in tools and experts: they are logged, and a command may report them."""

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hira.core.errors import HiraError, ToolDown, ToolError
from hira.core.tokens import clip

log = logging.getLogger("hira.agents")
log.addHandler(logging.NullHandler())  # else a program that configures no logging has them on its terminal

_LONGEST = 500
"""The most tokens of a fault's text that the model reads: a fault may contain a service's whole reply."""


def log_fault(what: str, name: str, error: BaseException, redact: Callable[[str], str]) -> None:
    """Log the fault of what has this name. Its traceback goes as text, without the secrets that `redact` masks."""
    if log.isEnabledFor(logging.ERROR):
        record = log.makeRecord(log.name, logging.ERROR, __file__, 0, f"a fault in the {what} %r", (name,), None)
        record.exc_text = redact("".join(traceback.format_exception(error)).rstrip())
        log.handle(record)


def explain_failure(name: str, error: Exception, note: Callable[[str], None], redact: Callable[[str], str]) -> str:
    """Return why a call of the tool of this name failed, for the model. A person reads a note of a service that is down
    or too slow and of a fault in the tool. Raises an error that ends the run: hira's own, and checks that failed."""
    if isinstance(error, ToolError):
        if isinstance(error, ToolDown):  # else the answer would look as if it knew all
            why = "; ".join(str(error).rstrip(".").splitlines())
            note(redact(why if why.startswith(f"{name} ") else f"{name} is down: {why}"))
        return str(error)
    if isinstance(error, HiraError | AssertionError):
        raise error
    log_fault("tool", name, error, redact)
    why = clip(f"a fault in the tool, {type(error).__name__}: {error}".rstrip(": "), _LONGEST)
    note(redact(f"{name} failed: {why}"))
    return why


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
