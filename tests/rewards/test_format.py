"""Accuracy and format as rewards, worked out by hand."""

from typing import Any

import pytest

from hira.agents.loop import Loop
from hira.agents.run_context import RoleConfig
from hira.agents.trajectory import Rollout, Trajectory, Turn
from hira.core.errors import EndpointError, ToolError
from hira.core.messages import user
from hira.evaluation.rewards.answers import ByJudge, ByWords, WithFormat, valid
from hira.testing import ScriptedPolicy, make_context
from hira.tools import tool


def made(answer: str = "", **calls: tuple[int, int]) -> Rollout:
    """A rollout whose conversations wrote so many calls that succeeded, and so many that could not be read."""
    record = Rollout("r", "how high?", "made", answer=answer)
    for name, (read, unread) in calls.items():
        turn: Any = Turn(None, None)  # type: ignore[arg-type]
        record.trajectories[name] = Trajectory(name, name.rstrip("0123456789"), [turn], read, unreadable=unread)
    return record


async def test_matpos_reward_is_nine_parts_accuracy_and_one_part_format() -> None:
    score = await WithFormat(ByWords())(made("It is 42 m.", planner=(1, 1), worker1=(3, 1)), ("42",))
    assert score.value == pytest.approx(0.9 + 0.1 * (0.5 * 0.5 + 0.5 * 0.75))
    assert score.parts == {"accuracy": 1.0, "format/planner": 0.5, "format/workers": 0.75}


@pytest.mark.parametrize(("variant", "value"), [("paper", 0.9), ("released", 0.95)])
async def test_an_answer_without_any_call_has_the_format_that_the_variant_gives_it(variant: Any, value: float) -> None:
    score = await WithFormat(ByWords(), variant=variant)(made("42", planner=(0, 0)), ("42",))
    assert score.value == pytest.approx(value)


async def test_a_judge_accepts_an_answer_that_is_one_of_the_references() -> None:
    policy = ScriptedPolicy(['{"verdict": "incorrect"}', '{"verdict": "correct", "reason": "the same height"}'])
    score = await ByJudge(RoleConfig(policy))(made("forty-two"), ("43", "42"))
    assert (score.value, score.why) == (1.0, "the same height")


@pytest.mark.parametrize(
    ("replies", "why"),
    [([EndpointError("down")], "down"), (["maybe", "perhaps"], "Your reply holds no JSON object.")],
)
async def test_a_judge_that_fails_leaves_no_reward_and_says_why(replies: list[Any], why: str) -> None:
    score = await ByJudge(RoleConfig(ScriptedPolicy(replies)))(made("42"), ("42",))
    assert score.value is None
    assert score.why == f"judge: the judge failed: {why}"


async def test_the_loop_counts_calls_that_failed_were_repeated_or_could_not_be_read() -> None:
    @tool(pure=True)
    def peek(place: str) -> str:
        """Look."""
        if place == "away":
            raise ToolError("there is nothing to see")
        return place

    replies = [f"<|begin_peek_call|> {place} <|end_peek_call|>" for place in ("here", "", "away", "here", "there")]
    context = make_context([*replies, "done"])
    conversation = context.conversation("planner")
    conversation.say(user("look"))
    await Loop(conversation, [peek]).run()
    path = conversation.trajectory
    assert (path.calls, path.failed, path.unreadable) == (4, 2, 1)
    assert valid(path) == 2 / 5
