"""What an endpoint's faults do to those who ask it: one gate for all, models that fall back, prompts that must fit."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest

from hira.core.errors import AccessDenied, BadReply, ContextOverflow, EndpointError, RateLimited, Withheld
from hira.core.events import Events, Notice
from hira.core.messages import Message, ToolCall, assistant, user
from hira.core.policy import Completion, Request, Sampling, Usage
from hira.core.tokens import count
from hira.policies import open_policy
from hira.policies.dialects import DIALECTS, Call
from hira.policies.failures import failure
from hira.policies.fallback import Fallback, names_of, place_of
from hira.policies.fitting import fitting, trim_messages
from hira.policies.limited import FAILURES, PATIENCE_SECONDS, SHUT_SECONDS, Down, RateLimiter, gate_at, limit_policy
from hira.policies.retrying import retrying
from hira.testing import Endpoint, ScriptedPolicy
from hira.testing.script import make_context

ASKED = Request((user("x"),), conversation="planner")


class Time:
    """A clock that sleeping moves on; others run meanwhile."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        self.slept.append(seconds)
        await asyncio.sleep(0)
        self.now = max(self.now, until)


class Server:
    """A policy that answers as `act` says and counts how many it has under way."""

    model = "m"

    def __init__(self, act: Callable[["Server"], str]) -> None:
        self.act, self.asked, self.flying, self.most = act, 0, 0, 0

    async def complete(self, request: Request, watch: Any = None) -> Completion:
        self.asked += 1
        self.flying += 1
        self.most = max(self.most, self.flying)
        try:
            await asyncio.sleep(0)
            return Completion(self.act(self))
        finally:
            self.flying -= 1

    async def aclose(self) -> None: ...


def refuse(error: EndpointError) -> Callable[[Server], str]:
    def act(_: Server) -> str:
        raise error

    return act


def gate_and_time() -> tuple[RateLimiter, Time]:
    time = Time()
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
    server = Server(lambda _: "good")
    policy = limit_policy(server, lambda: gate)
    await asyncio.gather(*(policy.complete(ASKED) for _ in range(1000)))
    assert (server.most, gate.limit, gate.flying, time.slept) == (1000, math.inf, 0, [])


async def test_a_rate_limit_shrinks_what_is_under_way_once_for_all_that_were() -> None:
    gate, _ = gate_and_time()
    await refused(gate, 100)
    assert gate.limit == 80


async def test_a_stray_refusal_among_many_replies_shrinks_it_only_now_and_then() -> None:
    gate, time = gate_and_time()

    number = iter(range(10_000))

    def act(_: Server) -> str:
        if next(number) % 20 == 0:
            raise RateLimited("slow", status=429, retryable=True)
        return "good"

    policy = limit_policy(Server(act), lambda: gate)
    for _ in range(20):
        await asyncio.gather(*(policy.complete(ASKED) for _ in range(50)), return_exceptions=True)
        time.now += 0.5
    assert gate.limit >= 40


async def test_calls_beyond_the_limit_wait_their_turn_and_all_are_served() -> None:
    gate, _ = gate_and_time()
    gate.limit = 7
    server = Server(lambda _: "good")
    replies = await asyncio.gather(*(limit_policy(server, lambda: gate).complete(ASKED) for _ in range(50)))
    assert len(replies) == 50
    assert 7 <= server.most <= 20  # clean rounds widen it


async def test_an_endpoint_that_takes_few_serves_a_crowd_without_using_up_anyones_attempts() -> None:
    gate, time = gate_and_time()

    def act(server: Server) -> str:
        if server.flying > 10:
            raise RateLimited("slow", status=429, retryable=True)
        return "good"

    server = Server(act)
    policy = retrying(limit_policy(server, lambda: gate), sleep=time.sleep)
    replies = await asyncio.gather(*(policy.complete(ASKED) for _ in range(200)))
    assert [reply.text for reply in replies] == ["good"] * 200
    assert gate.limit < 200


async def test_the_limit_grows_by_rounds_that_use_it() -> None:
    gate, _ = gate_and_time()
    await refused(gate, 10)
    policy = limit_policy(Server(lambda _: "good"), lambda: gate)
    assert gate.limit == 8
    await policy.complete(ASKED)
    assert gate.limit == 8, "what does not use the limit says nothing about it"
    await asyncio.gather(*(policy.complete(ASKED) for _ in range(8)))
    assert 8 < gate.limit <= 9


