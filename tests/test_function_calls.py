"""What a model call costs, counted in function calls: the same on every machine, so that it can guard the hot path."""

import sys
from types import FrameType
from typing import Any

import pytest

from hira.agents.loop import Loop
from hira.agents.run_context import RoleConfig, RunContext
from hira.core.events import Events
from hira.core.messages import system, user
from hira.core.policy import Policy
from hira.policies import open_policy
from hira.testing import Endpoint
from hira.testing.endpoint import turns
from hira.tools import Observation, tool


@tool
async def lookup(query: str) -> Observation:
    "Look something up."
    return Observation(f"found {query}")


async def answer(policy: Policy, number: int) -> int:
    """A question with this many tool turns, everything included; how many model calls it took."""
    seen: list[Any] = []
    context = RunContext({"*": RoleConfig(policy)}, events=Events(seen.append))
    conversation = context.conversation("searcher")
    conversation.say(system("You answer questions."), user("What is it?"))
    step = await Loop(conversation, (lookup,), limit=number + 1).run()
    assert step.answer == "The answer is 42."
    assert len(seen) == 4 * number + 2
    return len(conversation.trajectory.turns)


async def functions_a_call(number: int) -> float:
    """Calls of functions, Python's and built-in ones, for each model call."""
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    with Endpoint(turns(number), keep=False) as endpoint:
        policy = open_policy("m", base_url=endpoint.base_url, api_key="k")
        await answer(policy, number)
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            made = await answer(policy, number)
        finally:
            sys.setprofile(before)
        await policy.aclose()
    return count / made


async def test_a_model_call_takes_four_thousand_function_calls_at_most_and_no_more_in_a_long_conversation():
    few, many = await functions_a_call(5), await functions_a_call(20)
    assert few <= 4000
    assert many <= 1.15 * few


@pytest.mark.heavy
async def test_a_hundred_turns_cost_no_more_a_call_than_twenty():
    assert await functions_a_call(100) <= 1.05 * await functions_a_call(20)
