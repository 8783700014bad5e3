"""The edges of every reward: nothing to judge, nothing to compare, the least and the most."""

import math
from dataclasses import replace
from typing import Any

import pytest
from test_format import made
from test_hybrid import GOOD, REPORTS, judge, reported, written
from test_rubric import RUBRIC, VALID

from hira.agents.run_context import RoleConfig
from hira.core.errors import Stop, UsageError
from hira.evaluation.rewards.answers import (
    ByJudge,
    ByWords,
    Gated,
    RolloutScore,
    WithFormat,
    close_reward,
    form,
    of_verdict,
    valid,
)
from hira.evaluation.rewards.report_judge import Ratings, criteria_of, race
from hira.evaluation.rewards.rubrics import (
    GENERAL,
    INVALID,
    ByRubric,
    Generated,
    Hybrid,
    RewardParts,
    RewardWeights,
    read_rubric,
    total,
    write_general,
)
from hira.policies.dialects import NATIVE
from hira.testing import ScriptedPolicy
from hira.workflows.mams.rubrics import (
    FEWEST,
    MOST,
    PREFIXES,
    WEIGHTS,
    Rubric,
    RubricItem,
    Scores,
    faults,
    normalise_score,
    value_of,
    weighted_mean,
)

# --- MATPO's format


def test_the_format_of_one_conversation() -> None:
    (conversation,) = made(worker=(4, 1)).trajectories.values()
    conversation.failed = 1
    assert valid(conversation) == 3 / 5
    (idle,) = made(worker=(0, 0)).trajectories.values()
    assert (valid(idle), valid(idle, without=1.0)) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("calls", "planners", "workers"),
    [
        ({}, 0.0, 0.0),
        ({"planner": (1, 1)}, 0.5, 0.0),
        ({"planner": (0, 0)}, 0.75, 0.0),  # the share that is given to a planner without calls
        ({"planner": (1, 0), "worker1": (1, 1), "worker2": (0, 0)}, 1.0, 0.25),
        ({"agent": (3, 1)}, 0.75, 0.75),  # a single agent counts as both
        ({"agent": (0, 0)}, 0.0, 0.0),
    ],
)
def test_the_format_of_a_rollout(calls: dict[str, tuple[int, int]], planners: float, workers: float) -> None:
    assert form(made(**calls), direct=0.75) == (planners, workers)


def test_a_conversation_that_never_began_is_no_worker() -> None:
    rollout = made(planner=(1, 0), worker1=(1, 1), worker2=(2, 0))
    rollout.trajectories["worker2"].turns.clear()
    assert form(rollout) == (1.0, 0.5)
    assert form(rollout, planner="worker") == (0.75, 1.0), "any role may be the planner"


async def test_the_share_of_the_format_can_be_set_and_an_unscored_answer_keeps_its_format() -> None:
    rollout = made("42", planner=(1, 1), worker1=(1, 0))
    assert (await WithFormat(ByWords(), share=0.5)(rollout, ("42",))).value == pytest.approx(0.5 + 0.5 * 0.75)

    async def unscored(rollout: Any, references: tuple[str, ...]) -> RolloutScore:
        return RolloutScore(None, why="nobody knows")

    score = await WithFormat(unscored)(rollout, ("42",))
    assert (score.value, score.why) == (None, "nobody knows")
    assert score.parts == {"format/planner": 0.5, "format/workers": 1.0}


# --- answers


async def test_the_best_match_of_the_references_counts_and_nothing_earns_nothing() -> None:
    shares = ByWords(lambda answer, reference: len(reference) / 10)
    assert (await shares(made("x"), ("ab", "abcd", "abc"))).value == 0.4
    assert (await shares(made("x"), ())).value == 0.0
    assert await shares(made(""), ("ab",)) == RolloutScore(0.0, {"accuracy": 0.0})


async def test_a_judge_is_not_asked_about_nothing() -> None:
    policy = ScriptedPolicy([])
    assert (await ByJudge(RoleConfig(policy))(made(""), ("42",))).value == 0.0
    assert await ByJudge(RoleConfig(policy))(made("x"), ()) == RolloutScore(0.0, {"accuracy": 0.0})
    assert not policy.requests


async def test_a_judge_that_rejects_every_reference_gives_its_last_reason() -> None:
    replies = [f'{{"reason": "{reason}", "verdict": "incorrect"}}' for reason in ("too low", "too high")]
    score = await ByJudge(RoleConfig(ScriptedPolicy(replies)))(made("x"), ("1", "2"))
    assert score == RolloutScore(0.0, {"accuracy": 0.0}, why="too high")