async def test_a_retry_after_holds_everyone_at_that_endpoint() -> None:
    gate, time = gate_and_time()
    refusing = Server(refuse(RateLimited("slow", status=429, retryable=True, retry_after=20)))
    with pytest.raises(RateLimited):
        await limit_policy(refusing, lambda: gate).complete(ASKED)
    other = Server(lambda _: "good")
    await limit_policy(other, lambda: gate).complete(ASKED)
    assert time.slept == [20]


async def test_a_pause_of_hours_fails_everyone_at_once_and_says_until_when() -> None:
    gate, time = gate_and_time()
    refusing = Server(refuse(RateLimited("slow", status=429, retryable=True, retry_after=7200)))
    with pytest.raises(RateLimited):
        await limit_policy(refusing, lambda: gate).complete(ASKED)
    with pytest.raises(RateLimited, match="accepts no requests until"):
        await retrying(limit_policy(Server(lambda _: "good"), lambda: gate), sleep=time.sleep).complete(ASKED)
    assert time.slept == []
    assert gate.flying == 0


async def test_who_gives_up_waiting_takes_nobodys_place() -> None:
    gate, _ = gate_and_time()
    gate.limit = 1
    go = asyncio.Event()

    class Slow(Server):
        async def complete(self, request: Request, watch: Any = None) -> Completion:
            await go.wait()
            return await super().complete(request, watch)

    policy = limit_policy(Slow(lambda _: "good"), lambda: gate)
    first, second, third = (asyncio.ensure_future(policy.complete(ASKED)) for _ in range(3))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.sleep(0)
    go.set()
    assert [(await first).text, (await third).text, gate.flying] == ["good", "good", 0]


# --- the breaker


async def broken(gate: RateLimiter) -> None:
    policy = limit_policy(Server(refuse(trouble())), lambda: gate)
    for _ in range(FAILURES):
        with pytest.raises(EndpointError, match="status 500"):
            await policy.complete(ASKED)


async def test_after_five_failures_in_a_row_an_endpoint_is_left_alone_for_half_a_minute() -> None:
    gate, time = gate_and_time()
    await broken(gate)
    server = Server(lambda _: "good")
    with pytest.raises(Down, match="failed 5 times in a row; requests are paused: status 500"):
        await limit_policy(server, lambda: gate, patient=False).complete(ASKED)
    assert server.asked == 0
    assert (await limit_policy(server, lambda: gate).complete(ASKED)).text == "good"
    assert time.slept == [SHUT_SECONDS]


async def test_one_call_tries_whether_it_is_back_while_the_others_wait_for_it() -> None:
    gate, _ = gate_and_time()
    await broken(gate)
    server = Server(lambda _: "good")
    trying: list[int] = []
    server.act = lambda one: (trying.append(one.flying), "good")[1]
    policy = limit_policy(server, lambda: gate)
    await asyncio.gather(*(policy.complete(ASKED) for _ in range(20)))
    assert trying[0] == 1
    assert max(trying) > 1
    assert trying.count(1) == 2, "the trial alone, then the others together"


async def test_an_endpoint_that_stays_down_is_waited_for_two_minutes_in_all() -> None:
    gate, time = gate_and_time()
    began = time.now
    await broken(gate)
    server = Server(refuse(trouble()))
    policy = retrying(limit_policy(server, lambda: gate), attempts=99, sleep=time.sleep)
    with pytest.raises(Down):
        await policy.complete(ASKED)
    assert PATIENCE_SECONDS <= time.now - began <= PATIENCE_SECONDS + 2 * SHUT_SECONDS
    assert server.asked <= PATIENCE_SECONDS / SHUT_SECONDS + 1


async def test_a_trial_that_is_cancelled_leaves_the_next_one_to_try() -> None:
    gate, time = gate_and_time()
    await broken(gate)
    time.now += SHUT_SECONDS
    stuck = asyncio.Event()

    class Stuck(Server):
        async def complete(self, request: Request, watch: Any = None) -> Completion:
            await stuck.wait()
            return Completion("late")

    trial = asyncio.ensure_future(limit_policy(Stuck(lambda _: ""), lambda: gate).complete(ASKED))
    await asyncio.sleep(0)
    waiting = asyncio.ensure_future(limit_policy(Server(lambda _: "good"), lambda: gate).complete(ASKED))
    await asyncio.sleep(0)
    trial.cancel()
    assert (await waiting).text == "good"


