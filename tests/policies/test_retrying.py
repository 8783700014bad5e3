"""Retries, in one place."""

import pytest
from virtual import Clock

from hira.core.errors import AccessDenied, BadReply, ContextOverflow, EndpointError, RateLimited, UsageError
from hira.core.messages import user
from hira.core.policy import CallOptions, Completion, Request, Usage, Watch
from hira.policies.endpoint import Endpoint
from hira.policies.failures import EmptyReply
from hira.policies.fallback import Fallback
from hira.policies.limited import Down
from hira.policies.names import names_of, place_of
from hira.testing import ScriptedPolicy

ASKED = Request((user("x"),), conversation="planner")


def trouble(**more):
    return EndpointError("trouble", retryable=True, **more)


def empty():
    return EmptyReply(Completion("", usage=Usage(1, 10, 0)))


async def test_waits_grow_and_are_a_random_share():
    time = Clock()
    policy = Endpoint(ScriptedPolicy([trouble()] * 6 + ["good"]), attempts=7, sleep=time.sleep, jitter=lambda: 1.0)
    assert (await policy.complete(ASKED)).text == "good"
    assert time.slept == [0.5, 1, 2, 4, 8, 8]


async def test_what_cannot_pass_is_raised_at_once():
    time = Clock()
    for error in (EndpointError("no"), UsageError("no"), BadReply("no")):
        with pytest.raises(type(error)):
            await Endpoint(ScriptedPolicy([error]), sleep=time.sleep).complete(ASKED)
    assert time.slept == []


async def test_a_wait_of_hours_fails_at_once_and_says_until_when():
    time = Clock()
    limited = RateLimited("slow", retryable=True, retry_after=7200)
    with pytest.raises(RateLimited, match=r"accepts no requests until \d{4}-\d\d-\d\d \d\d:\d\d"):
        await Endpoint(ScriptedPolicy([limited]), sleep=time.sleep).complete(ASKED)
    assert time.slept == []


async def test_attempts_are_bounded_and_told():
    script = ScriptedPolicy([trouble() for _ in range(9)])
    with pytest.raises(EndpointError, match="trouble; asked 3 times"):
        await Endpoint(script, attempts=3, sleep=Clock().sleep).complete(ASKED)
    assert len(script.requests) == 3


async def test_silence_is_asked_once_more_and_then_handed_on():
    completion = await Endpoint(ScriptedPolicy([empty(), empty()]), sleep=Clock().sleep).complete(ASKED)
    assert (completion.text, completion.usage) == ("", Usage(2, 20, 0))


async def test_who_waits_is_told_why_and_how_long():
    told = []
    refused = [EndpointError("the endpoint refused the connection", retryable=True) for _ in range(3)]
    policy = Endpoint(ScriptedPolicy([*refused, "good"], model="m"), sleep=Clock().sleep, jitter=lambda: 1.0)
    await policy.complete(ASKED, CallOptions(tell=lambda *notice: told.append(notice)))
    assert told == [
        ("the endpoint refused the connection; trying again in 1 s (2 of 5)", "m"),
        ("the endpoint refused the connection; trying again in 1 s (3 of 5)", "m"),
        ("the endpoint refused the connection; trying again in 2 s (4 of 5)", "m"),
    ]


def thought(tokens):
    completion = Completion("", reasoning="hm", finish="length", usage=Usage(1, 50, tokens))
    return EmptyReply(completion)


async def test_more_room_for_thought_stays_within_what_is_left_of_the_budget():
    script = ScriptedPolicy([thought(800), "good"])
    await Endpoint(script, sleep=Clock().sleep).complete(ASKED, CallOptions(left=1500))
    assert script.requests[1].sampling.max_tokens == 1500 - 850 - 50


# --- models that fall back


def test_a_setting_may_name_several_models_and_where_they_are() -> None:
    assert names_of(" a, b ,,litellm/c/d") == ["a", "b", "litellm/c/d"]
    assert place_of("qwen@http://127.0.0.1:1/v1") == ("qwen", "http://127.0.0.1:1/v1")
    assert place_of("claude@20250101") == ("claude@20250101", "")


@pytest.mark.parametrize(
    "error",
    [Down("gone"), AccessDenied("no", status=401)],
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


async def test_a_model_that_has_replied_may_take_all_the_time_that_is_left() -> None:
    given: list[float | None] = []

    class Timed(ScriptedPolicy):
        async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
            given.append(CallOptions.of(watch).seconds)
            return await super().complete(request, watch)

    timed = CallOptions(seconds=10.0)
    policy = Fallback((Timed(["here"] * 3, model="a"), ScriptedPolicy(["b"], model="b"))).for_run()
    for _ in range(3):
        await policy.complete(ASKED, timed)
    assert given == [5.0, 10.0, 10.0]
    down = ScriptedPolicy([trouble()], model="down")
    policy = Fallback((down, Timed(["here"] * 3, model="a"), ScriptedPolicy(["b"], model="b"))).for_run()
    for _ in range(2):
        assert (await policy.complete(ASKED, timed)).model == "a"
    assert given[-2:] == [pytest.approx(5.0, abs=1.0), 10.0]
