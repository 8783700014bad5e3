"""The hybrid reward of a rubric generator (rubrics paper, eq. 1 to 3), and the reward of a report by its rubric."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from test_rubric import RUBRIC, VALID

from hira.agents.run_context import RoleConfig
from hira.agents.trajectory import Rollout
from hira.core.errors import EndpointError, UsageError
from hira.core.policy import Completion, Request
from hira.evaluation.rewards.answers import Gated
from hira.evaluation.rewards.rubrics import (
    INVALID,
    ByRubric,
    Generated,
    Hybrid,
    RewardParts,
    RewardWeights,
    preference,
    total,
)
from hira.policies.dialects import NATIVE
from hira.testing import ScriptedPolicy
from hira.testing.script import make_context
from hira.workflows.mams import RubricWriting
from hira.workflows.mams.rubrics import Rubric
from hira.workflows.workflow import rollout

REPORTS = ("the better report", "the worse report")


@pytest.mark.parametrize(
    ("parts", "weights", "worth"),
    [
        (RewardParts(1.0, 4.0, 0.0), RewardWeights(), 5.0),  # the most there is
        (INVALID, RewardWeights(), -2.0),  # the least
        (RewardParts(1.0, 3.0, 0.0), RewardWeights(preference=2.0, quality=0.5), 3.5),
        (RewardParts(1.0, 3.0, 0.0), RewardWeights(judge_scale=0.25), 1.75),
        (RewardParts(1.0, None, 0.0), RewardWeights(), None),
        (RewardParts(None, 3.0, 0.0), RewardWeights(), None),
    ],
)
def test_eq_1_worked(parts: RewardParts, weights: RewardWeights, worth: float | None) -> None:
    assert total(parts, weights) == worth


def test_a_tie_orders_nothing_and_a_missing_score_says_nothing() -> None:
    assert [preference(0.6, 0.5), preference(0.5, 0.6), preference(0.5, 0.5)] == [1.0, -1.0, -1.0]
    assert preference(None, 0.5) is preference(0.5, None) is None


def judge(
    better: Callable[[str, str], int] = lambda report, _: 9 if "better" in report else 2, reward: object = 3
) -> ScriptedPolicy:
    """Rates each item of a report, and gives every rubric the same reward."""

    def said(request: Request) -> str:
        message = request.messages[0]
        if message.prompt == "rubric_quality":
            if isinstance(reward, Exception):
                raise reward
            return json.dumps({"reason": "so", "reward": reward, "confidence": 80})
        return json.dumps({"rating": better(str(message.values["report"]), str(message.values["title"]))})

    return ScriptedPolicy(said)


async def written(reply: str) -> Rollout:
    return await rollout(RubricWriting(), "Which?", make_context([reply], dialect="native"))


GOOD = json.dumps({"items": VALID})


async def rewarded(reply: str, policy: ScriptedPolicy, **options: Any) -> Any:
    return await Hybrid(RoleConfig(policy, dialect=NATIVE), **options)(await written(reply), REPORTS)


async def test_a_rubric_that_orders_as_people_did_earns_preference_and_quality() -> None:
    score = await rewarded(GOOD, judge())
    assert score.value == 1 + 3 + 0
    assert score.parts["accuracy"] == 1.0, "the preference accuracy of eq. 6"
    # v is 8/9 against 1/9 on all items, the errors of weight -1 and -2 included
    a, b = (sum(w * v for w, v in zip(RUBRIC.weights, [v] * 7, strict=True)) for v in (8 / 9, 1 / 9))
    assert score.parts["margin"] == pytest.approx((a - b) / sum(map(abs, RUBRIC.weights)))
    assert (score.parts["preference"], score.parts["quality"], score.parts["format"], score.parts["items"]) == (
        1,
        3,
        0,
        7,
    )


@pytest.mark.parametrize("reply", ["no JSON", json.dumps({"items": VALID[:6]})])
async def test_what_is_no_valid_rubric_is_the_worst_and_asks_no_judge(reply: str) -> None:
    policy = judge()
    score = await rewarded(reply, policy)
    assert score.value == -2.0
    assert policy.requests == []


async def test_a_judge_that_fails_leaves_the_rollout_without_a_reward() -> None:
    def broken(report: str, title: str) -> int:
        if "worse" in report and title == VALID[3]["title"]:
            raise EndpointError("gone")
        return 5

    unscored = await rewarded(GOOD, judge(broken))
    assert unscored.value is None
    assert "gone" in unscored.why
    assert (await rewarded(GOOD, judge(reward=EndpointError("gone")))).value is None
    assert (await rewarded(GOOD, judge(reward=7))).value is None  # out of its range, asked twice


async def test_what_has_no_weight_is_not_asked() -> None:
    policy = judge()
    assert (await rewarded(GOOD, policy, weights=RewardWeights(quality=0.0))).value == 1.0
    assert {request.messages[0].prompt for request in policy.requests} == {"rubric_rate"}
    policy = judge()
    assert (await rewarded(GOOD, policy, weights=RewardWeights(preference=0.0))).value == 3.0
    assert {request.messages[0].prompt for request in policy.requests} == {"rubric_quality"}


# --- reports


def reported(answer: str, query: str = "Which?") -> Rollout:
    record = Rollout("r", query, "mams")
    record.answer = answer
    return record


async def known_rubric(_: str) -> Rubric:
    return RUBRIC


async def test_all_rollouts_of_a_query_are_measured_by_one_rubric() -> None:
    generator, policy = ScriptedPolicy([GOOD]), judge()
    reward = ByRubric(RoleConfig(policy, dialect=NATIVE), Generated(RoleConfig(generator, dialect=NATIVE)))
    scores = await asyncio.gather(*(reward(reported(text), ()) for text in (*REPORTS, "")))
    assert len(generator.requests) == 1
    wanted = [(sum(w * v for w in RUBRIC.weights) + 3) / 18 for v in (8 / 9, 1 / 9)]
    assert [scores[0].value, scores[1].value] == pytest.approx(wanted)
    assert scores[2].value == 0.0


async def test_no_rubric_and_a_failed_judge_are_no_zero() -> None:
    policy = judge()
    nothing = Generated(RoleConfig(ScriptedPolicy(["no", "no", GOOD]), dialect=NATIVE))
    reward = ByRubric(RoleConfig(policy, dialect=NATIVE), nothing)
    assert (await reward(reported("a report"), ())).value is None
    assert (await reward(reported("a report"), ())).value is not None  # what failed is tried again
    broken = ByRubric(RoleConfig(ScriptedPolicy(lambda _: "no"), dialect=NATIVE), known_rubric)
    failed = await broken(reported("a report"), ())
    assert failed.value is None
    assert "7 of 7 items" in failed.why


async def test_no_more_calls_than_the_gate_lets_in_are_under_way() -> None:
    class Counting:
        model = "counting"
        now = most = 0

        async def complete(self, request: Request, watch: object = None) -> Completion:
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.002)
            self.now -= 1
            return Completion('{"rating": 5}')

        async def aclose(self) -> None: ...

    counting = Counting()
    part = RoleConfig(Gated(counting, 3), dialect=NATIVE)  # type: ignore[arg-type]
    reward = ByRubric(part, known_rubric)
    await asyncio.gather(*(reward(reported("a report"), ()) for _ in range(4)))
    assert counting.most == 3
    with pytest.raises(UsageError):
        Gated(judge(), 0)
