"""What is left out of collections of garbage, and only for as long as questions are asked."""

import gc

from hira.cli.pauses import short_pauses


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


def test_garbage_of_the_meantime_is_still_collected() -> None:
    with short_pauses():
        gc.collect()
        circle: list[object] = []
        circle.append(circle)
        del circle
        assert gc.collect() > 0
