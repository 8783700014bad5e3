"""Rubrics (rubrics paper, section 3.3): what is valid, eq. 2 and its safe normalisation, writing, judging."""

import json
from dataclasses import replace
from math import isclose
from typing import Any

import pytest

from hira.core.errors import EndpointError
from hira.core.events import Notice
from hira.core.policy import Request
from hira.evaluation.rewards.report_judge import find_faults, pairwise, pointwise, quality, score
from hira.testing import ScriptedPolicy
from hira.testing.script import make_context
from hira.workflows.mams.rubrics import (
    WEIGHTS,
    Rubric,
    RubricItem,
    Scores,
    faults,
    generate,
    normalise_score,
    value_of,
    weighted_mean,
)

QUERY = "Compare tidal and wind power for small islands"


def item(weight: int, title: str = "", kind: str = "") -> dict[str, Any]:
    kind = kind or next(kind for kind, weights in WEIGHTS.items() if weight in weights)
    return {
        "title": title or f"Item of {weight}",
        "description": f"{kind.title()} Criterion: it is so.",
        "weight": weight,
    }


VALID = [item(5), item(4), item(3), item(2), item(1), item(-1), item(-2)]
RUBRIC = Rubric.of(VALID)


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("no list", "a rubric is a list of items"),
        (VALID[:6], "there are 6 items; write 7 to 20"),
        ([item(5, f"Title {at}") for at in range(21)], "there are 21 items; write 7 to 20"),
        ([*VALID, "text"], "item 8: it is not an object"),
        ([*VALID, item(5, "A") | {"note": "x"}], "item 8: its keys are description, note, title, weight"),
        ([*VALID, item(5, "A") | {"weight": "5"}], "item 8: its weight is '5'"),
        (
            [*VALID, item(5, "A") | {"description": "It is so."}],
            "item 8: its description begins with none of Key Criterion:",
        ),
        ([*VALID, item(4, "A", "key")], "item 8: its weight is 4, but one that begins with Key Criterion weighs 5"),
        ([*VALID, item(2, "A", "important")], "weighs 3 or 4"),
        ([*VALID, item(-3, "A", "error")], "weighs -1 or -2"),
        ([*VALID, item(5)], "the title 'item of 5' is used twice"),
        ([*VALID, item(5, "A") | {"title": " "}], "item 8: title and description must be non-empty strings"),
        ([*VALID, item(5, "A") | {"description": ""}], "item 8: title and description must be non-empty strings"),
        ([*VALID, item(5, "A") | {"weight": 5.5}], "item 8: its weight is 5.5"),
        ([*VALID, item(5, "A") | {"weight": True}], "item 8: its weight is True"),
        ([*VALID, item(5, "A") | {"description": "Key Criterion:"}], "item 8: its description has nothing after"),
        ([*VALID, {}], "item 8: its keys are none"),
        ([item(-1, f"Title {at}") for at in range(7)], "no item has a positive weight"),
    ],
)
def test_what_is_no_rubric_is_told_by_all_that_is_wrong_with_it(value: object, wrong: str) -> None:
    assert wrong in "; ".join(faults(value))
    with pytest.raises(ValueError, match=r"item|rubric|title|weight"):
        Rubric.of(value)


def test_the_criterion_of_an_item_is_its_description_without_the_prefix() -> None:
    for description in ("Key Criterion: it says why", "关键标准：it says why", "it says why"):
        assert RubricItem("Why", description, 5).criterion == "it says why"


def test_a_rubric_is_read_from_a_list_and_from_what_the_command_writes() -> None:
    assert Rubric.of({"query": QUERY, "items": VALID}) == Rubric.of(VALID) == RUBRIC
    for nothing in ({"query": QUERY}, {}, None, 7):
        with pytest.raises(ValueError, match="a rubric is a list of items"):
            Rubric.of(nothing)


def test_seven_to_twenty_items_are_a_rubric_and_whole_floats_are_whole_numbers() -> None:
    for many in (7, 20):
        given = [item(5, f"Title {at}") for at in range(many)]
        assert faults(given) == []
        assert len(Rubric.of(given).items) == many
    given[0]["weight"] = 5.0
    assert Rubric.of(given).weights[0] == 5
    assert Rubric.of(Rubric.of(VALID).json()) == RUBRIC


