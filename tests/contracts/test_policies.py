"""What every policy must do, whoever stands behind it."""

import asyncio
from collections.abc import AsyncIterator

import openai
import pytest
from later import needs
from tiny_hf import tiny_model, tiny_tokenizer

from hira.core.messages import Message, ToolCall, assistant, system, user
from hira.core.policy import Completion, Delta, Policy, Request, Sampling
from hira.policies import open_policy
from hira.testing import Endpoint, ScriptedPolicy

SAMPLING = Sampling(temperature=0.5, max_tokens=16, seed=1)
ASKED = Request((system("be brief"), user("What is the answer?")), SAMPLING, conversation="planner")


def reply(request: Request) -> str:
    return "The answer is 42.<end> and more"


def client_of(endpoint: Endpoint, *, azure: bool) -> openai.AsyncOpenAI:
    if not azure:
        return openai.AsyncOpenAI(base_url=endpoint.base_url, api_key="k")
    place = endpoint.base_url.removesuffix("/v1")
    return openai.AsyncAzureOpenAI(azure_endpoint=place, api_key="k", api_version="2025-04-01-preview")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a tiny model of transformers."""
    folder = str(tmp_path_factory.mktemp("tiny"))
    tokenizer = tiny_tokenizer()
    tokenizer.save_pretrained(folder)
    tiny_model(tokenizer).save_pretrained(folder)
    return folder


@pytest.fixture(
    params=[
        "scripted",
        "endpoint",
        "responses",
        "client",
        "azure client",
        "llama.cpp",
        "offline",
        pytest.param("local", marks=needs("torch", "transformers")),
    ]
)
async def policy(request: pytest.FixtureRequest) -> AsyncIterator[Policy]:
    if request.param in ("endpoint", "responses"):
        with Endpoint(reply) as endpoint:
            api = "chat" if request.param == "endpoint" else "responses"
            made = open_policy("m", base_url=endpoint.base_url, api_key="k", api=api)
            yield made
            await made.aclose()
        return
    if request.param.endswith("client"):
        with Endpoint(reply) as endpoint:
            async with client_of(endpoint, azure=request.param.startswith("azure")) as client:
                made = open_policy("m", client=client)
                yield made
                await made.aclose()
        return
    made = {
        "scripted": lambda: ScriptedPolicy(reply),
        "llama.cpp": lambda: open_policy("tiny", base_url=request.getfixturevalue("llama_server")),
        "offline": lambda: open_policy("offline"),
        "local": lambda: open_policy(f"hf:{request.getfixturevalue('saved')}"),
    }[request.param]()
    yield made
    await made.aclose()


async def test_it_answers_with_a_completion_and_its_cost(policy):
    assert isinstance(policy, Policy)
    assert policy.model
    for completion in await asyncio.gather(*(policy.complete(ASKED) for _ in range(4))):
        assert completion.finish in {"stop", "length", "calls", "filtered"}
        assert completion.usage.calls == 1
        assert min(completion.usage.prompt_tokens, completion.usage.completion_tokens) >= 0


async def test_what_it_streams_is_what_it_returns(policy):
    seen: list[Delta] = []
    completion = await policy.complete(ASKED, seen.append)
    assert "".join(delta.text for delta in seen if not delta.reasoning).startswith(completion.text)
    assert "".join(delta.text for delta in seen if delta.reasoning) == completion.reasoning


async def test_its_text_holds_no_stop_string(policy):
    whole = (await policy.complete(ASKED)).text
    for stop in ("<end>", whole[2:4] or "e"):
        completion = await policy.complete(Request(ASKED.messages, SAMPLING, stop=(stop,), conversation="planner"))
        assert stop not in completion.text


async def test_it_takes_a_history_with_calls_and_results(policy):
    call = ToolCall("c1", "search", '{"query": "x"}')
    messages = (user("go"), assistant("I search.", (call,)), Message("tool", "found it", call_id="c1"), user("and?"))
    properties = {"query": {"type": "string"}}
    shown = {"name": "search", "description": "search", "parameters": {"type": "object", "properties": properties}}
    tools = ({"type": "function", "function": shown},)
    for choose in ("auto", "none"):
        asked = Request(messages, SAMPLING, tools=tools, conversation="planner", choose=choose)
        assert isinstance(await policy.complete(asked), Completion)


async def test_it_can_be_closed_twice(policy):
    await policy.complete(ASKED)
    await policy.aclose()
    await policy.aclose()