async def test_what_is_the_requests_own_fault_opens_no_breaker() -> None:
    gate, _ = gate_and_time()
    for error in (BadReply("what"), ContextOverflow("long", status=500), AccessDenied("no", status=401)):
        for _ in range(2 * FAILURES):
            with pytest.raises(type(error)):
                await limit_policy(Server(refuse(error)), lambda: gate).complete(ASKED)
    schema = Request(ASKED.messages, schema={"type": "object"})
    for _ in range(2 * FAILURES):
        with pytest.raises(EndpointError):
            await limit_policy(Server(refuse(trouble())), lambda: gate).complete(schema)
    assert (await limit_policy(Server(lambda _: "good"), lambda: gate, patient=False).complete(ASKED)).text == "good"


async def test_policies_at_one_endpoint_share_its_gate_and_others_have_their_own() -> None:
    assert gate_at("http://a/v1") is gate_at("http://a/v1")
    assert gate_at("http://a/v1") is not gate_at("http://b/v1")
    here = gate_at("http://a/v1")
    there = await asyncio.to_thread(asyncio.run, _gate_of_this_loop("http://a/v1"))
    assert here is not there


async def _gate_of_this_loop(base_url: str) -> RateLimiter:
    return gate_at(base_url)


async def test_open_policy_stands_behind_the_gate_of_its_base_url() -> None:
    with Endpoint(["good"], faults=["429-ra-ms"]) as endpoint:
        policy = open_policy("m", base_url=endpoint.base_url)
        await policy.complete(ASKED)
        await policy.aclose()
        assert gate_at(endpoint.base_url).limit == 4


# --- models that fall back


def test_a_setting_may_name_several_models_and_where_they_are() -> None:
    assert names_of(" a, b ,,litellm/c/d") == ["a", "b", "litellm/c/d"]
    assert place_of("qwen@http://127.0.0.1:1/v1") == ("qwen", "http://127.0.0.1:1/v1")
    assert place_of("claude@20250101") == ("claude@20250101", "")


@pytest.mark.parametrize(
    "error",
    [Down("gone"), trouble(), AccessDenied("no", status=401), RateLimited("slow", status=429), BadReply("a page")],
)
async def test_the_next_model_speaks_to_the_end_of_the_run_when_one_is_down(error: EndpointError) -> None:
    told: list[str] = []
    first = ScriptedPolicy([error, "never again"], model="a")
    policy = Fallback((first, ScriptedPolicy(["one", "two"], model="b"))).for_run()
    replies = [await policy.complete(ASKED) for _ in range(2)]
    assert [(reply.text, reply.model) for reply in replies] == [("one", "b"), ("two", "b")]
    told = [note for reply in replies for note in reply.notes]
    assert told == [f"a: {error.what}; b is used from now on"] * 2
    assert policy.model == "a,b"
    assert len(first.requests) == 1


async def test_another_run_begins_with_the_first_model_again() -> None:
    shared = Fallback((ScriptedPolicy([trouble(), "back"], model="a"), ScriptedPolicy(["b"], model="b")))
    assert (await shared.for_run().complete(ASKED)).model == "b"
    assert (await shared.for_run().complete(ASKED)).model == "a"


async def test_a_request_that_is_at_fault_itself_is_not_asked_of_another_model() -> None:
    for error in (ContextOverflow("long", status=400), EndpointError("field", status=422)):
        with pytest.raises(type(error)):
            await Fallback((ScriptedPolicy([error]), ScriptedPolicy([]))).complete(ASKED)


async def test_the_last_models_error_is_the_one_that_is_told() -> None:
    with pytest.raises(EndpointError, match="second"):
        await Fallback((ScriptedPolicy([trouble()]), ScriptedPolicy([EndpointError("second", status=503)]))).complete(
            ASKED
        )