def test_a_rating_is_from_1_to_10_and_weights_that_cancel_give_no_mean() -> None:
    assert (value_of(1), value_of(10)) == (0.0, 1.0)
    for rated in (0, 11):
        with pytest.raises(ValueError, match="a rating is from 1 to 10"):
            value_of(rated)
    balanced = Scores(Rubric((RubricItem("a", "", 2), RubricItem("b", "", -2))), (10, 1))
    assert (balanced.weighted_mean, balanced.normalised) == (None, 1.0)


def test_eq_2_worked_by_hand() -> None:
    """Weights 5, 4, 1; ratings 10, 4, 1, which are 1, 1/3 and 0: (5 + 4/3) / 10."""
    assert isclose(weighted_mean([5, 4, 1], [value_of(10), value_of(4), value_of(1)]), 19 / 30)


@pytest.mark.parametrize(
    ("weights", "values", "mean", "safe"),
    [
        ([5, 5, 4, -2, -1], [1, 1, 1, 0, 0], 14 / 11, 1.0),
        ([5, 5, 4, -2, -1], [0, 0, 0, 1, 1], -3 / 11, 0.0),
        ([1, -2], [0, 1], 2.0, 0.0),
    ],
)
def test_negative_weights_take_eq_2_out_of_its_range_and_the_normalisation_stays_in_it(
    weights: list[float], values: list[float], mean: float, safe: float
) -> None:
    """Weights 5, 5, 4, -2, -1: 1.27 for a perfect report, -0.27 for the worst. With 1, -2 eq. 2 prefers the bad one."""
    assert isclose(weighted_mean(weights, values), mean)
    assert isclose(normalise_score(weights, values), safe, abs_tol=1e-12)


def test_eq_2_has_no_value_where_the_weights_add_up_to_0() -> None:
    with pytest.raises(ValueError, match="add up to 0"):
        weighted_mean([2, -1, -1], [1, 0, 0])
    assert normalise_score([2, -1, -1], [1, 0, 0]) == 1.0
    with pytest.raises(ValueError, match="all weights are 0"):
        normalise_score([0, 0], [1, 1])


def test_a_missing_rating_leaves_the_report_without_a_score() -> None:
    scores = Scores(RUBRIC, (10, 10, 10, 10, 10, 1, None))
    assert (scores.values, scores.weighted_mean, scores.normalised) == (None, None, None)
    whole = Scores(RUBRIC, (10, 10, 10, 10, 10, 1, 1))
    assert whole.weighted_mean == 15 / 12
    assert whole.normalised == 1.0


async def test_a_rubric_is_written_by_any_policy_and_asked_for_again_with_all_its_faults() -> None:
    bad = [item(4, "A", "key"), *VALID[1:], {"title": "x"}]
    policy = ScriptedPolicy(
        {"rubric": [json.dumps({"items": bad}), f"Here:\n```json\n{json.dumps({'items': VALID})}\n```"]}
    )
    rubric = await generate(make_context(policy).conversation("rubric"), QUERY)
    assert rubric == RUBRIC
    first, second = policy.requests
    assert QUERY in first.messages[0].text
    assert "7 to 20 items" in first.messages[0].text
    told = second.messages[-1].text
    assert "item 1: its weight is 4, but one that begins with Key Criterion weighs 5" in told
    assert "item 8: its keys are title" in told


async def test_a_rubric_for_a_chinese_query_is_asked_for_in_chinese() -> None:
    policy = ScriptedPolicy([json.dumps({"items": VALID})])
    await generate(make_context(policy).conversation("rubric"), "比较三家基金的费用")
    assert "descriptions in Chinese" in policy.requests[0].messages[0].text


def rating(values: dict[str, Any]) -> Any:
    """A judge that rates by the title of the item."""

    def reply(request: Request) -> str:
        title = request.messages[0].values["title"]
        found = values[title]
        if isinstance(found, BaseException):
            raise found
        return found if isinstance(found, str) else json.dumps({"reason": "so", "rating": found})

    return reply


RATINGS = {f"Item of {weight}": rated for weight, rated in {5: 10, 4: 7, 3: 4, 2: 1, 1: 10, -1: 1, -2: 10}.items()}


