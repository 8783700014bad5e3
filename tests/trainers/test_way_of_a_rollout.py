"""docs/architecture.md is true of training: `hira-train grpo` calls what the page lists, in its order."""

import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING

import pytest
from ways import check_order, steps_below

if TYPE_CHECKING:
    from small_place import Place


@pytest.mark.heavy
def test_a_rollout_takes_the_way_to_the_optimiser_that_the_page_shows(place: "Place") -> None:
    steps = steps_below("The path of a rollout")
    assert 5 < len(steps) <= 10
    called: dict[tuple[str, str], None] = {}

    def trace(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and "hira" in frame.f_code.co_filename:
            called.setdefault((frame.f_code.co_filename, frame.f_code.co_qualname))

    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        code = place.train("grpo", "run.toml", "train.steps=1", "data.held_out=")
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert code == 0, place.err
    check_order(steps, list(called))
