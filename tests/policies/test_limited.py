"""One gate for all who ask an endpoint: how many at once, and none while it is down."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest
from virtual import Clock

from hira.core.errors import AccessDenied, BadReply, ContextOverflow, EndpointError, RateLimited
from hira.core.messages import user
from hira.core.policy import Completion, Request
from hira.policies.endpoint import Endpoint
from hira.policies.limited import Down, RateLimiter, gate_at
from hira.policies.waiting import FAILURES, PATIENCE_SECONDS, SHUT_SECONDS

ASKED = Request((user("x"),), conversation="planner")


class Server:
    """A policy that answers as `act` says, once it may `go`, and counts how many it has under way."""

    model = "m"

    def __init__(self, act: Callable[["Server"], str] = lambda _: "good") -> None:
        self.act, self.asked, self.flying, self.most = act, 0, 0, 0
        self.go = asyncio.Event()
        self.go.set()

    async def complete(self, request: Request, watch: Any = None) -> Completion:
        self.asked += 1
        self.flying += 1
        self.most = max(self.most, self.flying)
        try:
            await asyncio.sleep(0)
            await self.go.wait()
            return Completion(self.act(self))
        finally:
            self.flying -= 1

    async def aclose(self) -> None: ...


def refuse(error: EndpointError) -> Callable[[Server], str]:
    def act(_: Server) -> str:
        raise error

    return act


def gate_and_time() -> tuple[RateLimiter, Clock]:
    time = Clock()
    return RateLimiter(clock=time.clock, sleep=time.sleep), time


def trouble() -> EndpointError:
    return EndpointError("status 500", status=500, retryable=True)


async def refused(gate: RateLimiter, calls: int) -> None:
    """So many calls, under way together, that are all told of a rate limit."""
    for _ in range(calls):
        await gate.enter("", patient=True)
    for _ in range(calls):
        gate.record_failure(RateLimited("slow", status=429, retryable=True), ASKED, gate.clock())
        gate.leave(trial=False)


# --- how many at once


async def test_a_healthy_endpoint_is_asked_by_all_at_once() -> None:
    gate, time = gate_and_time()
    server = Server()
    policy = Endpoint(server, lambda: gate, attempts=1)
    await asyncio.gather(*(policy.complete(ASKED) for _ in range(1000)))
    assert (server.most, gate.limit, gate.flying, time.slept) == (1000, math.inf, 0, [])


async def test_a_rate_limit_shrinks_what_is_under_way_once_for_all_that_were() -> None:
    gate, _ = gate_and_time()
    await refused(gate, 100)
    assert gate.limit == 80


async def test_an_endpoint_that_takes_few_serves_a_crowd_without_using_up_anyones_attempts() -> None:
    gate, time = gate_and_time()

    def act(server: Server) -> str:
        if server.flying > 10:
            raise RateLimited("slow", status=429, retryable=True)
        return "good"

    server = Server(act)
    policy = Endpoint(server, lambda: gate, sleep=time.sleep)
    replies = await asyncio.gather(*(policy.complete(ASKED) for _ in range(200)))
    assert [reply.text for reply in replies] == ["good"] * 200
    assert gate.limit < 200


async def test_the_limit_grows_by_rounds_that_use_it() -> None:
    gate, _ = gate_and_time()
    await refused(gate, 10)
    policy = Endpoint(Server(), lambda: gate, attempts=1)
    assert gate.limit == 8
    await policy.complete(ASKED)
    assert gate.limit == 8, "what does not use the limit says nothing about it"
    await asyncio.gather(*(policy.complete(ASKED) for _ in range(8)))
    assert 8 < gate.limit <= 9


async def test_a_retry_after_holds_everyone_at_that_endpoint() -> None:
    gate, time = gate_and_time()
    refusing = Server(refuse(RateLimited("slow", status=429, retryable=True, retry_after=20)))
    with pytest.raises(RateLimited):
        await Endpoint(refusing, lambda: gate, attempts=1).complete(ASKED)
    other = Server()
    await Endpoint(other, lambda: gate, attempts=1).complete(ASKED)
    assert time.slept == [20]


async def test_who_gives_up_waiting_takes_nobodys_place() -> None:
    gate, _ = gate_and_time()
    gate.limit = 1
    server = Server()
    server.go.clear()
    policy = Endpoint(server, lambda: gate, attempts=1)
    first, second, third = (asyncio.ensure_future(policy.complete(ASKED)) for _ in range(3))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.sleep(0)
    server.go.set()
    assert [(await first).text, (await third).text, gate.flying] == ["good", "good", 0]


# --- the breaker


async def broken(gate: RateLimiter) -> None:
    policy = Endpoint(Server(refuse(trouble())), lambda: gate, attempts=1)
    for _ in range(FAILURES):
        with pytest.raises(EndpointError, match="status 500"):
            await policy.complete(ASKED)


async def test_after_five_failures_in_a_row_an_endpoint_is_left_alone_for_half_a_minute() -> None:
    gate, time = gate_and_time()
    await broken(gate)
    server = Server()
    with pytest.raises(Down, match="failed 5 times in a row; requests are paused: status 500"):
        await Endpoint(server, lambda: gate, attempts=1, patient=False).complete(ASKED)
    assert server.asked == 0
    assert (await Endpoint(server, lambda: gate, attempts=1).complete(ASKED)).text == "good"
    assert time.slept == [SHUT_SECONDS]


async def test_one_call_tries_whether_it_is_back_while_the_others_wait_for_it() -> None:
    gate, _ = gate_and_time()
    await broken(gate)
    server = Server()
    trying: list[int] = []
    server.act = lambda one: (trying.append(one.flying), "good")[1]
    policy = Endpoint(server, lambda: gate, attempts=1)
    await asyncio.gather(*(policy.complete(ASKED) for _ in range(20)))
    assert trying[0] == 1
    assert max(trying) > 1
    assert trying.count(1) == 2, "the trial alone, then the others together"


async def test_an_endpoint_that_stays_down_is_waited_for_two_minutes_in_all() -> None:
    gate, time = gate_and_time()
    began = time.now
    await broken(gate)
    server = Server(refuse(trouble()))
    policy = Endpoint(server, lambda: gate, attempts=99, sleep=time.sleep)
    with pytest.raises(Down):
        await policy.complete(ASKED)
    assert PATIENCE_SECONDS <= time.now - began <= PATIENCE_SECONDS + 2 * SHUT_SECONDS
    assert server.asked <= PATIENCE_SECONDS / SHUT_SECONDS + 1


async def test_a_trial_that_is_cancelled_leaves_the_next_one_to_try() -> None:
    gate, time = gate_and_time()
    await broken(gate)
    time.now += SHUT_SECONDS
    stuck = Server()
    stuck.go.clear()
    trial = asyncio.ensure_future(Endpoint(stuck, lambda: gate, attempts=1).complete(ASKED))
    await asyncio.sleep(0)
    waiting = asyncio.ensure_future(Endpoint(Server(), lambda: gate, attempts=1).complete(ASKED))
    await asyncio.sleep(0)
    trial.cancel()
    assert (await waiting).text == "good"


async def test_what_is_the_requests_own_fault_opens_no_breaker() -> None:
    gate, _ = gate_and_time()
    for error in (BadReply("what"), ContextOverflow("long", status=500), AccessDenied("no", status=401)):
        for _ in range(2 * FAILURES):
            with pytest.raises(type(error)):
                await Endpoint(Server(refuse(error)), lambda: gate, attempts=1).complete(ASKED)
    schema = Request(ASKED.messages, schema={"type": "object"})
    for _ in range(2 * FAILURES):
        with pytest.raises(EndpointError):
            await Endpoint(Server(refuse(trouble())), lambda: gate, attempts=1).complete(schema)
    assert (await Endpoint(Server(), lambda: gate, attempts=1, patient=False).complete(ASKED)).text == "good"


async def test_policies_at_one_endpoint_share_its_gate_and_others_have_their_own() -> None:
    assert gate_at("http://a/v1") is gate_at("http://a/v1")
    assert gate_at("http://a/v1") is not gate_at("http://b/v1")
    here = gate_at("http://a/v1")
    there = await asyncio.to_thread(asyncio.run, _gate_of_this_loop("http://a/v1"))
    assert here is not there


async def _gate_of_this_loop(base_url: str) -> RateLimiter:
    return gate_at(base_url)
