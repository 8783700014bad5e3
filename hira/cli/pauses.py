"""A process that answers many questions at once: how long garbage collections and threads may hold them up."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

OFTEN, RARE = 3, 330
"""Collections of the youngest generation to one of the middle one, and of that to a full one; Python's own are 10. A
middle one goes through what was made since the last, so that more of them are shorter ones; a full one goes through
all that is under way, and runs leave next to nothing that only it would find."""
SWITCH = 0.0005
"""Seconds after which a thread that computes lets another one go on. The loop waits so long at each of the dozens of
calls in a tick that let other threads run, such as sending; with Python's own 5 ms that is a tenth of a second."""


@contextmanager
def short_pauses() -> Iterator[None]:
    """Leave out of later collections what is loaded by now, go through the rest more rarely, and switch threads often.

    Modules, classes and settings stay to the end of such a process. Only for a process that is hira's own: how its
    memory and threads are looked after is the program's matter.
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
