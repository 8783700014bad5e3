"""What is left out of collections of garbage, and only for as long as questions are asked."""

import gc

from hira.cli.pauses import short_pauses


def test_what_is_loaded_is_left_out_of_collections_and_counted_again_afterwards() -> None:
    gc.unfreeze()  # what the tests themselves leave out
    often = gc.get_threshold()
    with short_pauses():
        assert gc.get_freeze_count() > 1000
        assert gc.get_threshold()[2] > often[2]
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() == often


def test_garbage_of_the_meantime_is_still_collected() -> None:
    with short_pauses():
        gc.collect()
        circle: list[object] = []
        circle.append(circle)
        del circle
        assert gc.collect() > 0
