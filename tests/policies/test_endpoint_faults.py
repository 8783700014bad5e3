"""How endpoints, vendors and gateways fail, each in its own way, over real HTTP: taken, asked again, or reported."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from virtual import quick_policy

from hira.core.errors import AccessDenied, BadReply, ContextOverflow, EndpointError, RateLimited
from hira.core.messages import system, user
from hira.core.policy import Completion, Delta, Request, Sampling
from hira.policies.openai import OpenAIPolicy
from hira.testing import Endpoint
from hira.testing.faults import FOREVER, Fault, calls, delta, ends, error, refuses, says, streams
from hira.testing.server import Exchange

TOOLS = tuple(
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("search", "browse")
)
ASKED = Request((system("Be brief."), user("Hello")), Sampling(temperature=0.7, top_k=5, seed=1), tools=TOOLS)
GOOD = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "OK 42"}, "finish_reason": "stop"}]}


class Desk:
    """One endpoint for all these tests, and what goes wrong at it next."""

    def __init__(self) -> None:
        self.fault: Fault | str = ""
        self.stays = False
        self.asked = 0
        self.endpoint = Endpoint(lambda _: "OK again", faults=self._next)

    def _next(self, number: int) -> Fault | str:
        del number
        fault, self.fault = self.fault, self.fault if self.stays else ""
        return fault

    async def ask(
        self, fault: Fault | str, *, stays: bool = False, stream: bool = False, request: Request = ASKED
    ) -> tuple[Completion, list[Any]]:
        """The completion, and the bodies that were sent for it. Nothing is known of the model from before."""
        self.fault, self.stays = fault, stays
        self.endpoint.requests.clear()
        self.asked += 1
        policy = quick_policy(self.endpoint.base_url, f"scripted-{self.asked}")
        heard: list[Delta] = []
        try:
            async with asyncio.timeout(20):
                completion = await policy.complete(request, heard.append if stream else None)
        finally:
            await policy.aclose()
        return completion, [call.body for call in self.endpoint.calls]


@pytest.fixture(scope="module")
def served() -> Iterator[Desk]:
    desk = Desk()
    with desk.endpoint:
        yield desk


@pytest.fixture
async def desk(served: Desk) -> AsyncIterator[Desk]:
    yield served
    served.fault, served.stays = "", False


def replies(body: Any) -> Fault:
    return refuses(200, json.dumps(body))


def choice(**fields: Any) -> Fault:
    """The good reply with these fields of its choice."""
    return Fault(alter=lambda reply: reply | {"choices": [reply["choices"][0] | fields]})


def counts(usage: Any) -> Fault:
    return Fault(alter=lambda reply: reply | {"usage": usage})


def writes(raw: bytes, *, then_waits: bool = False) -> Fault:
    """These bytes in place of a response."""

    async def act(exchange: Exchange) -> None:
        exchange.transport.write(raw)
        if then_waits:
            await asyncio.sleep(FOREVER)
        exchange.transport.close()

    return Fault(act)


def begins(raw: bytes, *, resets: bool = False, again: bool = False) -> Fault:
    """A stream that begins with these bytes; then the connection breaks, or nothing comes any more, or they do
    again."""

    async def act(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.chunk(raw)
        while again:
            await asyncio.sleep(0.02)
            await exchange.chunk(raw)
        await asyncio.sleep(0.02 if resets else FOREVER)
        await exchange.reset()

    return Fault(act)


def packed(raw: bytes, kind: str = "application/json") -> Fault:
    return Fault(lambda exchange: exchange.send(200, raw, kind, content_encoding="gzip"))


def event(piece: Any) -> bytes:
    return b"data: " + json.dumps(piece).encode() + b"\n\n"


MINUTE = {
    "error": {
        "code": 429,
        "message": "You exceeded your current quota, please check your plan and billing details.",
        "details": [{"@type": "google.rpc.RetryInfo", "retryDelay": "0.01s"}],
    }
}
RAW, WHOLE, PART = json.dumps(GOOD).encode(), event(delta("OK 42", "stop")), event(delta("one "))
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(RAW), RAW)
PASSING: dict[str, Fault | str] = {
    **{
        name: name
        for name in ("500", "429-ra1", "429-ra-ms", "429-ra-date", "429-ra-past", "reset-before", "half-json")
    },
    **{name: name for name in ("silent", "slow-trickle", "bad-json", "empty-body", "null-choices", "null-content")},
    "a pause without end": refuses(429, error("slow"), retry_after="inf"),
    "a limit by the minute that speaks of billing": refuses(429, [MINUTE]),
    "Anthropic": replies({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    "Google": replies([{"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}]),
    "FastAPI": replies({"detail": "Internal error"}),
    "Cloudflare": replies({"success": False, "errors": [{"code": 7009, "message": "Upstream service unavailable"}]}),
    "Zhipu": replies({"code": 1302, "msg": "too many requests", "success": False}),
    "DashScope": replies({"code": "Throttling.RateQuota", "message": "Requests rate limit exceeded"}),
    "MiniMax": replies({"choices": None, "base_resp": {"status_code": 1002, "status_msg": "rate limit"}}),
    "OpenRouter": choice(finish_reason="error", error={"code": 502, "message": "Provider returned error"}),
    "a choice that is null": replies({"choices": [None]}),
    "a call without a name": calls({"id": "a", "function": {"name": 5, "arguments": "{}"}}),
    "broke off": ends("error"),
    "nested without end": refuses(200, '{"choices": ' + "[" * 100_000),
    "packed and cut": packed(gzip.compress(RAW)[:30]),
    "no HTTP": writes(b"SSH-2.0-OpenSSH_9\r\n"),
    "two lengths": writes(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 5\r\n\r\n{}"),
    "no last chunk": writes(CHUNKED),
    "a broken chunk": writes(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
    "continue, and no more": writes(b"HTTP/1.1 100 Continue\r\n\r\n", then_waits=True),
}
PASSING_STREAMED: dict[str, Fault | str] = {
    **{name: name for name in ("s-truncated", "s-bad-json", "s-error-mid", "s-ping-only")},
    "reset in the middle": begins(PART, resets=True),
    "empty pieces for ever": begins(event(delta("")), again=True),
    "nothing at all": streams(done=False),
    "no finish but an end": streams(delta("OK 42")),
    "choices that are a string": streams({"choices": "x"}, delta("OK", "stop")),
    "error beside a choice": streams(
        delta("OK "), {"error": {"code": 502, "message": "gone"}, "choices": [{"index": 0, "delta": {"content": ""}}]}
    ),
    "error as an event": streams(b'event: error\ndata: {"error": {"type": "overloaded_error"}}\n\n', done=False),
    "error in words": streams(b"event: error\ndata: something broke\n\n", done=False),
    "error as JSON": refuses(200, json.dumps(error("slow down", "rate_limit_error")), kind="text/event-stream"),
    "packed and cut": packed(gzip.compress(WHOLE)[:25], "text/event-stream"),
    "another vendor's stream": streams({"type": "message_start"}, {"type": "message_stop"}, done=False),
}
TAKEN: dict[str, Fault | str] = {
    **{name: name for name in ("bom", "nan-json", "extra-choices", "no-usage", "finish-null")},
    "thinking in parts": says(content=[{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "OK 42"}]),
    "a text completion": replies({"choices": [{"text": "OK 42", "finish_reason": "stop"}]}),
    "streamed unasked": streams(delta("OK 42"), delta(None, "stop")),
    "calls, it says, and text": ends("tool_calls"),
    "no error": Fault(alter=lambda reply: reply | {"error": {}}),
    "packed": packed(gzip.compress(RAW)),
    "a model that is a number": Fault(alter=lambda reply: reply | {"model": 5}),
    "usage without end": counts({"prompt_tokens": float("inf"), "completion_tokens": float("nan")}),
    "usage beyond all": counts({"prompt_tokens": 10**400, "completion_tokens": 1, "cost": 10**400}),
    "usage in words": counts({"prompt_tokens": "5", "completion_tokens": "x"}),
    "details that are a list": counts({"prompt_tokens": 1, "completion_tokens": 1, "prompt_tokens_details": [1]}),
}
TAKEN_STREAMED: dict[str, Fault | str] = {
    **{name: name for name in ("s-no-done", "s-null-delta", "s-reasoning")},
    "several lines": streams(WHOLE.replace(b'"delta"', b'\ndata: "delta"')),
    "no empty lines": streams(
        event(delta("OK "))[:-1] + event(delta("42", "stop"))[:-1] + b"data: [DONE]\n", done=False
    ),
    "names and numbers": streams(b"event: message\nid: 1\nretry: 100\n" + WHOLE),
    "the end twice": streams(delta("OK 42"), delta("", "stop"), delta("", "stop")),
    "another reply first": streams(
        {"choices": [{"index": 1, "delta": {"content": "NO"}}, {"index": 0, "delta": {"content": "OK 42"}}]},
        delta("", "stop"),
    ),
    "a message": streams({"choices": [{"index": 0, "message": {"content": "OK 42"}, "finish_reason": "stop"}]}),
    "a byte order mark": streams(b"\xef\xbb\xbf" + WHOLE),
    "JSON": refuses(200, json.dumps(GOOD, indent=1), kind="text/event-stream"),
    "a break behind the end": begins(WHOLE, resets=True),
    "no end of the connection": begins(WHOLE),
    "calls that are none": streams(delta("OK 42", tool_calls=[None]), delta("", "stop")),
    "pieces that say all is well": streams({"code": 0, "message": "Success"}, delta("OK 42", "stop")),
}
SEARCH, BROWSE = ("search", '{"query": "q"}'), ("browse", "{}")


def function(name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


def pieces(*written: tuple[int | None, str | None, str | None, str]) -> Fault:
    """A streamed reply of calls in pieces: index, id, name and arguments of each, as far as they are told."""
    told = []
    for index, ident, name, arguments in written:
        call = {"index": index, "id": ident, "function": {"name": name, "arguments": arguments}}
        told.append(delta(tool_calls=[{key: value for key, value in call.items() if value is not None}]))
    return streams(*told, delta(None, "tool_calls"))


CALLED = {
    "one id for two": (calls(function(*SEARCH, id="x"), function(*BROWSE, id="x")), [SEARCH, BROWSE]),
    "as it was": (says(content=None, function_call={"name": "search", "arguments": '{"query": "q"}'}), [SEARCH]),
    "an object": (calls(function("search", {"query": "q"})), [SEARCH]),
}
CALLED_STREAMED = {
    "out of order": (
        pieces(
            (1, "b", "browse", ""), (0, "a", "search", '{"query": '), (1, None, None, "{}"), (0, None, None, '"q"}')
        ),
        [BROWSE, SEARCH],
    ),
    "by id alone": (
        pieces((None, "a", "search", '{"query": '), (None, "b", "browse", "{}"), (None, "a", None, '"q"}')),
        [SEARCH, BROWSE],
    ),
    "a name in pieces": (
        pieces((0, "a", "sea", ""), (0, None, "rch", ""), (0, None, None, '{"query": "q"}')), [SEARCH]
    ),
    "a name again": (pieces((0, "a", "search", '{"query": '), (0, "a", "search", '"q"}')), [SEARCH]),
    "one id for two": (pieces((0, "a", *SEARCH), (1, "a", *BROWSE)), [SEARCH, BROWSE]),
    "one index for two": (pieces((0, "a", *SEARCH), (0, "b", *BROWSE)), [SEARCH, BROWSE]),
    "the whole call twice": (pieces((0, "a", *SEARCH), (0, "a", *SEARCH)), [SEARCH]),
    "as it was": (
        streams(
            delta(None, function_call={"name": "browse", "arguments": ""}),
            delta(None, function_call={"arguments": "{}"}),
            delta(None, "function_call"),
        ),
        [BROWSE],
    ),
}  # fmt: skip
CREDIT, KEY = "has no credit left", "check that the key is right"
TOLD: dict[str, tuple[Fault | str, str, type[EndpointError]]] = {
    "no credit": (refuses(400, error("Your credit balance is too low to access it")), CREDIT, RateLimited),
    "no credit (a reply)": (replies(error("You exceeded your current quota", "insufficient_quota")), CREDIT, RateLimited),
    "a pause of a day": ("429-ra-huge", "accepts no requests until", RateLimited),
    "a pause in words": (refuses(429, error("Please try again in 7h12m3.5s.")), "requests until", RateLimited),
    "a key (Google)": (refuses(400, error("API key not valid. Please pass a valid API key.")), KEY, AccessDenied),
    "a key that is repeated": ("401-key", "wrong key: Bearer …", AccessDenied),
    "a page of a proxy": ("403-html", "Access denied by proxy", AccessDenied),
    "a model (Ollama)": (replies({"error": "model 'x' not found"}), "name of the model", EndpointError),
    "a model": ("404-model", "the endpoint has scripted", EndpointError),
    "a proxy": (refuses(407, ""), "HTTPS_PROXY", EndpointError),
    "a method": (refuses(405, {"detail": "Method Not Allowed"}), "check the base URL", EndpointError),
    "a filter": (refuses(400, error("It was filtered", code="content_filter")), "rephrase the question", EndpointError),
    "a request": ("400-bad", "field required (request req_7)", EndpointError),
    "a teapot": (refuses(418, "teapot"), "hira doctor", EndpointError),
    "a web page": ("html-200", "this looks like a web page", BadReply),
    "tools": (refuses(400, error("auto tool choice requires --enable-auto-tool-choice")), "HIRA_DIALECT", EndpointError),
    "another host": ("307-host", "which is not followed", EndpointError),
}  # fmt: skip
TOO_LONG: dict[str, tuple[Any, int, int]] = {
    "OpenAI": (error("maximum context length is 8192 tokens. However, you requested 9100 tokens (8100 in the messages)"), 8192, 8100),
    "OpenAI's rate": (error("Request too large on tokens per min (TPM): Limit 3000, Requested 6000."), 3000, 6000),
    "Anthropic": ({"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}, 200_000, 210000),
    "Google": (error("The input token count (1100000) exceeds the maximum number of tokens allowed (1048576)."), 1048576, 1100000),
    "vLLM": (error("The decoder prompt (length 9000) is longer than the maximum model length of 4096."), 4096, 9000),
    "llama.cpp": ({"error": {"type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 4096}}, 4096, 9000),
    "TGI": ({"error": "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 9000 `inputs` tokens and 512"}, 4096, 9000),
    "Mistral": (error("Prompt contains 40000 tokens, too large for model with 32768 maximum context length"), 32768, 40000),
    "Groq": (error("Please reduce the length of the messages or completion.", code="context_length_exceeded"), 0, 0),
    "Qwen": ({"code": "InvalidParameter", "message": "Range of input length should be [1, 30720]"}, 30720, 0),
}  # fmt: skip
OF_THE_MODEL = "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"
OF_THE_PROMPT = (
    "'max_tokens' is too large. This model's maximum context length is 4096 tokens and your request has 500 input"
)


def both_ways(whole: dict[str, Fault | str], streamed: dict[str, Fault | str]) -> pytest.MarkDecorator:
    rows = [*((name, fault, False) for name, fault in whole.items()), *((n, f, True) for n, f in streamed.items())]
    ids = [f"{name}, streamed" if stream else name for name, _, stream in rows]
    return pytest.mark.parametrize(("fault", "stream"), [row[1:] for row in rows], ids=ids)


@both_ways(PASSING, PASSING_STREAMED)
async def test_what_passes_is_asked_again(fault: Fault | str, stream: bool, desk: Desk) -> None:
    completion, sent = await desk.ask(fault, stream=stream)
    assert (completion.text, len(sent)) == ("OK again", 2)


@both_ways(TAKEN, TAKEN_STREAMED)
async def test_a_reply_is_taken_however_it_is_written(fault: Fault | str, stream: bool, desk: Desk) -> None:
    completion, sent = await desk.ask(fault, stream=stream)
    assert (completion.text, completion.finish, len(sent)) == ("OK 42", "stop", 1)
    assert 0 < completion.usage.tokens <= 2 * 10**12


@pytest.mark.parametrize("way", [*CALLED, *(f"{way}, streamed" for way in CALLED_STREAMED)])
async def test_calls_are_read_however_they_are_written(way: str, desk: Desk) -> None:
    stream = way.endswith(", streamed")
    fault, expected = CALLED_STREAMED[way.removesuffix(", streamed")] if stream else CALLED[way]
    completion, sent = await desk.ask(fault, stream=stream)
    assert [(call.name, call.arguments) for call in completion.calls] == expected
    assert len({call.id for call in completion.calls}) == len(expected), "each result is known by an id of its own"
    assert (completion.finish, len(sent)) == ("calls", 1)


@pytest.mark.parametrize("fault", TOLD)
async def test_what_will_not_pass_is_told_at_once_with_what_to_do(fault: str, desk: Desk) -> None:
    made, told, kind = TOLD[fault]
    with pytest.raises(kind) as caught:
        await desk.ask(made, stays=True)
    assert told in str(caught.value)
    assert caught.value.fix
    assert "sk-test" not in str(caught.value)
    assert (len(desk.endpoint.calls), len(str(caught.value).splitlines())) == (1, 3)


@pytest.mark.parametrize(
    ("fault", "attempts", "told"),
    [("500", 5, "answered 500"), ("bad-json", 3, "not JSON: '{\"choices"), ("silent", 2, "no reply came within 0.4")],
)
async def test_what_stays_is_told_after_a_bounded_number_of_attempts(
    fault: str, attempts: int, told: str, desk: Desk
) -> None:
    with pytest.raises(EndpointError, match=f"asked {attempts} times") as caught:
        await desk.ask(fault, stays=True)
    assert told in caught.value.what
    assert len(desk.endpoint.calls) == attempts


@pytest.mark.parametrize("vendor", TOO_LONG)
async def test_a_prompt_is_shortened_in_whichever_words_it_is_refused(vendor: str, desk: Desk) -> None:
    said, window, asked = TOO_LONG[vendor]
    long = Request((user("hello world " * 3000),), Sampling())
    refused = refuses(429 if vendor == "OpenAI's rate" else 400, said)
    completion, sent = await desk.ask(refused, request=long)
    first, second = (len(body["messages"][0]["content"]) for body in sent)
    assert completion.text == "OK again"
    assert second < first * 0.8
    policy = OpenAIPolicy("scripted", desk.endpoint.base_url)
    desk.fault = refused
    with pytest.raises(ContextOverflow) as overflow:
        await policy.complete(ASKED)
    await policy.aclose()
    assert (overflow.value.window, overflow.value.asked) == (window, asked)


async def test_an_endpoint_that_never_sends_a_finish_reason_is_believed_the_second_time(desk: Desk) -> None:
    completion, sent = await desk.ask(streams(delta("OK 42")), stays=True, stream=True)
    assert (completion.text, len(sent)) == ("OK 42", 2)
    assert "cannot detect a reply that was cut off" in completion.notes[0]


@pytest.mark.parametrize("first", ["whole", "cut"])
async def test_where_finish_reasons_come_a_stream_without_one_is_never_whole(first: str, desk: Desk) -> None:
    cut = streams(delta("Seven of the nine payments failed"))
    policy = quick_policy(desk.endpoint.base_url, f"scripted, first {first}")
    desk.fault = cut if first == "cut" else ""
    assert (await policy.complete(ASKED, lambda _: None)).text == "OK again"
    desk.fault, desk.stays = cut, True
    with pytest.raises(BadReply, match="ended before the reply did"):
        await policy.complete(ASKED, lambda _: None)
    await policy.aclose()


async def test_what_one_prompt_leaves_for_the_reply_is_no_limit_for_the_next(desk: Desk) -> None:
    policy = OpenAIPolicy("scripted", desk.endpoint.base_url, "sk-test")
    for said, longest, kept in ((OF_THE_PROMPT, 3596, 100_000), (OF_THE_MODEL, 8192, 8192)):
        desk.fault = refuses(400, error(said, param="max_tokens"))
        desk.endpoint.requests.clear()
        for text in ("A long prompt", "A short one"):
            await policy.complete(Request((user(text),), Sampling(max_tokens=100_000)))
        assert [call.body["max_tokens"] for call in desk.endpoint.calls] == [100_000, longest, kept]
    await policy.aclose()


async def test_a_limit_that_is_refused_as_well_is_not_asked_for_for_ever(desk: Desk) -> None:
    request = Request((user("Hello"),), Sampling(max_tokens=100_000))
    with pytest.raises(EndpointError, match="too large"):
        await desk.ask(refuses(400, error(OF_THE_PROMPT)), stays=True, request=request)
    assert len(desk.endpoint.calls) < 10


async def test_what_a_system_message_says_is_said_by_the_user_where_there_is_none(desk: Desk) -> None:
    _, (_, second) = await desk.ask(refuses(400, error("System role not supported")))
    assert second["messages"] == [{"role": "user", "content": "Be brief.\n\nHello"}]


async def test_messages_of_one_role_in_a_row_become_one_where_they_must_alternate(desk: Desk) -> None:
    refused = refuses(400, error("Conversation roles must alternate user/assistant/user/assistant/..."))
    request = Request((user("One."), user("Two.")))
    _, (_, second) = await desk.ask(refused, request=request)
    assert second["messages"] == [{"role": "user", "content": "One.\n\nTwo."}]


async def test_a_list_of_stops_that_is_too_long_is_cut_and_kept_to_all_the_same(desk: Desk) -> None:
    request = Request((user("Hello"),), stop=("v", "w", "x", "y", " ag"))
    refused = refuses(400, error("Invalid 'stop': array too long.", param="stop"))
    completion, sent = await desk.ask(refused, request=request)
    assert [len(body["stop"]) for body in sent] == [5, 4]
    assert (completion.text, completion.stop) == ("OK", " ag")


@pytest.mark.parametrize(
    ("fault", "field", "value"),
    [
        ("finish-filter", "finish", "filtered"),
        ("finish-length", "finish", "length"),
        ("invalid-utf8", "text", "OK\ufffd\ufffd 42"),
        ("other-reasoning", "reasoning", "let me think"),
        ("model-echo", "model", "another-model"),
        (says(content=None, refusal="I cannot help with that."), "finish", "filtered"),
    ],
)
async def test_what_a_reply_says_beside_its_text_is_kept(
    fault: Fault | str, field: str, value: str, desk: Desk
) -> None:
    completion, _ = await desk.ask(fault)
    assert getattr(completion, field) == value


@pytest.mark.parametrize(("fault", "said"), [("s-big-line", "longer than 8 MiB"), ("s-never-end", "did not end")])
async def test_a_stream_is_bounded(fault: str, said: str, desk: Desk) -> None:
    desk.fault = fault
    policy = OpenAIPolicy("scripted", desk.endpoint.base_url)
    with pytest.raises(BadReply, match=said):
        await policy.complete(ASKED, lambda _: None)
    await policy.aclose()
