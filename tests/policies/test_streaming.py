"""How long replies may be and how long they are waited for, over real HTTP."""

import asyncio
import itertools
import json
import time
from collections.abc import Iterable
from typing import Any

import pytest

from hira.core.messages import user
from hira.core.policy import CallOptions, Completion, Delta, Request, Sampling
from hira.policies.endpoint import Endpoint as Hardened
from hira.policies.openai import OpenAIPolicy
from hira.policies.waiting import SLOW, USUAL, Pace, Timeout
from hira.testing import Endpoint
from hira.testing.faults import Fault, delta, flows, says

ASKED = Request((user("Where is the seat of the court?"),), Sampling(max_tokens=400))


def event(piece: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(piece).encode() + b"\n\n"


def flowing(words: Iterable[str], pause: float) -> Fault:
    """A stream of words with a pause after each, which ends by itself if they do."""
    told = (event(delta(word)) for word in words)
    return flows(lambda: itertools.chain(told, [event(delta("", "stop")), b"data: [DONE]\n\n"]), pause)


def counting() -> Iterable[str]:
    return (f"{number} " for number in itertools.count())


async def asked(
    fault: Fault, request: Request = ASKED, *, watched: bool = True, cut_after: float | None = None, **timeout: float
) -> Completion:
    seen: list[Delta] = []
    cut_at = None if cut_after is None else asyncio.get_running_loop().time() + cut_after
    call = CallOptions(seen.append if watched else None, cut_at=cut_at)
    with Endpoint(faults=lambda _: fault) as endpoint:
        policy = OpenAIPolicy("m", endpoint.base_url, timeout=Timeout(**timeout))
        completion = await Hardened(policy).complete(request, call)
        await policy.aclose()
        assert len(endpoint.calls) == 1, "what was cut is not asked for again"
        deadline = time.monotonic() + 2
        while endpoint.in_flight and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        assert endpoint.in_flight == 0, "the server is not left to write on"
    return completion


async def test_a_stream_that_goes_round_in_circles_is_cut_after_the_first_time() -> None:
    words = itertools.chain(["The ", "answer: "], itertools.cycle(["Paris ", "is ", "the ", "capital. "]))
    completion = await asked(flowing(words, 0.0002))
    assert completion.text.rstrip() == "The answer: Paris is the capital."
    assert (completion.finish, len(completion.notes)) == ("stop", 1)
    assert 100 < completion.usage.completion_tokens < 300, "what was cut off was written, too"


async def test_arguments_of_a_call_that_never_end_are_cut() -> None:
    def call(arguments: str, **named: str) -> bytes:
        return event(delta(None, tool_calls=[{"index": 0, "function": {"arguments": arguments, **named}}]))

    endless = flows(
        lambda: itertools.chain([call('{"queries": [', name="search")], itertools.repeat(call('"mars", '))), 0.0002
    )
    completion = await asked(endless)
    assert [one.arguments for one in completion.calls] == ['{"queries": ["mars", ']


async def test_a_whole_reply_is_trimmed_likewise_if_it_ran_out_of_length() -> None:
    again = "The capital is Paris. " * 60
    cut = says(content=f"So: {again}")
    ended = Fault(
        alter=lambda reply: reply | {"choices": [cut.alter(reply)["choices"][0] | {"finish_reason": "length"}]}
    )
    assert (await asked(ended, watched=False)).text.rstrip() == "So: The capital is Paris."
    assert (await asked(cut, watched=False)).text == f"So: {again}", "it had come to its end by itself"


async def test_an_endpoint_that_heeds_no_bound_is_cut() -> None:
    completion = await asked(flowing(counting(), 0.0), Request(ASKED.messages, Sampling(max_tokens=100)))
    assert completion.finish == "length"
    assert 100 <= completion.usage.completion_tokens <= 250
    assert "ignores the limit" in completion.notes[0]


async def test_a_reply_still_flowing_when_its_time_is_over_is_taken_as_far_as_it_came() -> None:
    unbounded = Request(ASKED.messages)
    completion = await asked(flowing(counting(), 0.01), unbounded, reply=0.3)
    assert completion.text.startswith("0 1 2 3 ")
    assert completion.finish == "length"
    assert "took too long" in completion.notes[0]


async def test_the_last_reply_is_cut_in_time_and_kept() -> None:
    completion = await asked(flowing(counting(), 0.01), watched=False, cut_after=0.3)
    assert completion.text.startswith("0 1 2 3 ")


def test_patience_grows_with_what_was_measured_and_never_shrinks() -> None:
    pace = Pace()
    assert pace.bound(USUAL, 5000, 4096) == (300, 120, 900)
    pace.saw_reading(1000, 100)
    pace.saw_writing(300, 100)
    assert pace.slow
    assert pace.bound(USUAL, 5000, 4096) == (3 * 500, 120, pytest.approx(3 * (500 + 4096 / 3)))
    pace.saw_writing(30_000, 10)
    assert pace.writes > SLOW
    assert pace.bound(USUAL, 100, 100) == (300, 120, 900)


async def test_who_gave_no_whole_reply_in_time_is_asked_for_a_stream() -> None:
    words = [f"{number} " for number in range(40)]

    with Endpoint(faults=lambda number: "silent" if number == 1 else flowing(words, 0.01)) as endpoint:
        policy = OpenAIPolicy("m", endpoint.base_url, timeout=Timeout(reply=0.3))
        completion = await Hardened(policy).complete(ASKED)
        await policy.aclose()
        assert ["stream" in call.body for call in endpoint.calls] == [False, True]
    assert completion.text == "".join(words)


async def test_a_slow_stream_has_the_time_that_its_tokens_need() -> None:
    words = [f"{number} " for number in range(60)]
    completion = await asked(flowing(words, 0.01), reply=0.3, between_tokens=0.2)
    assert completion.text == "".join(words), "0.6 seconds, though 0.3 are set: it flows, and its tokens are bounded"


async def test_what_a_reply_has_cost_that_broke_off_is_counted() -> None:
    words = ["one ", "two ", "three ", "four "]

    broken = flows(lambda: (event(delta(word)) for word in words), 0)
    with Endpoint(["good"], faults=lambda number: broken if number == 1 else "") as endpoint:
        policy = OpenAIPolicy("m", endpoint.base_url)
        completion = await Hardened(policy).complete(ASKED, lambda _: None)
        await policy.aclose()
    assert (completion.text, completion.usage.calls) == ("good", 2)
    assert completion.usage.completion_tokens >= 4
