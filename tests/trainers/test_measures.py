"""The figures of an update: what a training run shows of its rollouts."""

import pytest
from rollouts_made import attempt, group, rollout, row, turn

from hira.evaluation.rewards.answers import RolloutScore
from hira.trainers.credit import mars
from hira.trainers.metrics import measure_rollouts, measure_update, summarise_exam, summarise_scores
from hira.trainers.rows import ScoredRollout


def test_the_number_of_tools_of_a_question_and_the_share_of_each_are_measured() -> None:
    """MARS, Fig. 3c to 3f."""
    calls = ({("system2", "search"): [True, True, False], ("system2", "python"): [True]}, {})
    scored = [
        ScoredRollout(attempt(at, 1.0), rollout(system2=[turn([1], [2])]), RolloutScore(1.0), tools=tools)
        for at, tools in enumerate(calls)
    ]
    measured = measure_rollouts(scored)
    assert measured["tools"] == 2
    assert (measured["tool_calls/search"], measured["tool_calls/python"]) == (1.5, 0.5)
    assert (measured["tool_share/search"], measured["tool_share/python"]) == (0.75, 0.25)


def test_an_exam_has_the_accuracy_of_the_answers_and_not_their_reward() -> None:
    """MARS, Fig. 3a: the score along training. The reward of MATPO has a part for the format."""
    parts = {"accuracy": 1.0, "format/planner": 0.0}
    scores = [RolloutScore(0.9, parts), RolloutScore(0.05, {"accuracy": 0.0}), RolloutScore(1.0), RolloutScore(None)]
    assert summarise_scores(scores, "sampled") == pytest.approx(
        {"sampled": 2 / 3, "sampled/accuracy": 0.5, "sampled/format/planner": 0.0}
    )


def test_the_shortest_mean_and_longest_reply_of_both_systems_are_measured() -> None:
    """MARS, Fig. 3g to 3i."""
    given = [group(attempt(0, 1.0, row("system2", 9), row("system1", 2)), attempt(1, 0.0, row("system2", 7)))]
    measured = measure_update(given, mars(given))
    assert [measured[name] for name in ("length_min", "length", "length_max")] == pytest.approx([2, 6, 9])
    assert (measured["system1/length"], measured["system2/length"]) == (2, 8), "sampled tokens, by role"


def test_an_exam_of_several_sets_has_the_accuracy_of_each_and_of_all() -> None:
    """MATPO, Fig. 5: three sets along training."""
    by_set = {"gaia": [RolloutScore(1.0), RolloutScore(0.0)], "frames": [RolloutScore(1.0)], "webwalkerqa": []}
    assert summarise_exam(by_set, "greedy") == pytest.approx(
        {"greedy": 2 / 3, "gaia/greedy": 0.5, "frames/greedy": 1.0, "webwalkerqa/greedy": None}
    )
    assert summarise_exam({"": [RolloutScore(1.0)]}, "greedy") == {"greedy": 1.0}
