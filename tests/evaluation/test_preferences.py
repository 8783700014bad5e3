"""Preference data, its split, and how well scores agree with it (rubrics paper, eq. 6 and 7)."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from hira.agents.run_context import RunContext
from hira.core.errors import DialectError, UsageError
from hira.core.policy import Request
from hira.evaluation.preferences import (
    WAYS,
    Preference,
    agreement,
    by_rubric,
    choose_candidates,
    evaluate_preferences,
    find_sound,
    format_agreements,
    margins,
    pairs_of,
    read_reports,
    split,
)
from hira.evaluation.record import Record, Score
from hira.evaluation.rewards.rubrics import GENERAL
from hira.evaluation.run import RECORDS
from hira.journal.lines import encode_line
from hira.runtime.settings import Settings
from hira.testing import Endpoint, ScriptedPolicy
from hira.testing.script import make_context
from hira.workflows.mams.rubrics import Rubric, RubricItem

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
    low, high = (f"{100 * bound:.1f}" for bound in (found.accuracy.low, found.accuracy.high))
    assert f"| 50.00 | {low} to {high} |" in format_agreements([found])


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


def test_a_pair_may_name_the_preferred_candidate_and_a_file_without_pairs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    row = {"query": "q", "first": "a", "second": "b"}
    for preferred, accepted, rejected in (("first", "a", "b"), (" Second ", "b", "a")):
        path.write_text(json.dumps({**row, "preferred": preferred}))
        assert pairs_of(path) == [Preference("1", "q", accepted, rejected)]
    path.write_text(json.dumps({**row, "preferred": "both"}))
    with pytest.raises(UsageError, match="no 'accepted'"):
        pairs_of(path)
    path.write_text("\n".join(json.dumps({"query": "q", "accepted": "a", "rejected": name}) for name in "xy"))
    assert [pair.id for pair in pairs_of(path)] == ["1", "2"], "without an id, the number of the row"
    path.write_text("")
    with pytest.raises(UsageError, match="no"):
        pairs_of(path)


def test_pairs_of_one_query_stay_together_in_the_order_of_the_file() -> None:
    pairs = [Preference(f"{at}", f"query {at % 10}", "a", "b") for at in range(30)]
    parts = split(pairs, seed=1)
    assert [len({pair.query for pair in part}) for part in parts] == [8, 1, 1]
    assert sum(map(len, parts)) == 30
    for part in parts:
        assert [int(pair.id) for pair in part] == sorted(int(pair.id) for pair in part)
        assert all(sum(one.query == pair.query for one in part) == 3 for pair in part)
    assert split(pairs, seed=1) == parts != split(pairs, seed=2)
    assert [len(part) for part in split(pairs[:10], (1, 1))] == [5, 5]


def test_candidates_are_two_different_reports_and_without_any_the_way_to_some_is_told() -> None:
    def report(name: str, text: str, value: float | None) -> Record:
        return Record("mams", name, "", "q", "", text, "answered", Score(None, value, "race"))

    same = [report("1", "good", 0.9), report("2", "good", 0.8), report("3", "fair", 0.5), report("4", "bad", None)]
    (row,) = choose_candidates(same)
    assert {row["first"], row["second"]} == {"good", "fair"}
    with pytest.raises(UsageError, match="no query with two scored reports") as caught:
        choose_candidates(same[:2])
    assert "--repeats 2" in caught.value.fix


def test_only_scored_reports_with_a_text_are_read(tmp_path: Path) -> None:
    def report(name: str, text: str, value: float | None) -> Record:
        return Record("mams", name, "", "q", "", text, "answered", Score(None, value, "race"))

    for folder, reports in (("a", [report("1", "x", 0.0), report("2", " ", 0.5)]), ("b", [report("3", "y", None)])):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / RECORDS).write_bytes(b"".join(encode_line(one) for one in reports))
    assert [one.id for one in read_reports([tmp_path / "a", tmp_path / "b"])] == ["1"]


async def test_a_rubric_that_cannot_be_written_or_whose_weights_add_up_to_0_gives_no_margin() -> None:
    items = [{"title": f"t{at}", "description": f"Key Criterion: {at}", "weight": 5} for at in range(7)]

    def reply(request: Request) -> str:
        if request.conversation.endswith("rubric"):
            return json.dumps({"items": items})
        return json.dumps({"rating": 10 if request.messages[0].values["report"] == "good" else 1})

    assert await margin("rubric", ScriptedPolicy(reply)) == 1.0
    assert await margin("rubric", {"rubric": ["no", "no"]}) is None
    assert (
        await margin("rubric", ScriptedPolicy(lambda one: reply(one) if "rubric" in one.conversation else "no")) is None
    )
    balanced = Rubric((RubricItem("a", "", 1), RubricItem("b", "", -1)))

    async def generator(_: RunContext, query: str) -> Rubric:
        assert query == PAIR.query
        return balanced

    assert await by_rubric(generator)(make_context(ScriptedPolicy(rating)), PAIR) is None


async def test_an_error_of_a_custom_generator_is_raised() -> None:
    async def generator(context: RunContext, query: str) -> Rubric:
        raise DialectError(query)

    with pytest.raises(DialectError):
        await by_rubric(generator)(make_context(ScriptedPolicy(rating)), PAIR)


async def test_a_verdict_that_fails_in_one_order_gives_no_margin() -> None:
    def reply(request: Request) -> str:
        return '{"better": "A"}' if request.messages[0].values["first"] == "good" else "no"

    assert await margin("pairwise", ScriptedPolicy(reply)) is None
    assert (
        await margin("pointwise", ScriptedPolicy(lambda one: rating(one) if "good" in one.messages[0].text else "no"))
        is None
    )


async def test_all_ways_are_measured_by_a_file_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    pairs = [{"query": f"q{at}", "accepted": "good", "rejected": "bad"} for at in range(3)]
    path.write_text("\n".join(map(json.dumps, pairs)))

    def reply(request: Request) -> str:
        text = request.messages[0].text
        if '"better"' in text:
            return json.dumps({"better": "A" if text.index("good") < text.index("bad") else "B"})
        return json.dumps({"rating": 9 if "good" in text.partition("Report:")[2] else 3})

    with Endpoint({"*": reply}) as endpoint:
        settings = Settings(model=endpoint.model, base_url=endpoint.base_url, api_key="k", cache=tmp_path / "c")
        points, signs = await evaluate_preferences(path, ["pointwise", "pairwise"], settings, concurrency=1)
        with pytest.raises(UsageError, match="unknown way of scoring 'points'"):
            await evaluate_preferences(path, ["pairwise", "points"], settings)
    assert [(one.way, one.pairs, one.unscored, one.auc) for one in (points, signs)] == [
        ("pointwise", 3, 0, 1.0),
        ("pairwise", 3, 0, 1.0),
    ]
    assert signs.d is None
    half = agreement("pairwise", [1.0, 1.0, -1.0, 0.0], scored=False)
    assert (half.d, agreement("rubric", [0.5]).d) == (None, None), "signs have no size, one margin no spread"


async def test_reports_with_an_evident_fault_are_left_out_and_those_that_the_judge_fails_on_stay(
    tmp_path: Path,
) -> None:
    def report(text: str) -> Record:
        return Record("mams", text, "", "q", "", text, "answered", Score(None, 1.0, "race"))

    def reply(request: Request) -> str:
        text = request.messages[0].text.partition("Report:")[2]
        return "no" if "odd" in text else json.dumps({"factual": "It is wrong." if "faulty" in text else ""})

    with Endpoint({"*": reply}) as endpoint:
        settings = Settings(model=endpoint.model, base_url=endpoint.base_url, api_key="k", cache=tmp_path / "c")
        kept = await find_sound([report("faulty"), report("sound"), report("odd")], settings)
    assert [one.id for one in kept] == ["sound", "odd"]
