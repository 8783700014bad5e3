"""Preference data, its split, and how well scores agree with it (rubrics paper, eq. 6 and 7)."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from hira.core.errors import UsageError
from hira.core.policy import Request
from hira.evaluation.preferences import (
    WAYS,
    Preference,
    agreement,
    choose_candidates,
    format_agreements,
    margins,
    pairs_of,
    split,
)
from hira.evaluation.record import Record, Score
from hira.evaluation.rewards.rubrics import GENERAL
from hira.testing import ScriptedPolicy
from hira.testing.script import make_context

PAIR = Preference("1", "Which?", "good", "bad")


def test_pairs_are_read_and_what_is_wrong_with_a_row_is_told(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    row = {"query": "q", "accepted": "a", "rejected": "b", "topic": "law"}
    path.write_text(json.dumps(row))
    assert pairs_of(path) == [Preference("1", "q", "a", "b", "law")]
    for wrong, told in (
        ({"rejected": ""}, "no 'rejected'"),
        ({"rejected": "a"}, "the same report"),
        ({"query": None}, "no 'query'"),
    ):
        path.write_text(json.dumps({**row, **wrong}))
        with pytest.raises(UsageError, match=told):
            pairs_of(path)
    path.write_text("\n".join(json.dumps({**row, "id": "x"}) for _ in range(2)))
    with pytest.raises(UsageError, match="is used twice"):
        pairs_of(path)


def test_the_two_best_scored_reports_of_a_query_are_the_candidates_for_annotation() -> None:
    def report(number: int, value: float, query: str = "q") -> Record:
        return Record("mams", f"{number}", "", query, "", f"report {number}", "answered", Score(None, value, "race"))

    (row,) = choose_candidates([report(1, 0.4), report(2, 0.0), report(3, 0.9), report(4, 0.5, "of one report")])
    assert {row["first"], row["second"]} == {"report 1", "report 3"}
    assert (row["id"], row["query"], row["preferred"]) == ("1", "q", ""), "a person writes which is preferred"


def test_eq_6_and_7_worked_by_hand() -> None:
    found = agreement("rubric", [0.3, 0.1, 0.0, -0.2, None])
    assert found.accuracy is not None
    assert found.d is not None
    assert (found.accuracy.value, found.ties, found.unscored, found.auc) == (0.5, 1, 1, 0.625)
    # Δ = .3, .1, 0, -.2: mean .05, squares about it .0625 .0025 .0025 .0625 = .13, over 3: .04333
    assert found.d.value == pytest.approx(0.05 / 0.043333**0.5, rel=1e-4)
    assert found.d.low is not None
    assert found.d.high is not None
    assert found.d.low < found.d.value < found.d.high


def test_an_effect_size_without_bounds_is_valid_json() -> None:
    for apart, told in (
        ([0.25, 0.25, 0.25], "| – | – | 0 of 3 |"),  # no spread: d has no value
        ([0.3 - 0.2, 0.2 - 0.1, 0.1], "| – | – | 0 of 3 |"),  # apart by rounding alone
        ([0.5, 0.25], "| 2.121 | 2.12 to ∞ |"),  # half of all draws have none
        ([-0.5, -0.25], "| -2.121 | −∞ to -2.12 |"),
        ([0.0, 0.0], "| 0.000 | 0.00 to 0.00 |"),
    ):
        found = agreement("rubric", apart)
        json.dumps(asdict(found), allow_nan=False)
        assert told in format_agreements([found])


def test_each_topic_is_shared_out_eight_to_one_to_one() -> None:
    pairs = [Preference(f"{topic}{at}", f"{topic}{at}", "a", "b", topic) for topic in "xyz" for at in range(20)]
    parts = split(pairs)
    assert [len(part) for part in parts] == [48, 6, 6]
    assert all(sum(one.topic == topic for one in parts[2]) == 2 for topic in "xyz")
    sizes = {"x": 10, "y": 20, "z": 40}
    pairs = [
        Preference(f"{topic}{at}", f"{topic}{at}", "a", "b", topic) for topic in sizes for at in range(sizes[topic])
    ]
    for seed in range(5):
        for part, share in zip(split(pairs, seed=seed), (8, 1, 1), strict=True):
            assert {topic: sum(one.topic == topic for one in part) for topic in sizes} == {
                "x": share,
                "y": 2 * share,
                "z": 4 * share,
            }


async def margin(way: str, replies: object) -> float | None:
    found = [one async for one in margins(WAYS[way], [PAIR], make_context(replies, dialect="native"))]  # type: ignore[arg-type]
    return found[0][1]


def rating(request: Request) -> str:
    return json.dumps({"rating": 8 if request.messages[0].values["report"] == "good" else 5})


async def test_margins_of_each_way() -> None:
    assert await margin("pointwise", ScriptedPolicy(rating)) == pytest.approx(3 / 9)
    assert await margin("general", ScriptedPolicy(rating)) == pytest.approx(3 / 9)
    assert await margin("pointwise", ["no", "no", "no", "no"]) is None


async def test_the_margin_by_a_rubric_is_that_of_eq_2_with_its_weights() -> None:
    """Weights 5, 5, 4, 4, 3, 3, 2, -2 add up to 24. Only the first item tells the reports apart, by 10 - 1, so that the
    margin is 5 · 9/9 / 24; the share of |w|, 28, would be another number."""

    def judge(request: Request) -> str:
        values = request.messages[0].values
        return json.dumps(
            {"rating": 10 if values["report"] == "good" and values["title"] == "Comprehensiveness" else 1}
        )

    assert GENERAL.weights == (5, 5, 4, 4, 3, 3, 2, -2)
    assert await margin("general", ScriptedPolicy(judge)) == pytest.approx(5 / 24)


async def test_a_pair_is_shown_both_ways_and_what_the_order_decided_is_a_tie() -> None:
    for shown_first, shown_second, worth in (("A", "B", 1.0), ("B", "A", -1.0), ("A", "A", 0.0), ("B", "B", 0.0)):
        said = {"good": shown_first, "bad": shown_second}
        replies = ScriptedPolicy(
            lambda asked, said=said: json.dumps({"better": said[asked.messages[0].values["first"]]})
        )
        assert await margin("pairwise", replies) == worth


def test_a_way_without_scores_or_pairs_has_dashes_in_table_1() -> None:
    rows = [agreement("pairwise", [1.0, 1.0, -1.0, 0.0], scored=False), agreement("rubric", [None, None])]
    signs, nothing = format_agreements(rows).splitlines()[2:]
    assert [cell.strip() for cell in signs.strip("|").split("|")][:2] == ["pairwise", "50.00"]
    assert [cell.strip() for cell in signs.strip("|").split("|")][3:] == ["–", "–", "1 of 4", "0"]
    assert [cell.strip() for cell in nothing.strip("|").split("|")] == ["rubric", "–", "–", "–", "–", "0 of 0", "2"]
