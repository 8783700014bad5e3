"""Any OpenAI-compatible endpoint, over real HTTP."""

import asyncio

import pytest
from virtual import Clock

from hira.core.errors import EndpointError, HiraError, TimedOut, UsageError
from hira.core.messages import Media, Message, ToolCall, assistant, system, user
from hira.core.policy import Completion, Delta, Request, Sampling, Usage
from hira.policies.endpoint import Endpoint as Hardened
from hira.policies.failures import failure, no_connection
from hira.policies.openai import OpenAIPolicy
from hira.policies.waiting import Timeout
from hira.testing import Endpoint
from hira.testing.faults import error, refuses

ASKED = Request((system("be brief"), user("what is it?")))
TOOL = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}


async def ask(endpoint, request=ASKED, watch=None, **more):
    policy = OpenAIPolicy("m", endpoint.base_url, "sk-secret", **more)
    try:
        return await policy.complete(request, watch)
    finally:
        await policy.aclose()


async def test_the_request_goes_out_as_the_messages_stand():
    call = ToolCall("c1", "search", '{"q": 1}')
    request = Request(
        (
            system("s"),
            user("look", Media("image", "data:image/png;base64,AA")),
            assistant("", (call,)),
            Message("tool", "found", call_id="c1"),
        ),
        Sampling(temperature=0.5, top_p=0.9, top_k=20, max_tokens=7, seed=3),
        stop=("</a>",),
        tools=(TOOL,),
    )
    with Endpoint(["fine"]) as endpoint:
        await ask(endpoint, request, extra_body={"chat_template_kwargs": {"enable_thinking": False}})
        received = endpoint.requests[0]
    assert received.headers["authorization"] == "Bearer sk-secret"
    assert received.body == {
        "model": "m",
        "messages": [message.wire for message in request.messages],
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 20,
        "max_tokens": 7,
        "seed": 3,
        "stop": ["</a>"],
        "tools": [TOOL],
        "chat_template_kwargs": {"enable_thinking": False},
    }


async def test_without_a_key_no_authorization_is_sent(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-somewhere-else")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-mine")
    with Endpoint(["fine"]) as endpoint:
        policy = OpenAIPolicy("m", endpoint.base_url)
        await policy.complete(ASKED)
        await policy.aclose()
        headers = endpoint.requests[0].headers
    assert "authorization" not in headers
    assert "openai-organization" not in headers


async def test_a_streamed_reply_is_the_same_as_a_plain_one():
    said = Completion(
        "one two three",
        "hm hm",
        (ToolCall("a", "search", '{"query": "x"}'), ToolCall("b", "browse", "{}")),
        "calls",
        usage=Usage(1, 5, 6, 2),
        model="m",
    )
    seen: list[Delta] = []
    with Endpoint([said, said]) as endpoint:
        assert await ask(endpoint) == await ask(endpoint, watch=seen.append) == said
        assert endpoint.requests[1].body["stream_options"] == {"include_usage": True}
    assert "".join(delta.text for delta in seen if not delta.reasoning) == "one two three"
    assert "".join(delta.text for delta in seen if delta.reasoning) == "hm hm"


@pytest.mark.parametrize("watch", [None, lambda delta: None])
@pytest.mark.parametrize(("stops", "known"), [("keep", "</call>"), ("name", "</call>"), ("strip", None)])
async def test_the_stop_string_is_found_whatever_the_server_does_with_it(stops, known, watch):
    with Endpoint(["<call>x</call> and more"], stops=stops) as endpoint:
        completion = await ask(endpoint, Request((user("go"),), stop=("</call>", "</b>")), watch)
    assert (completion.text, completion.stop, completion.finish) == ("<call>x", known, "stop")


@pytest.mark.parametrize("watch", [None, lambda delta: None])
async def test_a_cancelled_call_leaves_nothing_in_flight(watch):
    with Endpoint(["never"], delay=30) as endpoint:
        task = asyncio.ensure_future(ask(endpoint, watch=watch))
        async with asyncio.timeout(5):
            while not endpoint.in_flight:
                await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(0.5):
            while endpoint.in_flight or endpoint.connections:
                await asyncio.sleep(0.005)


