"""For commands that ask many questions: a notice while an endpoint is down, and fewer pauses of the process."""

import gc
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hira.core.events import Event, Notice, Reader

OFTEN, RARE = 3, 330
"""Collections of the youngest generation for one of the middle one, and of that for a full one; Python's own are 10. A
middle one goes through the objects since the last, so shorter intervals cost less; a full one goes through all runs in
progress, which leave next to nothing that only it would find."""
_FIGURES = re.compile(r"\d+")
SWITCH = 0.0005
"""Seconds after which a computing thread lets another one run. The loop waits this long at each of the dozens of calls
in a tick that let other threads run, such as sending; with Python's own 5 ms that is a tenth of a second."""


def tell_once(say: Callable[[str], None], subject: Callable[[Notice], str]) -> Reader:
    """Return a reader for many runs that prints one notice on each subject; those with the subject "" are left out."""
    known = {""}

    def read(event: Event) -> None:
        if isinstance(event, Notice) and subject(event) not in known:
            known.add(subject(event))
            say(event.text)

    return read


def tell_waiting(say: Callable[[str], None]) -> Reader:
    """Return a reader for many runs that prints once for each endpoint that it is asked again, and that calls pause."""

    def find_subject(notice: Notice) -> str:
        doing = notice.text.rpartition("; ")[2]  # trying again in 1 s (2 of 5), or continuing in 30 s
        return f"{notice.endpoint} {_FIGURES.sub('', doing)}" if notice.endpoint else ""

    return tell_once(say, find_subject)


@contextmanager
def short_pauses() -> Iterator[None]:
    """Leave out of later collections what is loaded by now, go through the rest more rarely, and switch threads often.

    Only for a process that is hira's own: how its memory and threads are looked after is the program's matter.
    """
    gc.collect()
    gc.freeze()
    first, second, full = gc.get_threshold()
    gc.set_threshold(first, min(second, OFTEN), max(full, RARE))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(first, second, full)
        gc.unfreeze()
