"""Garbage collections leave out loaded modules, and threads switch more often, only while questions are asked."""

import gc
import sys

from hira.cli.shell import short_pauses


def seen(one: object) -> bool:
    """Return whether garbage collections visit the object."""
    return any(other is one for other in gc.get_objects())


def test_what_is_loaded_is_left_out_of_collections_and_threads_switch_often_as_long_as_it_lasts() -> None:
    often, usual = gc.get_threshold(), sys.getswitchinterval()
    loaded: list[object] = []
    with short_pauses():
        assert not seen(loaded)
        assert gc.get_threshold()[2] > often[2]
        assert sys.getswitchinterval() < usual / 5
    assert seen(loaded)
    assert (gc.get_threshold(), sys.getswitchinterval()) == (often, usual)