def test_a_policy_can_be_used_from_one_event_loop_after_another():
    with Endpoint(["one", "two"]) as endpoint:
        policy = OpenAIPolicy("m", endpoint.base_url)

        async def once():
            try:
                return (await policy.complete(ASKED)).text
            finally:
                await policy.aclose()

        assert [asyncio.run(once()), asyncio.run(once())] == ["one", "two"]


async def test_a_broken_character_in_a_message_does_not_break_the_call():
    with Endpoint(["one", "two"]) as endpoint:
        policy = OpenAIPolicy("m", endpoint.base_url)
        for _ in range(2):
            await policy.complete(Request((user("half \ud83d of a pair"),)))
        await policy.aclose()
        assert [call.body["messages"][0]["content"] for call in endpoint.calls] == ["half ? of a pair"] * 2


# --- continuing the model's own message

OPEN = Request((user("count"), assistant("one, two, ")), continues=True)


async def test_a_continuation_is_refused_where_nobody_said_the_endpoint_can():
    with Endpoint() as endpoint, pytest.raises(UsageError, match=r"(?s)continues .*continue_final_message"):
        await ask(endpoint, OPEN)


@pytest.mark.parametrize("echoed", ["", "one, two, "])
@pytest.mark.parametrize(
    ("continuation", "fields"),
    [("continue_final_message", {"continue_final_message": True, "add_generation_prompt": False}), ("prefix", {})],
)
async def test_a_message_is_continued_and_an_echo_is_taken_off(continuation, fields, echoed):
    with Endpoint([f"{echoed}three"]) as endpoint:
        assert (await ask(endpoint, OPEN, continuation=continuation)).text == "three"
        body = endpoint.requests[0].body
    assert fields.items() <= body.items()
    assert body["messages"][-1].get("prefix", False) is (continuation == "prefix")
    assert body["messages"][-1]["content"] == "one, two, "


@pytest.mark.parametrize("watch", [None, lambda delta: None])
async def test_a_message_is_continued_as_a_plain_completion(watch):
    with Endpoint(["three</call> and"]) as endpoint:
        completion = await ask(
            endpoint,
            Request(OPEN.messages, stop=("</call>",), continues=True),
            watch,
            continuation="completions",
        )
        received = endpoint.requests[0]
    assert completion.text == "three"
    assert received.path == "/v1/completions"
    assert received.body["prompt"] == "<|im_start|>user\ncount<|im_end|>\n<|im_start|>assistant\none, two, "
    assert received.body["stop"] == ["<|im_end|>", "</call>"]


# --- what endpoints do not take


async def test_a_schema_is_sent_and_dropped_for_good_where_it_is_refused():
    asked = Request((user("go"),), schema={"type": "object"})
    with Endpoint(["{}", "{}", "{}"], faults=["ok", "400-schema"]) as endpoint:
        policy = OpenAIPolicy("m", endpoint.base_url)
        for _ in range(4):
            await policy.complete(asked)
        await policy.aclose()
        sent = ["response_format" in call.body for call in endpoint.calls]
        assert endpoint.calls[0].body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert sent == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("fault", "request_", "watch", "gone", "instead"),
    [
        ("422", Request(ASKED.messages, Sampling(temperature=0.5)), None, "temperature", None),
        (
            "400-max-tokens",
            Request(ASKED.messages, Sampling(max_tokens=5)),
            None,
            "max_tokens",
            "max_completion_tokens",
        ),
        ("400-stream-options", ASKED, lambda delta: None, "stream_options", None),
    ],
)
async def test_an_optional_field_that_is_refused_by_name_is_left_out_from_then_on(
    fault, request_, watch, gone, instead
):
    with Endpoint(["one", "two"], faults=[fault]) as endpoint:
        policy = OpenAIPolicy("m", endpoint.base_url)
        assert [(await policy.complete(request_, watch)).text for _ in range(2)] == ["one", "two"]
        await policy.aclose()
        bodies = [call.body for call in endpoint.calls]
    assert [gone in body for body in bodies] == [True, False, False]
    if instead:
        assert [instead in body for body in bodies] == [False, True, True]


async def test_what_the_user_added_is_not_taken_out_again():
    with Endpoint(faults=["422"]) as endpoint, pytest.raises(EndpointError, match="temperature"):
        await ask(endpoint, extra_body={"temperature": 0.3})


# --- faults: what the caller sees