async def test_a_model_that_has_replied_may_take_all_the_time_that_is_left() -> None:
    given: list[float | None] = []

    def speaks(request: Request) -> str:
        given.append(request.seconds)
        return "here"

    timed = Request((user("x"),), conversation="planner", seconds=10.0)
    policy = Fallback((ScriptedPolicy(speaks, model="a"), ScriptedPolicy(["b"], model="b"))).for_run()
    for _ in range(3):
        await policy.complete(timed)
    assert given == [5.0, 10.0, 10.0]
    down = ScriptedPolicy([trouble()], model="down")
    policy = Fallback((down, ScriptedPolicy(speaks, model="a"), ScriptedPolicy(["b"], model="b"))).for_run()
    for _ in range(2):
        assert (await policy.complete(timed)).model == "a"
    assert given[-2:] == [pytest.approx(5.0, abs=1.0), 10.0]


# --- prompts that must fit


@pytest.mark.parametrize(
    ("body", "window", "asked"),
    [
        ("This model's maximum context length is 4096 tokens. However, your messages resulted in 9000 tokens.", 4096, 9000),
        (
            "maximum context length is 8192 tokens. However, you requested 9100 tokens (8100 in the messages, 1000 in …",
            8192,
            8100,
        ),
        ({"error": {"message": "exceeds the available context size", "n_ctx": 2048, "n_prompt_tokens": 5000}}, 2048, 5000),
        ("request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it", 4096, 9000),
        ("prompt is too long: 205,000 tokens > 200,000 maximum", 200_000, 205_000),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576). context window", 1048576, 1200000),
        ("the request exceeds the available context size", 0, 0),
    ],
)  # fmt: skip
def test_the_window_is_read_from_what_the_endpoint_says(body: Any, window: int, asked: int) -> None:
    said = body if isinstance(body, dict) else {"error": {"message": body}}
    error = failure(400, said, {}, where="")
    assert isinstance(error, ContextOverflow)
    assert (error.window, error.asked) == (window, asked)


def conversation(dialect: str, results: int, words: int = 300) -> tuple[Message, ...]:
    """A prompt, and as many calls with their results."""
    messages: list[Message] = [user("The task stands here.")]
    for at in range(results):
        call = Call("search", {"query": str(at)}, f"c{at}")
        messages.append(
            assistant(f"I look for {at}.", (ToolCall(f"c{at}", "search", "{}"),) if dialect == "native" else ())
        )
        messages += DIALECTS[dialect].results([(call, f"result {at} " + "word " * words)])
    return tuple(messages)


@pytest.mark.parametrize("dialect", ["tags", "native"])
def test_the_oldest_results_give_way_first_and_pairs_stay_paired(dialect: str) -> None:
    before = conversation(dialect, 5)
    after = trim_messages(before, 1000)
    assert sum(count(message.text) for message in after) <= 1000
    texts = [message.text for message in after]
    assert texts[0] == "The task stands here."
    gone = ["left out" in text for text in texts[2::2]]
    assert gone == sorted(gone, reverse=True)
    assert (gone[0], gone[-1]) == (True, False)
    assert [(message.role, message.call_id, message.calls) for message in after] == [
        (message.role, message.call_id, message.calls) for message in before
    ]
    assert texts[-1] == before[-1].text


def test_results_inside_one_reasoning_chain_give_way_too() -> None:
    results = [(Call("search", {"query": str(at)}), f"result {at} " + "word " * 300) for at in range(4)]
    chain = Message(
        "assistant", "\n\n".join(f"thought {text}" for _, text in results), prompt="result", values={"results": results}
    )
    (_, after) = trim_messages((user("task"), chain), 700)
    assert "result 0" not in after.text
    assert "result 3" in after.text
    assert after.text.count("thought") == 4


def test_one_long_prompt_loses_its_middle_and_keeps_both_ends() -> None:
    (after,) = trim_messages((user("Begin. " + "word " * 5000 + "Answer in JSON."),), 1000)
    assert count(after.text) <= 1050
    assert after.text.startswith("Begin.")
    assert after.text.endswith("Answer in JSON.")


def test_what_fits_is_left_as_it_is() -> None:
    before = conversation("native", 3)
    assert trim_messages(before, 100_000) == before


async def test_a_prompt_that_is_too_long_is_shortened_sent_again_and_remembered() -> None:
    sent: list[int] = []

    def reply(request: Request) -> str:
        sent.append(sum(count(message.text) for message in request.messages))
        if sent[-1] > 1000:
            raise _overflow(1000, sent[-1])
        return "good"

    policy = fitting(ScriptedPolicy(reply, model="m"))
    request = Request(conversation("tags", 6))
    first = await policy.complete(request)
    assert (first.text, len(sent)) == ("good", 2)
    assert first.notes == ("m: the prompt is longer than the model's window; its oldest parts are removed",)
    await policy.complete(request)
    assert len(sent) == 3, "what fits is known by now"
    assert (await policy.complete(ASKED)).notes == ()


