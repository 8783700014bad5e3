"""Preference data, its split, and how well scores agree with it (rubrics paper, eq. 6 and 7)."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hira.agents.rubrics.rubric import faults
from hira.core.errors import UsageError
from hira.core.policy import Request
from hira.evaluation.preferences import GENERAL, WAYS, Pair, agreement, margins, pairs_of, split, table
from hira.policies.offline import OfflinePolicy
from hira.testing import ScriptedPolicy
from hira.testing.script import make_context

PAIR = Pair("1", "Which?", "good", "bad")


def test_pairs_are_read_and_what_is_wrong_with_a_row_is_told(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    row = {"query": "q", "accepted": "a", "rejected": "b", "topic": "law"}
    path.write_text(json.dumps(row))
    assert pairs_of(path) == [Pair("1", "q", "a", "b", "law")]
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


@pytest.mark.parametrize(
    ("margins", "told"),
    [
        ([0.25, 0.25, 0.25], "| – | – | 0 of 3 |"),  # no spread: d has no value
        ([0.3 - 0.2, 0.2 - 0.1, 0.1], "| – | – | 0 of 3 |"),  # apart by rounding alone
        ([0.5, 0.25], "| 2.121 | 2.12 to ∞ |"),  # half of all draws have none
        ([-0.5, -0.25], "| -2.121 | −∞ to -2.12 |"),
        ([0.0, 0.0], "| 0.000 | 0.00 to 0.00 |"),
    ],
)
def test_an_effect_size_without_bounds_is_valid_json(margins: list[float], told: str) -> None:
    found = agreement("rubric", margins)
    json.dumps(found.json(), allow_nan=False)
    assert told in table([found])


def test_a_way_without_scores_has_no_effect_size_and_nothing_scored_no_figure() -> None:
    assert agreement("pairwise", [1, -1, 0], scored=False).d is None
    empty = agreement("rubric", [None, None])
    assert (empty.accuracy, empty.d, empty.unscored) == (None, None, 2)
    assert "| rubric | – |" in table([empty])


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=40))
def test_accuracy_is_the_auc_exactly_where_nothing_ties(margins: list[int]) -> None:
    found = agreement("made", margins, draws=20)
    assert found.accuracy is not None
    assert found.auc is not None
    assert found.auc - found.accuracy.value == pytest.approx(found.ties / 2 / len(margins))


@given(st.integers(1, 60), st.integers(1, 4), st.integers(0, 5))
def test_a_split_loses_nothing_and_keeps_queries_together(many: int, topics: int, seed: int) -> None:
    pairs = [Pair(str(at), f"q{at // 2}", "a", "b", f"t{at // 2 % topics}") for at in range(many)]
    parts = split(pairs, seed=seed)
    assert sorted(one.id for part in parts for one in part) == sorted(one.id for one in pairs)
    queries = [{one.query for one in part} for part in parts]
    assert not queries[0] & queries[1]
    assert not queries[0] & queries[2]
    assert not queries[1] & queries[2]
    assert split(pairs, seed=seed) == parts


def test_each_topic_is_shared_out_eight_to_one_to_one() -> None:
    pairs = [Pair(f"{topic}{at}", f"{topic}{at}", "a", "b", topic) for topic in "xyz" for at in range(20)]
    parts = split(pairs)
    assert [len(part) for part in parts] == [48, 6, 6]
    assert all(sum(one.topic == topic for one in parts[2]) == 2 for topic in "xyz")


def test_the_general_rubric_is_a_valid_one() -> None:
    assert faults(GENERAL.json()) == []


async def margin(way: str, replies: object) -> float | None:
    found = [one async for one in margins(WAYS[way], [PAIR], make_context(replies, dialect="native"))]  # type: ignore[arg-type]
    return found[0][1]


def rating(request: Request) -> str:
    return json.dumps({"rating": 8 if request.messages[0].values["report"] == "good" else 5})


async def test_margins_of_each_way() -> None:
    assert await margin("pointwise", ScriptedPolicy(rating)) == pytest.approx(3 / 9)
    wanted = sum(GENERAL.weights) * (7 - 4) / 9 / sum(map(abs, GENERAL.weights))
    assert await margin("general", ScriptedPolicy(rating)) == pytest.approx(wanted)
    assert await margin("pointwise", ["no", "no", "no", "no"]) is None


@pytest.mark.parametrize(
    ("verdicts", "worth"), [(("A", "B"), 1.0), (("B", "A"), -1.0), (("A", "A"), 0.0), (("B", "B"), 0.0)]
)
async def test_a_pair_is_shown_both_ways_and_what_the_order_decided_is_a_tie(
    verdicts: tuple[str, str], worth: float
) -> None:
    def said(request: Request) -> str:
        shown = request.messages[0].values["first"] == "good"
        return json.dumps({"better": verdicts[0] if shown else verdicts[1]})

    assert await margin("pairwise", ScriptedPolicy(said)) == worth


async def test_offline_agrees_with_a_plain_preference_in_every_way() -> None:
    pair = Pair(
        "1",
        "Compare tidal and wind power for small islands",
        "# Tidal and wind power\n\nTidal power suits small islands with strong tides [s1].\n\n## Conclusion\n\nBy comparison wind costs less [s2].",
        "Bread is baked from flour.",
    )
    for way in ("rubric", "pointwise", "pairwise"):
        found = [one async for one in margins(WAYS[way], [pair], make_context(OfflinePolicy()))]
        assert found[0][1] is not None
        assert found[0][1] > 0, way
