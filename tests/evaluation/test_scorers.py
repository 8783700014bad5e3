"""What the scorers make of an answer."""

import json
from dataclasses import replace

import pytest

from hira.agents.trajectory import Rollout
from hira.core.errors import UsageError
from hira.evaluation.files import Item
from hira.evaluation.record import Score
from hira.evaluation.scorers import BY_WORDS, JUDGED, check, score_by_fact
from hira.evidence import Citation, Verdict
from hira.runtime.answer import Answer, Status
from hira.testing import ScriptedPolicy, make_context


async def test_fact_is_the_share_of_distinct_citations_that_hold_and_0_without_any() -> None:
    item, score = Item("1", "How high is it?", ("31 m",)), score_by_fact(None)

    def answer(*citations: Citation) -> Answer[str]:
        return Answer("31 m [s1].", "answered", citations, (), Rollout("r", item.question, "hira"), "scripted")

    high, old = Citation("s1", "high", "", Verdict.SUPPORTED), Citation("s1", "old", "", Verdict.CONTRADICTED)
    attributed = Citation("s2", "new", "", Verdict.SUPPORTED, attributed=True)
    assert (await score(item, answer(attributed))).value == 0.0
    assert (await score(item, answer(high, high, old, attributed))).value == 0.5


CRITERIA = {
    "dimension_weight": {"depth": 0.5, "reading": 0.5},
    "criterions": {
        "depth": [{"criterion": "why", "explanation": "causes", "weight": 1}],
        "reading": [{"criterion": "clear", "explanation": "sentences", "weight": 1}],
    },
}
RUBRIC = [{"title": f"t{at}", "description": f"Key Criterion: it tells {at}", "weight": 5} for at in range(7)]
TOWER = Item("1", "How high is it?", ("31 m",))


def answer_of(text: str, *citations: Citation, status: Status = "answered") -> Answer[str]:
    return Answer(text, status, citations, (), Rollout("r", "How high is it?", "hira"), "scripted")


async def score_with(metric: str, item: Item, answer: Answer[str], *replies: str) -> tuple[Score, list[str]]:
    """The score by a metric that asks a judge, and what the judge was asked."""
    policy = ScriptedPolicy({"judge": list(replies)})
    score = await JUDGED[metric](make_context(policy))(item, answer)
    return score, [request.messages[-1].text for request in policy.requests]


@pytest.mark.parametrize("written", [CRITERIA, json.dumps(CRITERIA)], ids=["an object", "text"])
async def test_race_is_the_reports_share_of_both_ratings_and_unscored_if_the_judge_fails(written: object) -> None:
    item = replace(TOWER, meta={"criteria": written, "reference": "The other report."})
    depth = '{"ratings": [{"number": 1, "first": 6, "second": 2}]}'
    score, asked = await score_with("race", item, answer_of("My report."), depth, depth)
    assert (score.correct, score.value, score.parts) == (None, 0.75, {"depth": 0.75, "reading": 0.75})
    assert all("My report." in text and "The other report." in text for text in asked)
    failed, _ = await score_with("race", item, answer_of("My report."), *["no ratings"] * 4)
    assert failed.value is None
    assert "the judge failed: " in failed.note
    assert "JSON" in failed.note


@pytest.mark.parametrize("written", [RUBRIC, json.dumps(RUBRIC)], ids=["a list", "text"])
async def test_a_rubric_scores_each_item_and_no_report_if_the_judge_fails(written: object) -> None:
    item = replace(TOWER, meta={"rubric": written})
    score, _ = await score_with("rubric", item, answer_of("My report."), *['{"rating": 10}'] * 7)
    assert (score.correct, score.value) == (None, 1.0)
    assert score.note == ", ".join(f"t{at} 10" for at in range(7))
    failed, _ = await score_with("rubric", item, answer_of("My report."), *["no rating"] * 14)
    assert failed.value is None
    assert "the judge failed: " in failed.note


