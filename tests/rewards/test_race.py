"""RACE by hand."""

import pytest

from hira.evaluation.rewards.report_judge import Criterion, Dimension, Ratings, criteria_of, judge_race, race
from hira.testing import ScriptedPolicy, make_context

DIMENSIONS = (
    Dimension("insight", 0.6, (Criterion("depth", "how deep", 0.75), Criterion("new", "what is new", 0.25))),
    Dimension("readability", 0.4, (Criterion("clear", "how clear", 1.0),)),
)


def test_the_score_is_the_targets_share_of_what_both_earn() -> None:
    found = race(DIMENSIONS, {"insight": Ratings((8, 4), (6, 10)), "readability": Ratings((5,), (5,))})
    insight = (0.75 * 8 + 0.25 * 4, 0.75 * 6 + 0.25 * 10)
    assert insight == (7, 7)
    assert found.dimensions == {"insight": 0.5, "readability": 0.5}
    found = race(DIMENSIONS, {"insight": Ratings((8, 8), (4, 4)), "readability": Ratings((2,), (8,))})
    assert found.dimensions["insight"] == pytest.approx(8 / 12)
    assert found.overall == pytest.approx((0.6 * 8 + 0.4 * 2) / (0.6 * 8 + 0.4 * 2 + 0.6 * 4 + 0.4 * 8))


def test_criteria_are_read_in_the_shape_of_the_benchmark() -> None:
    read = criteria_of(
        {
            "dimension_weight": {"insight": 0.6, "readability": 0.4},
            "criterions": {
                "insight": [
                    {"criterion": "depth", "explanation": "how deep", "weight": 0.75},
                    {"criterion": "new", "explanation": "what is new", "weight": 0.25},
                ],
                "readability": [{"criterion": "clear", "explanation": "how clear", "weight": 1}],
            },
        }
    )
    assert read == DIMENSIONS
    for broken in ({}, {"dimension_weight": {"insight": 1}, "criterions": {}}):
        with pytest.raises(ValueError, match="criteri"):
            criteria_of(broken)


async def test_the_judge_rates_both_reports_on_every_criterion_of_each_dimension() -> None:
    replies = {
        "insight": '{"ratings": [{"number": 2, "first": 8, "second": 4}, {"number": 1, "first": 8, "second": 4}]}',
        "readability": '{"ratings": [{"number": 1, "first": 2, "second": 8}]}',
    }
    policy = ScriptedPolicy({"judge": lambda request: replies[request.conversation.partition("/")[0]]})  # type: ignore[dict-item]
    found = await judge_race(make_context(policy), "Compare funds.", DIMENSIONS, "TARGET", "REFERENCE")
    assert found
    assert found.overall == pytest.approx(5.6 / 11.2)
    assert all("TARGET" in str(request.messages[-1].text) for request in policy.requests)