async def test_a_window_that_nobody_names_is_found_by_halves_and_given_up_after_two() -> None:
    policy = ScriptedPolicy([ContextOverflow("too long")] * 3)
    with pytest.raises(ContextOverflow):
        await fitting(policy).complete(Request(conversation("tags", 6)))
    sizes = [sum(count(message.text) for message in request.messages) for request in policy.requests]
    assert len(sizes) == 3
    assert sizes[1] <= sizes[0] / 2
    assert sizes[2] < 0.7 * sizes[1]


async def test_a_prompt_that_cannot_be_shortened_is_told_at_once() -> None:
    policy = ScriptedPolicy([ContextOverflow("too long")])
    with pytest.raises(ContextOverflow):
        await fitting(policy).complete(ASKED)


def _overflow(window: int, asked: int) -> ContextOverflow:
    error = ContextOverflow("too long", status=400)
    error.window, error.asked = window, asked
    return error


async def test_a_prompt_that_the_server_cut_silently_is_told_once_a_run() -> None:
    heard: list[str] = []
    usage = Usage(1, 2048, 5)
    with Endpoint([Completion("one", usage=usage), Completion("two", usage=usage)]) as endpoint:
        policy = open_policy("m", base_url=endpoint.base_url)
        context = make_context(
            policy, events=Events(lambda event: heard.append(event.text) if isinstance(event, Notice) else None)
        )
        talk = context.conversation("worker")
        await talk.reply(user("word " * 9000))
        await talk.reply(user("and?"))
        await policy.aclose()
    assert heard == ["the server seems to cut prompts: it read 2,048 of about 9,000 tokens (Ollama: raise num_ctx)"]


async def test_a_prompt_that_was_read_is_not_suspected() -> None:
    for text, read in (("word " * 9000, 8000), ("数学" * 4000, 6000), ("short", 1), ("word " * 9000, 0)):
        with Endpoint([Completion("one", usage=Usage(1, read, 5))]) as endpoint:
            policy = open_policy("m", base_url=endpoint.base_url)
            assert (await policy.complete(Request((user(text),)))).notes == ()
            await policy.aclose()


# --- replies that are no answer


@pytest.mark.parametrize(
    ("asked", "reply", "then"),
    [
        (None, Completion("", "thought", finish="length", usage=Usage(1, 9, 3000)), 6000),
        (100, Completion("", "thought", finish="length", usage=Usage(1, 9, 100)), 1024),
        (4000, Completion("", "thought", usage=Usage(1, 9, 50)), 8000),
        (None, Completion("", "thought", usage=Usage(1, 9, 50)), None),
    ],
)
async def test_a_reply_of_nothing_but_thought_is_asked_for_again_with_more_room(
    asked: int | None, reply: Completion, then: int | None
) -> None:
    with Endpoint([reply, "said"]) as endpoint:
        policy = open_policy("m", base_url=endpoint.base_url)
        said = await policy.complete(Request((user("x"),), Sampling(max_tokens=asked)))
        await policy.aclose()
        assert said.text == "said"
        assert endpoint.calls[1].body.get("max_tokens") == then


async def test_a_thought_that_a_stop_string_ended_is_left_to_the_dialect() -> None:
    with Endpoint([Completion("", "I need it: <|begin_search_query|>mars")]) as endpoint:
        policy = open_policy("m", base_url=endpoint.base_url)
        said = await policy.complete(Request((user("x"),), stop=("<|end_search_query|>",)))
        await policy.aclose()
        assert (said.text, said.reasoning, len(endpoint.calls)) == ("", "I need it: <|begin_search_query|>mars", 1)


async def test_a_reply_that_was_withheld_is_charged_recorded_and_no_answer() -> None:
    context = make_context([Completion("I cannot help with that.", finish="filtered", usage=Usage(1, 10, 5))])
    with pytest.raises(Withheld, match="refused, or a content filter kept its reply back: 'I cannot help") as raised:
        await context.conversation("worker").reply(user("x"))
    assert len(str(raised.value).splitlines()) == 3
    assert context.rollout.usage.tokens == 15