def test_a_question_that_lacks_what_a_metric_needs_is_named_with_the_way_out() -> None:
    several = replace(TOWER, answers=(), every=("31 m", "1904"))
    for metric, item, what, fix in (
        ("rubric", TOWER, "has no rubric that can be used: the column is missing", "hira rubric QUERY"),
        ("rubric", replace(TOWER, meta={"rubric": "[]"}), "has no rubric that can be used: there are 0", "hira rubric"),
        ("race", TOWER, "has no criteria that can be used: the column is missing", "criteria in the benchmark's shape"),
        ("race", replace(TOWER, meta={"criteria": {}}), "has no criteria that can be used: criteria have", "criteria"),
        ("race", replace(TOWER, meta={"criteria": CRITERIA}), "has no reference", "a report to compare with"),
        ("race", replace(TOWER, meta={"criteria": CRITERIA, "reference": " "}), "has no reference", "a report"),
        ("match", replace(TOWER, answers=()), "has no reference answer", "--column answer=NAME"),
        ("em", several, "needs several answers at once", "--metric match"),
        ("numeric", several, "needs several answers at once", "--metric match"),
    ):
        with pytest.raises(UsageError, match=what) as caught:
            check(metric, [replace(item, id="7")], "q.jsonl")
        assert "question '7'" in caught.value.what
        assert fix in caught.value.fix
        assert "q.jsonl" in caught.value.where
    for metric in (*BY_WORDS, *JUDGED):
        if metric not in ("rubric", "race"):
            check(metric, [TOWER], "q.jsonl")
    check("match", [TOWER, several, replace(TOWER, answers=(), unanswerable=True)], "q.jsonl")
    check("rubric", [replace(TOWER, meta={"rubric": RUBRIC})], "q.jsonl")
    check("race", [replace(TOWER, meta={"criteria": CRITERIA, "reference": "r"})], "q.jsonl")
    check("my own", [replace(TOWER, answers=())], "q.jsonl")


async def test_by_words_every_text_is_wanted_and_a_known_answer_otherwise() -> None:
    several = replace(TOWER, answers=(), every=("31 m", "1904"))
    half = await BY_WORDS["match"](several, answer_of("It is 31 m high [s1]."))
    assert (half.correct, half.value) == (False, 0.5)
    assert (await BY_WORDS["match"](several, answer_of("31 m, in 1904."))).correct is True
    for metric, text, right, value in (
        ("match", "It is 31 m high.", True, 4 / 7),
        ("match", "It is 13 m high.", False, 2 / 7),
        ("em", "31 m", True, 1.0),
        ("em", "It is 31 m high.", False, 4 / 7),
        ("numeric", "31", True, 1.0),
        ("numeric", "32", False, 0.0),
    ):
        score = await BY_WORDS[metric](
            replace(TOWER, answers=("31 m" if metric != "numeric" else "31",)), answer_of(text)
        )
        assert (score.correct, score.metric) == (right, metric), text
        assert score.value == pytest.approx(value), text


async def test_an_unanswerable_question_is_right_only_if_the_answer_says_so_and_cites_nothing() -> None:
    item = Item("1", "How high is it?", unanswerable=True)
    cited = Citation("s1", "high", "", Verdict.SUPPORTED)
    refusal = answer_of("Nothing says so.", status="insufficient_evidence")
    for answer, right in (
        (refusal, True),
        (replace(refusal, citations=(cited,)), False),
        (answer_of("31 m"), False),
    ):
        for metric, score in BY_WORDS.items():
            found = await score(item, answer)
            assert (found.correct, found.value, found.metric) == (right, float(right), metric)
        judged, asked = await score_with("hira", item, answer)
        assert (judged.correct, judged.value, asked) == (right, float(right), [])


async def test_a_judge_decides_with_its_reason_by_the_set_and_leaves_open_what_it_cannot_read() -> None:
    right = '{"reason": "the same", "verdict": "correct"}'
    score, (asked,) = await score_with("hira", TOWER, answer_of("It is 31 m high."), right)
    assert (score.correct, score.value, score.metric) == (True, 1.0, "hira")
    assert "the same" in score.note
    assert "31 m" in asked
    wrong, _ = await score_with("hira", TOWER, answer_of("42 m"), '{"reason": "no", "verdict": "incorrect"}')
    assert (wrong.correct, wrong.value) == (False, 0.0)
    failed, asks = await score_with("hira", TOWER, answer_of("42 m"), "perhaps", "perhaps")
    assert (failed.correct, failed.value, "holds no JSON object" in failed.note, len(asks)) == (None, None, True, 2)
    silent, asks = await score_with("hira", TOWER, answer_of(""))
    assert (silent.correct, silent.value, silent.note, asks) == (False, 0.0, "there is no answer", [])
    webwalker = replace(TOWER, judge="webwalker")
    _, (own,) = await score_with("hira", webwalker, answer_of("31 m"), right)
    _, (named,) = await score_with("webwalker", TOWER, answer_of("31 m"), right)
    _, (usual,) = await score_with("hira", TOWER, answer_of("31 m"), right)
    assert own == named != usual, "HiRA's judge is that of the question's set"
    grade = '{"reason": "none given", "grade": "NOT_ATTEMPTED"}'
    graded, (asked,) = await score_with("simpleqa", webwalker, answer_of("31 m"), grade)
    assert (graded.correct, graded.note) == (False, "NOT_ATTEMPTED: none given")
    assert asked != named, "a judge that was named is asked, whatever the set"
