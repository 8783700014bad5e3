"""What a model call costs, counted in function calls: the same on every machine, so that it can guard the hot path."""

import sys
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from hira import Hira
from hira.agents.loop import Loop
from hira.agents.run_context import RoleConfig, RunContext
from hira.core.events import Events
from hira.core.messages import system, user
from hira.core.policy import Completion, Policy, Request
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


QUESTIONS, TURNS = 20, 5
MOST_CALLS = {True: 2500, False: 2150}
MOST_BYTES = 3500
"""By whether the journal is on: function calls a model call; and bytes of its file a model call, which comes with what
the tool was asked and brought, with events, sources, and a sixth of what is recorded once in a run."""


def asked_lookup(request: Request) -> Completion:
    """Replies of a model that knows of no tool but `lookup`; hira offers Python, too."""
    ours = tuple(one for one in request.tools if one["function"]["name"] == "lookup")
    reply = turns(TURNS)
    assert callable(reply)
    said = reply(replace(request, tools=ours))
    assert isinstance(said, Completion)
    return said


@pytest.mark.parametrize("journal", [True, False])
async def test_a_question_through_the_public_door_takes_few_function_calls_and_bytes(
    tmp_path: Path, journal: bool
) -> None:
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    @tool
    async def lookup(query: str) -> str:
        "Look something up."
        return f"For {query}, the answer is 42."

    path = tmp_path / "journal.sqlite"
    with Endpoint(asked_lookup, keep=False) as endpoint:
        async with Hira(
            "m", base_url=endpoint.base_url, workflow="react", tools=[lookup], journal=path if journal else False
        ) as hira:
            for _ in range(QUESTIONS):
                before = sys.getprofile()
                count = 0
                sys.setprofile(note)
                try:
                    answer = await hira.ask("What is it?")
                finally:
                    sys.setprofile(before)
    assert (answer.text, answer.rollout.usage.calls) == ("The answer is 42.", TURNS + 1)
    assert count / (TURNS + 1) <= MOST_CALLS[journal]
    assert not journal or path.stat().st_size / (QUESTIONS * (TURNS + 1)) <= MOST_BYTES