async def test_a_judge_is_asked_no_more_once_a_reference_fits() -> None:
    policy = ScriptedPolicy(['{"reason": "the same", "verdict": "correct"}'])
    score = await ByJudge(RoleConfig(policy))(made("x"), ("1", "2"))
    assert (score.value, score.why, len(policy.requests)) == (1.0, "the same", 1)


async def test_a_run_that_must_stop_leaves_no_reward_and_says_why() -> None:
    stopped = RoleConfig(ScriptedPolicy([Stop("no money left")]), dialect=NATIVE)
    scores = [
        await ByJudge(stopped)(made("x"), ("1",)),
        await Hybrid(RoleConfig(ScriptedPolicy([Stop("no money left")] * 20), dialect=NATIVE))(
            await written(GOOD), REPORTS
        ),
    ]
    assert [(score.value, "no money left" in score.why) for score in scores] == [(None, True)] * 2


def test_marsrls_rewards() -> None:
    verdicts = {(accepts, right): of_verdict(accepts=accepts, right=right)
                for accepts in (True, False, None) for right in (True, False)}  # fmt: skip
    assert {case for case, reward in verdicts.items() if reward == 1.0} == {(True, True), (False, False)}
    assert set(verdicts.values()) == {0.0, 1.0}


class Closing(ScriptedPolicy):
    closed = 0

    async def aclose(self) -> None:
        self.closed += 1


async def test_every_reward_closes_the_policies_of_its_judges() -> None:
    judging, writing = Closing([]), Closing([])
    config, generator = RoleConfig(judging), RoleConfig(writing)
    for reward in (
        ByJudge(config),
        WithFormat(ByJudge(config)),
        Hybrid(config),
        ByRubric(config, write_general),
        ByRubric(replace(config, policy=Gated(config.policy, 1)), Generated(generator)),
        ByWords(),
        None,
    ):
        await close_reward(reward)
    assert (judging.closed, writing.closed) == (5, 1)


# --- rubrics


@pytest.mark.parametrize(("many", "allowed"), [(FEWEST - 1, False), (FEWEST, True), (MOST, True), (MOST + 1, False)])
def test_a_rubric_has_7_to_20_items(many: int, allowed: bool) -> None:
    items = [{**VALID[0], "title": f"Item {at}"} for at in range(many)]
    assert (faults(items) == []) is allowed


@pytest.mark.parametrize("kind", PREFIXES)
def test_the_weights_of_each_kind_and_no_others(kind: Any) -> None:
    def fits(weight: object) -> bool:
        item = {"title": "New", "description": f"{kind.title()} Criterion: it is there.", "weight": weight}
        return faults([*VALID[:6], item]) == []

    assert tuple(weight for weight in range(-4, 8) if fits(weight)) == tuple(sorted(WEIGHTS[kind]))
    assert fits(float(WEIGHTS[kind][0]))
    assert not any(map(fits, (True, 1.5, "5", None)))


def test_an_item_without_text_is_a_fault_and_a_title_may_stand_once() -> None:
    for change in (
        {"title": " "},
        {"description": ""},
        {"title": 5},
        {"more": 1},
        {"title": VALID[1]["title"].upper()},
    ):
        assert faults([{**VALID[0], **change}, *VALID[1:]]), change
    errors = [{"title": f"{at}", "description": "Error Criterion: it lies.", "weight": -1} for at in range(FEWEST)]
    assert faults(errors) == ["no item has a positive weight; a report must be able to earn something"]
    assert faults(None) == ["a rubric is a list of items"]


def test_a_rating_of_1_to_10_is_a_ninth_each() -> None:
    assert [value_of(rating) for rating in (1, 2, 10)] == [0.0, 1 / 9, 1.0]
    for wrong in (0, 11):
        with pytest.raises(ValueError, match="1 to 10"):
            value_of(wrong)


def test_eq_2_and_its_normalisation_at_their_edges() -> None:
    assert weighted_mean((5, -2), (1.0, 1.0)) == 1.0
    assert weighted_mean((1, -2), (1.0, 0.0)) == -1.0, "a negative sum prefers the worse report"
    assert [normalise_score((5, -2), values) for values in ((1, 0), (0, 1), (1, 1))] == [1.0, 0.0, 5 / 7]
    with pytest.raises(ValueError, match="nothing can be earned"):
        normalise_score((0, 0), (1.0, 1.0))
    balanced = Rubric((RubricItem("a", "b", 2), RubricItem("c", "d", -2)))
    assert (Scores(balanced, (10, 1)).weighted_mean, Scores(balanced, (10, 1)).normalised) == (None, 1.0)
    assert (Scores(RUBRIC, (None,) * 7).weighted_mean, Scores(RUBRIC, (None,) * 7).normalised) == (None, None)