@pytest.mark.parametrize(
    ("fault", "timeout", "said"),
    [
        ("s-ping-only", Timeout(first_token=0.15), r"no token came within 0\.15"),
        ("s-stall", Timeout(between_tokens=0.15), r"paused for 0\.1"),
    ],
)
async def test_a_stream_without_data_is_left(fault, timeout, said):
    with Endpoint(faults=[fault]) as endpoint, pytest.raises(TimedOut, match=said) as raised:
        await ask(endpoint, watch=lambda delta: None, timeout=timeout)
    assert raised.value.retryable


async def test_a_port_of_this_machine_where_nothing_listens_is_asked_twice_and_not_for_ten_seconds():
    with pytest.raises(EndpointError, match="connection was refused; asked 2 times"):
        await Hardened(OpenAIPolicy("m", "http://localhost:9/v1"), sleep=Clock().sleep).complete(ASKED)
    elsewhere = no_connection(ConnectionRefusedError(), where="at x", base_url="http://models.example/v1")
    assert (elsewhere.retryable, elsewhere.tries) == (True, 0)


async def test_a_server_of_this_machine_that_has_answered_is_waited_for_when_it_starts_anew():
    with Endpoint(["Hello.", "Hello again."]) as endpoint:
        policy = Hardened(OpenAIPolicy(endpoint.model, endpoint.base_url), sleep=Clock().sleep)
        assert (await policy.complete(ASKED)).text == "Hello."
    with pytest.raises(EndpointError, match="connection was refused; asked 5 times"):
        await policy.complete(ASKED)
    await policy.aclose()


async def test_tls_to_a_plain_port_says_what_to_write():
    with Endpoint() as endpoint:
        policy = OpenAIPolicy("m", endpoint.base_url.replace("http:", "https:"), timeout=Timeout(connect=1))
        with pytest.raises(EndpointError, match=r"(?s)no TLS connection.*write http://127") as raised:
            await policy.complete(ASKED)
    assert not raised.value.retryable


async def test_a_404_says_that_the_url_lacks_v1():
    with Endpoint(faults=["404-model"]) as endpoint:
        policy = OpenAIPolicy("m", endpoint.base_url.removesuffix("/v1"))
        with pytest.raises(EndpointError) as raised:
            await policy.complete(ASKED)
    assert raised.value.fix == f"the base URL lacks /v1: set it to {endpoint.base_url}"


@pytest.mark.parametrize(
    ("base_url", "key", "said"),
    [
        ("localhost:8000", "", "not an http URL"),
        ("", "", "not an http URL"),
        ("http://localhost/v1", "sk secret", "characters that are not valid in a key"),
        ("http://localhost/v1", "sk-ключ", "characters that are not valid in a key"),
    ],
)
def test_what_cannot_work_is_refused_at_once(base_url, key, said):
    with pytest.raises(UsageError, match=said) as raised:
        OpenAIPolicy("m", base_url, key)
    assert not key or key not in str(raised.value)


async def test_a_key_that_a_server_repeats_is_hidden_in_whatever_it_stands():
    said = refuses(401, error("no such key: Bearer%20sk-secret"))
    with Endpoint(faults=lambda _: said) as endpoint, pytest.raises(EndpointError, match="no such key: Bearer%20…"):
        await ask(endpoint)


async def test_a_short_key_leaves_the_words_of_an_error_whole():
    with pytest.raises(EndpointError, match="nothing listens there"):
        await OpenAIPolicy("m", "http://127.0.0.1:9/v1", "no").complete(ASKED)


async def test_a_password_in_the_url_is_not_shown():
    policy = OpenAIPolicy("m", "http://me:hunter2@127.0.0.1:9/v1")
    with pytest.raises(HiraError) as raised:
        await policy.complete(ASKED)
    assert "hunter2" not in str(raised.value)


def test_a_redirect_is_an_error_whatever_its_page_and_headers_say():
    headers = {"location": "https://elsewhere.example/v1", "retry-after": "30"}
    refused = failure(307, "this model does not support tools", headers)
    assert type(refused) is EndpointError
    assert refused.what == "the endpoint redirects to https://elsewhere.example/v1, which is not followed"
    assert (refused.fix, refused.retryable, refused.retry_after) == ("set the base URL to the new address", False, None)