async def test_a_report_is_scored_item_by_item_and_each_judge_sees_one_item_without_its_weight() -> None:
    policy = ScriptedPolicy({"judge": rating(RATINGS)})
    scores = await score(make_context(policy), RUBRIC, QUERY, "# Report\n\nTides are certain.")
    assert scores.ratings == (10, 7, 4, 1, 10, 1, 10)
    earned = 5 + 4 * 6 / 9 + 3 * 3 / 9 + 0 + 1 - 0 - 2
    assert scores.weighted_mean is not None
    assert scores.normalised is not None
    assert isclose(scores.weighted_mean, earned / 12)
    assert isclose(scores.normalised, (earned + 3) / 18)
    assert sorted(request.conversation for request in policy.requests) == [f"{at}/judge" for at in range(1, 8)]
    for request in policy.requests:
        text = request.messages[0].text
        assert "Tides are certain." in text
        assert sum(title in text for title in RATINGS) == 1
        assert "Criterion:" not in text, "whether it is a merit or a fault is not for the judge to know"
    reweighted = ScriptedPolicy({"judge": rating(RATINGS)})
    others = Rubric(tuple(replace(one, weight=97 - one.weight) for one in RUBRIC.items))
    await score(make_context(reweighted), others, QUERY, "# Report\n\nTides are certain.")
    assert shown_by_conversation(reweighted) == shown_by_conversation(policy), "no weight reaches a judge"


def shown_by_conversation(policy: ScriptedPolicy) -> dict[str, str]:
    return {request.conversation: "\n".join(one.text for one in request.messages) for request in policy.requests}


@pytest.mark.parametrize("failure", [EndpointError("overloaded"), "no json", '{"rating": 11}'])
async def test_a_judge_that_fails_gives_none_never_0(failure: Any) -> None:
    policy = ScriptedPolicy({"judge": rating({**RATINGS, "Item of 5": failure})})
    context = make_context(policy)
    heard: list[Any] = []
    context.events.readers.append(heard.append)
    scores = await score(context, RUBRIC, QUERY, "Report")
    assert scores.ratings == (None, 7, 4, 1, 10, 1, 10)
    assert scores.normalised is None
    assert "1/judge: the judge failed" in next(one.text for one in heard if isinstance(one, Notice))


async def judged(reply: Any, ask: Any) -> Any:
    policy = ScriptedPolicy({"judge": [reply] if not isinstance(reply, list) else reply})
    return await ask(make_context(policy).conversation("judge"))


async def test_the_quality_of_a_rubric_is_a_reward_of_0_to_4_with_a_confidence() -> None:
    found = await judged(
        '{"reason": "sound", "reward": 3.25, "confidence": 80}', lambda one: quality(one, QUERY, RUBRIC)
    )
    assert (found.reward, found.confidence, found.reason) == (3.25, 80, "sound")
    twice = ['{"reward": 4.5}', '{"reward": -1}']
    assert await judged(twice, lambda one: quality(one, QUERY, RUBRIC)) is None


async def test_reports_are_judged_by_themselves_and_in_pairs() -> None:
    assert await judged('{"rating": 8}', lambda one: pointwise(one, QUERY, "Report")) == 8
    assert await judged('{"better": "A"}', lambda one: pairwise(one, QUERY, "One", "Other")) == "first"
    assert await judged('{"better": "B"}', lambda one: pairwise(one, QUERY, "One", "Other")) == "second"
    assert await judged(["tie", '{"better": "C"}'], lambda one: pairwise(one, QUERY, "One", "Other")) is None
    assert await judged(EndpointError("gone"), lambda one: pointwise(one, QUERY, "Report")) is None


async def test_each_fault_keeps_a_report_from_people_and_a_judge_that_fails_finds_none() -> None:
    found = '{"factual": "The year is wrong.", "citations": "", "superficial": "It only lists."}'
    assert await judged(found, lambda one: find_faults(one, QUERY, "Report")) == (
        "The year is wrong.",
        "It only lists.",
    )
    assert await judged("{}", lambda one: find_faults(one, QUERY, "Report")) == ()
    assert await judged(["no", "no"], lambda one: find_faults(one, QUERY, "Report")) == ()