def test_weights_of_a_reward_are_not_negative_and_not_all_0() -> None:
    for weights in (
        {"preference": -1.0},
        {"quality": -0.5},
        {"judge_scale": -1.0},
        {"preference": 0.0, "quality": 0.0},
    ):
        with pytest.raises(UsageError, match="at least 0"):
            RewardWeights(**weights)
    assert total(INVALID, RewardWeights(preference=0.0)) == -1.0
    assert total(RewardParts(None, 2.0, 0.0), RewardWeights(preference=0.0)) == 2.0
    assert total(RewardParts(1.0, None, 0.0), RewardWeights(judge_scale=0.0)) == 1.0


async def test_the_margin_of_the_papers_formula_is_that_of_eq_2() -> None:
    config = RoleConfig(judge(), dialect=NATIVE)
    paper = await Hybrid(config, formula="paper")(await written(GOOD), REPORTS)
    assert paper.parts["margin"] == pytest.approx(7 / 9), "8/9 - 1/9 on every item, over the sum of the weights"
    alone = await Hybrid(config, RewardWeights(preference=0.0))(await written(GOOD), REPORTS)
    assert "margin" not in alone.parts
    assert "accuracy" not in alone.parts
    worse = await Hybrid(RoleConfig(judge(lambda report, _: 2 if "better" in report else 9), dialect=NATIVE))(
        await written(GOOD), REPORTS
    )
    assert (worse.parts["preference"], worse.parts["accuracy"], worse.value) == (-1.0, 0.0, 2.0)
    with pytest.raises(UsageError, match="two reports, not 1"):
        await Hybrid(config)(await written(GOOD), REPORTS[:1])


async def test_a_rubric_is_read_from_the_writers_last_reply_alone() -> None:
    rollout = await written(GOOD)
    assert read_rubric(rollout) == RUBRIC
    (trajectory,) = rollout.trajectories.values()
    trajectory.role = "planner"
    assert read_rubric(rollout) is None
    trajectory.role = "rubric"
    trajectory.turns.clear()
    assert read_rubric(rollout) is None


async def test_the_score_of_a_report_has_the_numbers_of_items_and_words() -> None:
    score = await ByRubric(RoleConfig(judge(lambda *_: 10), dialect=NATIVE), write_general)(
        reported("three short words"), ()
    )
    weights = GENERAL.weights
    assert score.value == pytest.approx(sum(weight for weight in weights if weight > 0) / sum(map(abs, weights)))
    assert (score.parts["items"], score.parts["words"], score.parts["rubric"]) == (8.0, 3.0, score.value)
    nothing = await ByRubric(RoleConfig(judge(), dialect=NATIVE), write_general)(reported("  "), ())
    assert nothing == RolloutScore(0.0, {"rubric": 0.0}, why="there is no report")


# --- RACE


def test_criteria_without_a_positive_finite_weight_are_refused() -> None:
    def read(weight: float = 1.0, dimension: float = 1.0) -> Any:
        criteria = {"depth": [{"criterion": "why", "weight": weight}]}
        return criteria_of({"dimension_weight": {"depth": dimension}, "criterions": criteria})

    assert read()[0].criteria[0].explanation == ""
    assert read(dimension=0.0)[0].weight == 0.0
    for wrong in ({"weight": 0.0}, {"weight": -1.0}, {"weight": math.inf}, {"dimension": math.inf}):
        with pytest.raises(ValueError, match="depth"):
            read(**wrong)
    for value in ({}, {"dimension_weight": {}, "criterions": {}}, {"dimension_weight": {"depth": 1.0}}):
        with pytest.raises(ValueError, match="criteria have"):
            criteria_of(value)


def test_two_reports_that_earn_nothing_are_equal() -> None:
    dimensions = criteria_of(
        {"dimension_weight": {"depth": 1.0}, "criterions": {"depth": [{"criterion": "why", "weight": 2.0}]}}
    )
    nothing = race(dimensions, {"depth": Ratings((0.0,), (0.0,))})
    assert (nothing.overall, nothing.dimensions) == (0.5, {"depth": 0.5})
    assert race(dimensions, {"depth": Ratings((1.0,), (3.0,))}).overall == 0.25
