"""What is left out of collections of garbage, and how often threads switch, only for as long as questions are asked."""

import gc
import sys

from hira.cli.shell import short_pauses


def seen(one: object) -> bool:
    """Whether collections go through it."""
    return any(other is one for other in gc.get_objects())


def test_what_is_loaded_is_left_out_of_collections_and_counted_again_afterwards() -> None:
    often = gc.get_threshold()
    loaded: list[object] = []
    with short_pauses():
        assert not seen(loaded)
        assert gc.get_threshold()[2] > often[2]
    assert seen(loaded)
    assert gc.get_threshold() == often


def test_threads_switch_more_often_in_the_meantime() -> None:
    usual = sys.getswitchinterval()
    with short_pauses():
        assert sys.getswitchinterval() < usual / 5
    assert sys.getswitchinterval() == usual
