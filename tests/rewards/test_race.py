"""RACE by hand."""

import json

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
    for request in policy.requests:
        text, name = request.messages[-1].text, request.conversation.partition("/")[0]
        assert text.index("TARGET") < text.index("REFERENCE")
        assert "Compare funds." in text
        assert name in text
        (dimension,) = [dimension for dimension in DIMENSIONS if dimension.name == name]
        for number, criterion in enumerate(dimension.criteria, 1):
            assert f"{number}. {criterion.text}: {criterion.explanation}" in text, "the numbers that it answers with"


async def test_a_server_that_enforces_the_schema_has_every_criterion_rated_once() -> None:
    whole = {"ratings": [{"number": number, "first": 1, "second": 1} for number in (1, 2)]}
    policy = ScriptedPolicy({"judge": [json.dumps(whole)]})
    assert await judge_race(make_context(policy), "q", DIMENSIONS[:1], "TARGET", "REFERENCE")
    assert policy.requests[0].schema
    ratings = policy.requests[0].schema["properties"]["ratings"]
    assert ratings["minItems"] == ratings["maxItems"] == len(ratings["prefixItems"]) == 2
    assert [entry["properties"]["number"] for entry in ratings["prefixItems"]] == [{"const": 1}, {"const": 2}]
    assert all(entry["required"] == ["number", "first", "second"] for entry in ratings["prefixItems"])


async def test_ratings_that_leave_out_or_repeat_a_criterion_are_asked_for_once_more() -> None:
    one = {"number": 1, "first": 10, "second": 0}
    whole = {"ratings": [one, {**one, "number": 2}]}
    for wrong in ([one], [one, one], [one, {**one, "number": 3}], [{**one, "first": 11}, {**one, "number": 2}]):
        policy = ScriptedPolicy({"judge": [json.dumps({"ratings": wrong}), json.dumps(whole)]})
        found = await judge_race(make_context(policy), "q", DIMENSIONS[:1], "TARGET", "REFERENCE")
        assert found == race(DIMENSIONS[:1], {"insight": Ratings((10, 10), (0, 0))})
        assert len(policy.requests) == 2
    assert "Rate each of the criteria 1 to 2 once." not in policy.requests[0].messages[-1].text


async def test_one_dimension_that_the_judge_fails_on_leaves_the_report_unscored() -> None:
    right = '{"ratings": [{"number": 1, "first": 2, "second": 8}]}'
    policy = ScriptedPolicy(lambda request: right if request.conversation.startswith("readability") else "no")
    assert await judge_race(make_context(policy), "q", DIMENSIONS, "TARGET", "REFERENCE") is None


def test_a_share_of_nothing_is_a_half_and_weights_have_to_add_up_to_something() -> None:
    found = race(DIMENSIONS, {"insight": Ratings((0, 0), (0, 0)), "readability": Ratings((0,), (5,))})
    assert found.dimensions == {"insight": 0.5, "readability": 0.0}
    assert found.overall == 0.0
    nothing = race(DIMENSIONS, {"insight": Ratings((0, 0), (0, 0)), "readability": Ratings((0,), (0,))})
    assert nothing.overall == 0.5

    def criteria(weight: object, of_dimension: object = 1) -> dict[str, object]:
        return {
            "dimension_weight": {"insight": of_dimension},
            "criterions": {"insight": [{"criterion": "c", "weight": weight}]},
        }

    assert criteria_of(criteria(0.5)) == (Dimension("insight", 1.0, (Criterion("c", "", 0.5),)),)
    for broken in (criteria(0), criteria(-1), criteria(float("inf"))):
        with pytest.raises(ValueError, match="no criteria with a weight"):
            criteria_of(broken)
    with pytest.raises(ValueError, match="has the weight nan"):
        criteria_of(criteria(1, float("nan")))
    for broken in ({"dimension_weight": {}, "criterions": {}}, {"dimension_weight": {"a": 1}}, {"criterions": {}}):
        with pytest.raises(ValueError, match="criteria have dimension_weight and criterions"):
            criteria_of(broken)
