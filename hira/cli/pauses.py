"""A process that answers many questions at once: how long its garbage collections may hold them up."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def short_pauses() -> Iterator[None]:
    """Leave out of later collections what is loaded by now. Modules, classes and settings are most of the objects of
    such a process and stay to its end; a collection that goes through them all holds up every question meanwhile.

    Only for a process that is hira's own: which objects are left out is the program's matter.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
