"""The Responses API, over real HTTP."""

import json

import pytest

from hira import Hira
from hira.core.errors import BadReply, EndpointError, UsageError
from hira.core.messages import Media, Message, ToolCall, assistant, system, user
from hira.core.policy import Completion, Delta, Request, Sampling, Usage
from hira.policies.failures import EmptyReply
from hira.policies.openai import OpenAIPolicy
from hira.runtime.settings import Settings
from hira.testing import Endpoint, calling
from hira.testing.faults import Fault, error, refuses, streams

ASKED = Request((system("be brief"), user("what is it?")))
TOOL = {"type": "function", "function": {"name": "search", "description": "d", "parameters": {"type": "object"}}}
CALL = ToolCall("call_1", "search", '{"query": "mars"}')
THOUGHT = Completion(
    "I look.", reasoning="let me see", calls=(CALL,), finish="calls", usage=Usage(1, 10, 5, 4), model="m"
)


async def ask(endpoint, request=ASKED, watch=None, **more):
    policy = OpenAIPolicy("m", endpoint.base_url, "sk-secret", **{"api": "responses"} | more)
    try:
        return await policy.complete(request, watch)
    finally:
        await policy.aclose()


async def test_the_request_goes_out_in_items_and_nothing_is_stored():
    request = Request(
        (
            system("s"),
            user("look", Media("image", "data:image/png;base64,AA")),
            assistant("I search.", (CALL,)),
            Message("tool", "found", call_id="call_1"),
            assistant("Done."),
            user("and?"),
        ),
        Sampling(temperature=0.5, top_p=0.9, top_k=20, max_tokens=7, seed=3, reasoning_effort="low"),
        stop=("</a>",),
        tools=(TOOL,),
        schema={"type": "object"},
        choose="none",
    )
    with Endpoint(["fine"]) as endpoint:
        await ask(endpoint, request)
        received = endpoint.calls[0]
    assert received.path == "/v1/responses"
    assert received.body == {
        "model": "m",
        "input": [
            {"role": "system", "content": "s"},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "look"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AA"},
                ],
            },
            {"role": "assistant", "content": "I search."},
            {"type": "function_call", "call_id": "call_1", "name": "search", "arguments": '{"query": "mars"}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "found"},
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": "and?"},
        ],
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 16,  # the API's least
        "reasoning": {"effort": "low"},
        "tools": [
            {
                "type": "function",
                "strict": False,
                "name": "search",
                "description": "d",
                "parameters": {"type": "object"},
            }
        ],
        "tool_choice": "none",
        "text": {"format": {"type": "json_schema", "name": "reply", "schema": {"type": "object"}}},
    }


@pytest.mark.parametrize("watched", [False, True])
async def test_text_reasoning_calls_and_usage_come_back(watched):
    seen: list[Delta] = []
    with Endpoint([THOUGHT]) as endpoint:
        completion = await ask(endpoint, Request(ASKED.messages, tools=(TOOL,)), seen.append if watched else None)
    assert completion == THOUGHT
    if watched:
        assert "".join(delta.text for delta in seen if delta.reasoning) == "let me see"
        assert "".join(delta.text for delta in seen if not delta.reasoning) == "I look."


@pytest.mark.parametrize("watch", [None, lambda _: None])
async def test_the_reasoning_of_a_turn_with_calls_is_sent_back_as_it_was_written(watch):
    again = (*ASKED.messages, assistant("I look.", (CALL,)), Message("tool", "found", call_id="call_1"))
    with Endpoint([THOUGHT, "It is Mars."]) as endpoint:
        policy = OpenAIPolicy("m", endpoint.base_url, api="responses")
        await policy.complete(Request(ASKED.messages, tools=(TOOL,)), watch)
        completion = await policy.complete(Request(again, tools=(TOOL,)), watch)
        await policy.aclose()
        sent = endpoint.calls[1].body["input"][2:]
    assert completion.text == "It is Mars."
    assert [item["type"] for item in sent] == ["reasoning", "message", "function_call", "function_call_output"]
    assert sent[0]["encrypted_content"]


async def test_stop_strings_end_the_text_although_the_api_has_none():
    with Endpoint(["one<end>two"]) as endpoint:
        completion = await ask(endpoint, Request(ASKED.messages, stop=("<end>",)))
    assert (completion.text, completion.stop) == ("one", "<end>")


async def test_a_model_that_has_no_other_api_is_asked_through_it_by_itself():
    refusal = refuses(404, error("This model is only supported in v1/responses and not in v1/chat/completions."))
    with Endpoint(["fine", "again"], faults=lambda number: refusal if number == 1 else "") as endpoint:
        policy = OpenAIPolicy("m", endpoint.base_url)
        assert (await policy.complete(ASKED)).text == "fine"
        assert (await policy.complete(ASKED)).text == "again"
        await policy.aclose()
        assert [call.path for call in endpoint.calls] == ["/v1/chat/completions", "/v1/responses", "/v1/responses"]


FAILED = {
    "type": "response.failed",
    "response": {"status": "failed", "error": {"code": "server_error", "message": "it broke"}, "output": []},
}


@pytest.mark.parametrize(
    ("fault", "kind", "watch"),
    [(refuses(200, {"object": "response", "status": "completed"}), BadReply, None), (streams(FAILED, done=False), EndpointError, lambda _: None), (streams({"type": "response.output_text.delta", "delta": "hal"}, done=False), BadReply, lambda _: None), (Fault(alter=lambda reply: reply | {"choices": [{"message": {}, "finish_reason": "stop"}]}), EmptyReply, None)],
)  # fmt: skip
async def test_what_goes_wrong_is_told_as_in_the_chat_api(fault, kind, watch):
    with Endpoint(faults=lambda _: fault) as endpoint, pytest.raises(kind):
        await ask(endpoint, watch=watch)


async def test_a_message_cannot_be_continued():
    with Endpoint() as endpoint, pytest.raises(UsageError, match="Responses API cannot"):
        await ask(endpoint, Request((user("a"), assistant("b")), continues=True))


async def test_a_whole_run_goes_through_the_responses_api(tmp_path):
    (tmp_path / "tower.txt").write_text("The tower of Varnholm is 31 metres high.")
    search = calling("search", query="tower of Varnholm")
    with Endpoint([search, "The tower of Varnholm is 31 metres high. [s1]"]) as endpoint:
        settings = Settings(
            model="m", base_url=endpoint.base_url, api="responses", workflow="react", docs=(tmp_path,), journal=None
        )
        async with Hira(settings=settings) as hira:
            answer = await hira.ask("How high is the tower of Varnholm?")
        assert {call.path for call in endpoint.calls} == {"/v1/responses"}
        assert "31 metres" in json.dumps(endpoint.calls[-1].body["input"])
    assert answer.status == "answered"
