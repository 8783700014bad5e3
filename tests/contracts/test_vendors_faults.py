"""How vendors, servers and gateways fail, each in its own way, over real HTTP: taken, asked again, or told what to do."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from test_faults_end_to_end import Time
from test_odd_replies import GOOD, replies, writes

from hira.core.errors import AccessDenied, EndpointError, RateLimited
from hira.core.messages import system, user
from hira.core.policy import Completion, Delta, Policy, Request, Sampling
from hira.policies.fitting import fitting
from hira.policies.limited import RateLimiter, limit_policy
from hira.policies.openai import OpenAIPolicy
from hira.policies.retrying import Timeout, retrying
from hira.testing import Endpoint
from hira.testing.faults import FOREVER, Exchange, Fault, calls, delta, ends, error, refuses, says, streams

TOOLS = tuple(
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("search", "browse")
)
ASKED = Request((system("Be brief."), user("Hello")), Sampling(temperature=0.7, top_k=5, seed=1), tools=TOOLS)


class Desk:
    """One endpoint for all these tests, and what goes wrong at it next."""

    def __init__(self) -> None:
        self.fault: Fault | str = ""
        self.stays = False
        self.endpoint = Endpoint(lambda _: "OK again", faults=self._next)

    def _next(self, number: int) -> Fault | str:
        del number
        fault, self.fault = self.fault, self.fault if self.stays else ""
        return fault

    async def ask(
        self, fault: Fault, *, stays: bool = False, stream: bool = False, request: Request = ASKED
    ) -> tuple[Completion, list[Any]]:
        """The completion, and the bodies that were sent for it."""
        self.fault, self.stays = fault, stays
        self.endpoint.requests.clear()
        policy = opened(self.endpoint.base_url)
        heard: list[Delta] = []
        try:
            async with asyncio.timeout(20):
                completion = await policy.complete(request, heard.append if stream else None)
        finally:
            await policy.aclose()
        return completion, [call.body for call in self.endpoint.calls]


def opened(base_url: str) -> Policy:
    time = Time()
    policy = OpenAIPolicy(
        "scripted", base_url, "sk-test", timeout=Timeout(connect=0.3, first_token=0.4, between_tokens=0.2, reply=0.4)
    )
    gate = RateLimiter(clock=time.clock, sleep=time.sleep)
    return fitting(retrying(limit_policy(policy, lambda: gate, where=policy.where), sleep=time.sleep))


@pytest.fixture(scope="module")
def served() -> Iterator[Desk]:
    desk = Desk()
    with desk.endpoint:
        yield desk


@pytest.fixture
async def desk(served: Desk) -> AsyncIterator[Desk]:
    yield served
    served.fault = ""


def function(name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


def piece(**call: Any) -> dict[str, Any]:
    return delta(tool_calls=[call])


def choice(**fields: Any) -> Fault:
    """The good reply with these fields of its choice."""
    return Fault(alter=lambda reply: reply | {"choices": [reply["choices"][0] | fields]})


def chunked(raw: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (
        len(raw),
        raw,
    )


async def _reset_when_whole(exchange: Exchange) -> None:
    await exchange.begin()
    await exchange.chunk(b"data: " + json.dumps(delta("OK 42", "stop")).encode() + b"\n\n")
    await asyncio.sleep(0.02)
    await exchange.reset()


async def _alive_without_a_word(exchange: Exchange) -> None:
    await exchange.begin()
    while True:
        await exchange.chunk(b": keep-alive\n\n")
        await asyncio.sleep(0.02)


async def _byte_by_byte(exchange: Exchange) -> None:
    await exchange.begin()
    for byte in b"data: " + json.dumps(delta("OK 42", "stop")).encode():
        await exchange.chunk(bytes((byte,)))
        await asyncio.sleep(0.05)
    await asyncio.sleep(FOREVER)


DATA = b"data: " + json.dumps(delta("OK 42", "stop")).encode()
PASSING = {
    "OpenAI": replies(error("Rate limit reached", "rate_limit_error", "rate_limit_exceeded")),
    "Anthropic": replies({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    "Google": replies([{"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}]),
    "TGI": replies({"error": "Model is overloaded", "error_type": "overloaded"}),
    "FastAPI": replies({"detail": "Internal error"}),
    "Cloudflare": replies({"success": False, "errors": [{"code": 7009, "message": "Upstream service unavailable"}]}),
    "Zhipu": replies({"code": 1302, "msg": "too many requests", "success": False}),
    "DashScope": replies({"code": "Throttling.RateQuota", "message": "Requests rate limit exceeded"}),
    "MiniMax": replies({"choices": None, "base_resp": {"status_code": 1002, "status_msg": "rate limit"}}),
    "a queue": replies({"status": "error", "message": "queue full"}),
    "OpenRouter": choice(finish_reason="error", error={"code": 502, "message": "Provider returned error"}),
    "an error in place of a choice": replies({"choices": [{"error": {"code": 502, "message": "Provider failed"}}]}),
    "an error beside choices": replies({"error": {"message": "provider died", "code": 502}, "choices": [{}]}),
    "calls, it says": choice(finish_reason="tool_calls", message={"role": "assistant", "content": None}),
    "the other API": replies({"object": "response", "status": "completed", "output": []}),
    "packed and cut": Fault(
        lambda exchange: exchange.send(200, gzip.compress(json.dumps(GOOD).encode())[:30], content_encoding="gzip")
    ),
    "no last chunk": writes(chunked(json.dumps(GOOD).encode())),
    "lines of JSON": refuses(200, '{"done": false}\n{"done": true}', kind="application/x-ndjson"),
    "530": refuses(530, "error code: 1033", kind="text/plain"),
    "499": refuses(499),
    "598": refuses(598),
    "pause with a unit": refuses(429, error("slow"), retry_after="1s"),
}
PASSING_STREAMED = {
    "error in a choice": streams(
        delta("OK "),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "error", "error": {"code": 502, "message": "gone"}}]},
    ),
    "error beside a choice": streams(
        delta("OK "), {"error": {"code": 502, "message": "gone"}, "choices": [{"index": 0, "delta": {"content": ""}}]}
    ),
    "error as an event": streams(b'event: error\ndata: {"error": {"type": "overloaded_error"}}\n\n', done=False),
    "error in words": streams(b"event: error\ndata: something broke\n\n", done=False),
    "error as JSON": refuses(200, json.dumps(error("slow down", "rate_limit_error")), kind="text/event-stream"),
    "only usage": streams({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}}),
    "packed and cut": Fault(
        lambda exchange: exchange.send(200, gzip.compress(DATA)[:25], "text/event-stream", content_encoding="gzip")
    ),
    "alive without a word": Fault(_alive_without_a_word),
    "byte by byte": Fault(_byte_by_byte),
    "another vendor's stream": streams({"type": "message_start"}, {"type": "message_stop"}, done=False),
}
TAKEN = {
    "two finishes": ends("eos_token"),
    "thinking in parts": says(content=[{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "OK 42"}]),
    "keys twice": refuses(200, json.dumps(GOOD)[:-1] + ', "choices": ' + json.dumps(GOOD["choices"]) + "}"),
    "no logprobs": choice(logprobs=None),
    "text, it says": refuses(200, json.dumps(GOOD), kind="text/plain"),
    "streamed unasked": streams(delta("OK 42"), delta(None, "stop")),
    "calls, it says, and text": ends("tool_calls"),
    "no error": Fault(alter=lambda reply: reply | {"error": {}}),
}
TAKEN_STREAMED = {
    "only carriage returns": streams(DATA + b"\r\r", done=False),
    "several lines": streams(DATA.replace(b'"delta"', b'\ndata: "delta"') + b"\n\n"),
    "no empty lines": streams(
        b"data: " + json.dumps(delta("OK ")).encode() + b"\ndata: " + json.dumps(delta("42", "stop")).encode() + b"\n"
        b"data: [DONE]\n",
        done=False,
    ),
    "names and numbers": streams(b"event: message\nid: 1\nretry: 100\n" + DATA + b"\n\n"),
    "the end too early": streams(delta("OK "), b"data: [DONE]\n\n", delta("42", "stop"), done=False),
    "the end twice": streams(delta("OK 42"), delta("", "stop"), delta("", "stop")),
    "text behind its end": streams(delta("OK", "stop"), delta(" 42")),
    "another reply first": streams(
        {"choices": [{"index": 1, "delta": {"content": "NO"}}, {"index": 0, "delta": {"content": "OK 42"}}]},
        delta("", "stop"),
    ),
    "an index in quotes": streams(
        {"choices": [{"index": "0", "delta": {"content": "OK 42"}, "finish_reason": "stop"}]}
    ),
    "a message": streams({"choices": [{"index": 0, "message": {"content": "OK 42"}, "finish_reason": "stop"}]}),
    "JSON": refuses(200, json.dumps(GOOD, indent=1), kind="text/event-stream"),
    "a break behind the end": Fault(_reset_when_whole),
    "a ping": streams({"type": "ping"}, delta("OK 42", "stop")),
    "no usage": streams(delta("OK 42", "stop") | {"usage": None}),
    "a usage that says all is well": streams(
        delta("OK 42", "stop"), {"choices": [], "usage": {}, "base_resp": {"status_code": 0, "status_msg": "success"}}
    ),
    "pieces that say all is well": streams({"code": 0, "message": "Success"}, delta("OK 42", "stop")),
}
SEARCH, BROWSE = ("search", '{"query": "q"}'), ("browse", "{}")
CALLED = {
    "one id for two": (calls(function(*SEARCH, id="x"), function(*BROWSE, id="x")), [SEARCH, BROWSE]),
    "as it was": (says(content=None, function_call={"name": "search", "arguments": '{"query": "q"}'}), [SEARCH]),
    "an object": (calls(function("search", {"query": "q"}, id="x")), [SEARCH]),
}
CALLED_STREAMED = {
    "out of order": (
        streams(
            piece(index=1, id="b", function={"name": "browse", "arguments": ""}),
            piece(index=0, id="a", function={"name": "search", "arguments": '{"query": '}),
            piece(index=1, function={"arguments": "{}"}),
            piece(index=0, function={"arguments": '"q"}'}),
            delta(None, "tool_calls"),
        ),
        [BROWSE, SEARCH],
    ),
    "a name in pieces": (
        streams(
            piece(index=0, id="a", function={"name": "sea"}),
            piece(index=0, function={"name": "rch"}),
            piece(index=0, function={"arguments": '{"query": "q"}'}),
            delta(None, "tool_calls"),
        ),
        [SEARCH],
    ),
    "a name again and again": (
        streams(
            piece(index=0, id="a", function={"name": "search", "arguments": '{"query": '}),
            piece(index=0, id="a", function={"name": "search", "arguments": '"q"}'}),
            delta(None, "tool_calls"),
        ),
        [SEARCH],
    ),
    "one id for two": (
        streams(
            piece(index=0, id="a", function={"name": SEARCH[0], "arguments": SEARCH[1]}),
            piece(index=1, id="a", function={"name": BROWSE[0], "arguments": BROWSE[1]}),
            delta(None, "tool_calls"),
        ),
        [SEARCH, BROWSE],
    ),
    "the whole call twice": (
        streams(
            *[piece(index=0, id="a", function={"name": SEARCH[0], "arguments": SEARCH[1]})] * 2, delta(None, "stop")
        ),
        [SEARCH],
    ),
    "as it was": (
        streams(
            delta(None, function_call={"name": "browse", "arguments": ""}),
            delta(None, function_call={"arguments": "{}"}),
            delta(None, "function_call"),
        ),
        [BROWSE],
    ),
    "ids and names left empty": (
        streams(
            piece(index=0, id="a", function={"name": "browse", "arguments": ""}),
            piece(index=0, id="", function={"name": None, "arguments": "{}"}),
            delta(None, "stop"),
        ),
        [BROWSE],
    ),
}
CREDIT, KEY = "has no credit left", "check that the key is right"
TOLD: dict[str, tuple[Fault, str, type[EndpointError]]] = {
    "no credit (Anthropic)": (refuses(400, error("Your credit balance is too low to access it")), CREDIT, RateLimited),
    "no credit (a limit of rate)": (refuses(429, error("Insufficient balance")), CREDIT, RateLimited),
    "no credit (a reply)": (replies(error("You exceeded your current quota", "insufficient_quota")), CREDIT, RateLimited),
    "a key (Google)": (refuses(400, error("API key not valid. Please pass a valid API key.")), KEY, AccessDenied),
    "a model (Ollama)": (replies({"error": "model 'x' not found"}), "name of the model", EndpointError),
    "a model (vLLM)": (
        replies({"object": "error", "message": "The model `x` does not exist.", "code": 404}), "name of the model",
        EndpointError,
    ),
    "a proxy": (refuses(407, ""), "HTTPS_PROXY", EndpointError),
    "a method": (refuses(405, {"detail": "Method Not Allowed"}), "check the base URL", EndpointError),
    "a filter (Azure)": (
        refuses(400, error("The response was filtered", code="content_filter")), "rephrase the question", EndpointError
    ),
    "a filter (OpenAI)": (refuses(400, error("Invalid prompt: it was flagged as potentially violating")), "rephrase the question",
                          EndpointError),
    "a teapot": (refuses(418, "teapot"), "hira doctor", EndpointError),
    "a pause in words": (
        refuses(429, error("Please try again in 7h12m3.5s.")), "accepts no requests until", RateLimited
    ),
}  # fmt: skip
TOO_LONG = {
    "OpenAI": error("This model's maximum context length is 8192 tokens, but 10500 tokens were sent", code="context"),
    "OpenAI's other API": error("Your input exceeds the context window of this model."),
    "OpenAI's rate": error("Request too large on tokens per min (TPM): Limit 3000, Requested 6000."),
    "Anthropic": {"type": "error", "error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}},
    "Anthropic, with the reply": error("input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000"),
    "Google": error("The input token count (1100000) exceeds the maximum number of tokens allowed (1048576)."),
    "vLLM": error("The decoder prompt (length 9000) is longer than the maximum model length of 4096."),
    "SGLang": error("The input (9000 tokens) is longer than the model's context length (4096 tokens)."),
    "llama.cpp": {
        "error": {"type": "exceed_context_size_error", "message": "", "n_prompt_tokens": 9000, "n_ctx": 4096}
    },
    "TGI": {"error": "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 9000 `inputs` tokens and 512"},
    "Together": error("Input validation error: `inputs` must have less than 8192 tokens. Given: 9000"),
    "Mistral": error("Prompt contains 40000 tokens, too large for model with 32768 maximum context length"),
    "Cohere": {"message": "too many tokens: the prompt cannot exceed 128000 - received 140000."},
    "Groq": error("Please reduce the length of the messages or completion.", code="context_length_exceeded"),
    "Bedrock": {"message": "Input is too long for requested model."},
    "xAI": {"error": "This model's maximum prompt length is 131072 but the request contains 140000 tokens."},
    "Qwen": {"code": "InvalidParameter", "message": "Range of input length should be [1, 30720]"},
    "Moonshot": error("Invalid request: Your request exceeded model token limit: 8192"),
    "Ollama": error("the input length exceeds the context length"),
    "LM Studio": {"error": "the model is loaded with context length of only 4096 tokens, which is not enough."},
}
LEFT_OUT = {
    "temperature": (error("'temperature' does not support 0.7 with this model.", param="temperature"), "temperature"),
    "top_k": (error("Unrecognized request argument supplied: top_k"), "top_k"),
    "seed": ({"object": "error", "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'seed')}]"}, "seed"),
}
SHORTER = {
    "OpenAI": ("max_tokens is too large: 100000. This model supports at most 16384 completion tokens.", 16384),
    "DeepSeek": ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
    "Groq": ("`max_tokens` must be less than or equal to `32768`", 32768),
    "vLLM": (
        "'max_tokens' is too large. This model's maximum context length is 4096 tokens and your request has 500 input", 3596
    ),
}  # fmt: skip
NO_SYSTEM = {
    "Gemma": "System role not supported",
    "o1": "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
}


@pytest.mark.parametrize("vendor", PASSING)
async def test_what_passes_is_asked_again(vendor: str, desk: Desk) -> None:
    completion, sent = await desk.ask(PASSING[vendor])
    assert (completion.text, len(sent)) == ("OK again", 2)


@pytest.mark.parametrize("vendor", PASSING_STREAMED)
async def test_a_stream_that_fails_is_asked_for_again(vendor: str, desk: Desk) -> None:
    completion, sent = await desk.ask(PASSING_STREAMED[vendor], stream=True)
    assert (completion.text, len(sent)) == ("OK again", 2)


@pytest.mark.parametrize("vendor", TAKEN)
async def test_a_reply_is_taken_however_it_is_written(vendor: str, desk: Desk) -> None:
    completion, sent = await desk.ask(TAKEN[vendor])
    assert (completion.text, completion.finish, len(sent)) == ("OK 42", "stop", 1)


@pytest.mark.parametrize("vendor", TAKEN_STREAMED)
async def test_a_stream_is_taken_however_it_is_written(vendor: str, desk: Desk) -> None:
    completion, sent = await desk.ask(TAKEN_STREAMED[vendor], stream=True)
    assert (completion.text, completion.finish, len(sent)) == ("OK 42", "stop", 1)


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
    assert (len(desk.endpoint.calls), len(str(caught.value).splitlines())) == (1, 3)


@pytest.mark.parametrize("vendor", TOO_LONG)
async def test_a_prompt_is_shortened_in_whichever_words_it_is_refused(vendor: str, desk: Desk) -> None:
    status = 429 if vendor == "OpenAI's rate" else 400
    long = Request((user("hello world " * 3000),), Sampling())
    completion, sent = await desk.ask(refuses(status, TOO_LONG[vendor]), request=long)
    first, second = (len(body["messages"][0]["content"]) for body in sent)
    assert completion.text == "OK again"
    assert second < first * 0.8


@pytest.mark.parametrize("field", LEFT_OUT)
async def test_a_field_that_is_refused_is_left_out(field: str, desk: Desk) -> None:
    said, name = LEFT_OUT[field]
    _, (first, second) = await desk.ask(refuses(400, said))
    assert first.keys() - second.keys() == {name}


@pytest.mark.parametrize("vendor", SHORTER)
async def test_a_reply_is_allowed_as_many_tokens_as_the_endpoint_gives(vendor: str, desk: Desk) -> None:
    said, longest = SHORTER[vendor]
    request = Request((user("Hello"),), Sampling(max_tokens=100_000))
    _, sent = await desk.ask(refuses(400, error(said, param="max_tokens")), request=request)
    assert [body["max_tokens"] for body in sent] == [100_000, longest]


async def test_what_one_prompt_leaves_for_the_reply_is_no_limit_for_the_next(desk: Desk) -> None:
    policy = OpenAIPolicy("scripted", desk.endpoint.base_url, "sk-test")
    for vendor, kept in (("vLLM", 100_000), ("DeepSeek", 8192)):
        desk.fault = refuses(400, error(SHORTER[vendor][0], param="max_tokens"))
        for text in ("A long prompt", "A short one"):
            await policy.complete(Request((user(text),), Sampling(max_tokens=100_000)))
        assert desk.endpoint.calls[-1].body["max_tokens"] == kept
    await policy.aclose()


async def test_a_limit_that_is_refused_as_well_is_not_asked_for_for_ever(desk: Desk) -> None:
    request = Request((user("Hello"),), Sampling(max_tokens=100_000))
    with pytest.raises(EndpointError, match="too large"):
        await desk.ask(refuses(400, error(SHORTER["vLLM"][0])), stays=True, request=request)
    assert len(desk.endpoint.calls) < 10


async def test_a_limit_by_the_minute_that_speaks_of_billing_is_waited_for(desk: Desk) -> None:
    said = "You exceeded your current quota, please check your plan and billing details."
    details = [{"@type": "google.rpc.RetryInfo", "retryDelay": "0.01s"}]
    refused = refuses(429, [{"error": {"code": 429, "message": said, "details": details}}])
    completion, sent = await desk.ask(refused)
    assert (completion.text, len(sent)) == ("OK again", 2)


@pytest.mark.parametrize("vendor", NO_SYSTEM)
async def test_what_a_system_message_says_is_said_by_the_user_where_there_is_none(vendor: str, desk: Desk) -> None:
    _, (_, second) = await desk.ask(refuses(400, error(NO_SYSTEM[vendor])))
    assert second["messages"] == [{"role": "user", "content": "Be brief.\n\nHello"}]


async def test_messages_of_one_role_in_a_row_become_one_where_they_must_alternate(desk: Desk) -> None:
    refused = refuses(400, error("Conversation roles must alternate user/assistant/user/assistant/..."))
    request = Request((user("One."), user("Two.")))
    _, (_, second) = await desk.ask(refused, request=request)
    assert second["messages"] == [{"role": "user", "content": "One.\n\nTwo."}]
    with pytest.raises(EndpointError, match="must alternate"):
        await desk.ask(refused, stays=True, request=request)
    assert len(desk.endpoint.calls) == 2


async def test_a_list_of_stops_that_is_too_long_is_cut_and_kept_to_all_the_same(desk: Desk) -> None:
    request = Request((user("Hello"),), stop=("v", "w", "x", "y", " ag"))
    refused = refuses(400, error("Invalid 'stop': array too long.", param="stop"))
    completion, sent = await desk.ask(refused, request=request)
    assert [len(body["stop"]) for body in sent] == [5, 4]
    assert (completion.text, completion.stop) == ("OK", " ag")


async def test_a_stream_whose_server_never_tells_its_end_is_believed_the_second_time(desk: Desk) -> None:
    completion, sent = await desk.ask(streams(delta("OK 42")), stays=True, stream=True)
    assert (completion.text, len(sent)) == ("OK 42", 2)
    assert "does not report how its replies end" in completion.notes[0]


@pytest.mark.parametrize(
    ("counted", "usage"),
    [
        ({"prompt_tokens": "12", "completion_tokens": "3"}, (12, 3)),
        ({"prompt_tokens": -1, "completion_tokens": -1}, None),
    ],
)
async def test_what_was_not_counted_is_counted_here(counted: Any, usage: Any, desk: Desk) -> None:
    completion, _ = await desk.ask(Fault(alter=lambda reply: reply | {"usage": counted}))
    found = completion.usage.prompt_tokens, completion.usage.completion_tokens
    assert found == usage if usage else min(found) > 0
