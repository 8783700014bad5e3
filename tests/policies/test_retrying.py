"""Retries, in one place."""

from dataclasses import replace

import pytest

from hira.core.errors import BadReply, EndpointError, RateLimited, UsageError
from hira.core.messages import user
from hira.core.policy import Completion, Request, Usage
from hira.policies.reply import EmptyReply
from hira.policies.retrying import retrying
from hira.testing import ScriptedPolicy

ASKED = Request((user("x"),), conversation="planner")


class Sleeps(list):
    async def __call__(self, seconds):
        self.append(seconds)


def trouble(**more):
    return EndpointError("trouble", retryable=True, **more)


def empty():
    return EmptyReply(Completion("", usage=Usage(1, 10, 0)), where="at x")


async def test_waits_grow_and_are_a_random_share():
    sleeps = Sleeps()
    policy = retrying(ScriptedPolicy([trouble()] * 6 + ["good"]), attempts=7, sleep=sleeps, jitter=lambda: 1.0)
    assert (await policy.complete(ASKED)).text == "good"
    assert sleeps == [0.5, 1, 2, 4, 8, 8]


async def test_no_wait_is_so_short_that_it_hammers():
    sleeps = Sleeps()
    await retrying(ScriptedPolicy([trouble(), "good"]), sleep=sleeps, jitter=lambda: 0.0).complete(ASKED)
    assert sleeps == [0.1]


async def test_what_cannot_pass_is_raised_at_once():
    sleeps = Sleeps()
    for error in (EndpointError("no"), UsageError("no"), BadReply("no")):
        with pytest.raises(type(error)):
            await retrying(ScriptedPolicy([error]), sleep=sleeps).complete(ASKED)
    assert sleeps == []


async def test_the_server_says_how_long_to_wait():
    sleeps = Sleeps()
    limited = RateLimited("slow", retryable=True, retry_after=7)
    await retrying(ScriptedPolicy([limited, "good"]), sleep=sleeps, jitter=lambda: 0.0).complete(ASKED)
    assert sleeps == [7]


async def test_a_wait_of_hours_fails_at_once_and_says_until_when():
    sleeps = Sleeps()
    limited = RateLimited("slow", retryable=True, retry_after=7200)
    with pytest.raises(RateLimited, match=r"accepts no requests until \d{4}-\d\d-\d\d \d\d:\d\d"):
        await retrying(ScriptedPolicy([limited]), sleep=sleeps).complete(ASKED)
    assert sleeps == []


async def test_attempts_are_bounded_and_told():
    script = ScriptedPolicy([trouble() for _ in range(9)])
    with pytest.raises(EndpointError, match="trouble; asked 3 times"):
        await retrying(script, attempts=3, sleep=Sleeps()).complete(ASKED)
    assert len(script.requests) == 3


async def test_replies_that_are_no_completion_are_asked_for_three_times():
    script = ScriptedPolicy([BadReply("what", retryable=True) for _ in range(9)])
    with pytest.raises(BadReply, match="asked 3 times"):
        await retrying(script, sleep=Sleeps()).complete(ASKED)


async def test_silence_is_asked_once_more_and_then_handed_on():
    completion = await retrying(ScriptedPolicy([empty(), empty()]), sleep=Sleeps()).complete(ASKED)
    assert (completion.text, completion.usage) == ("", Usage(2, 20, 0))


async def test_the_cost_of_silence_is_counted():
    good = Completion("good", usage=Usage(1, 10, 3))
    completion = await retrying(ScriptedPolicy([empty(), good]), sleep=Sleeps()).complete(ASKED)
    assert (completion.text, completion.usage) == ("good", Usage(2, 20, 3))


async def test_a_watcher_is_told_the_new_reply_from_its_beginning():
    seen = []

    class Breaks:
        model = "m"
        asked = 0

        async def complete(self, request, watch=None):
            self.asked += 1
            watch(f"try {self.asked}")
            if self.asked == 1:
                raise trouble()
            return Completion("whole")

        async def aclose(self):
            seen.append("closed")

    policy = retrying(Breaks(), sleep=Sleeps())
    await policy.complete(ASKED, seen.append)
    await policy.aclose()
    assert seen == ["try 1", "try 2", "closed"]
    assert policy.model == "m"


async def test_who_waits_is_told_why_and_how_long():
    told = []
    asked = replace(ASKED, tell=told.append)
    refused = [EndpointError("the endpoint refused the connection", retryable=True) for _ in range(3)]
    await retrying(ScriptedPolicy([*refused, "good"]), sleep=Sleeps(), jitter=lambda: 1.0).complete(asked)
    assert told == [
        "the endpoint refused the connection; trying again in 1 s (3 of 5)",
        "the endpoint refused the connection; trying again in 2 s (4 of 5)",
    ]


def thought(tokens):
    completion = Completion("", reasoning="hm", finish="length", usage=Usage(1, 50, tokens))
    return EmptyReply(completion, where="at x")


async def test_more_room_for_thought_stays_within_what_is_left_of_the_budget():
    script = ScriptedPolicy([thought(800), "good"])
    await retrying(script, sleep=Sleeps()).complete(replace(ASKED, left=1500))
    assert script.requests[1].sampling.max_tokens == 1500 - 850 - 50


async def test_silence_is_handed_on_where_no_budget_is_left_to_ask_again():
    script = ScriptedPolicy([thought(800)])
    completion = await retrying(script, sleep=Sleeps()).complete(replace(ASKED, left=900))
    assert (completion.text, completion.usage) == ("", Usage(1, 50, 800))
