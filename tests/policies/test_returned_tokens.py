"""Token ids and log-probabilities that an endpoint returns stay with the turn, in the journal, and in the export."""

import json
from pathlib import Path
from typing import Any

import pytest

from hira import Hira
from hira.core.messages import user
from hira.core.policy import Request, Tokens
from hira.journal import Journal
from hira.policies.openai import OpenAIPolicy
from hira.policies.reply import ReplyParts, completion_of
from hira.policies.streaming import take_chunk
from hira.runtime.trace.conversations import conversations
from hira.runtime.trace.reading import read
from hira.testing import Endpoint

TOKENS = Tokens((1, 2, 3), (7, 8, 9), (-0.5, -0.25, 0.0))


def chat(**changed: Any) -> dict[str, Any]:
    """A whole reply as vLLM writes it with `return_token_ids` and `logprobs`."""
    choice = {
        "message": {"role": "assistant", "content": "a b"},
        "finish_reason": "stop",
        "token_ids": [7, 8, 9],
        "logprobs": {"content": [{"token": "a", "logprob": one} for one in TOKENS.logprobs]},
    }
    return {"prompt_token_ids": [1, 2, 3], "choices": [{**choice, **changed}]}


PATH = "/v1/chat/completions"
REQUEST = Request((user("hello"),))


async def complete(reply: dict[str, Any]) -> Tokens | None:
    with Endpoint(pages={PATH: reply}) as endpoint:
        policy = OpenAIPolicy("m", endpoint.base_url)
        completion = await policy.complete(REQUEST)
        await policy.aclose()
    return completion.tokens


async def test_the_tokens_of_a_reply_stay_with_its_turn() -> None:
    assert await complete(chat()) == TOKENS


@pytest.mark.parametrize(
    "changed",
    [
        {"logprobs": None},
        {"logprobs": {"content": [{"logprob": -0.5}]}},
        {"logprobs": {"content": "none"}},
        {"token_ids": None},
        {"token_ids": [7, 8, "9"]},
        {"token_ids": [7, 8, 9, 10]},
    ],
    ids=["no log-probabilities", "too few", "text", "no ids", "an id that is text", "an id too many"],
)
async def test_tokens_that_are_not_complete_are_left_out_and_the_reply_is_used(changed: dict[str, Any]) -> None:
    assert await complete(chat(**changed)) is None


async def test_an_endpoint_without_tokens_makes_turns_without_them() -> None:
    reply = chat()
    del reply["prompt_token_ids"], reply["choices"][0]["token_ids"], reply["choices"][0]["logprobs"]
    assert await complete(reply) is None


def test_the_tokens_of_a_stream_come_together() -> None:
    parts = ReplyParts()
    for place, (ident, logprob, text) in enumerate(zip(TOKENS.sampled, TOKENS.logprobs, "a b", strict=True)):
        choice = {"delta": {"content": text}, "token_ids": [ident], "logprobs": {"content": [{"logprob": logprob}]}}
        first = {"prompt_token_ids": [1, 2, 3]} if place == 0 else {}
        parts.text += take_chunk(parts, {**first, "choices": [choice]})[0]
    take_chunk(parts, {"choices": [{"delta": {}, "finish_reason": "stop"}]})
    completion = completion_of(parts, REQUEST)
    assert (completion.text, completion.tokens) == ("a b", TOKENS)


async def test_the_journal_keeps_them_and_the_export_has_them(tmp_path: Path) -> None:
    with Endpoint(pages={PATH: chat()}) as endpoint:
        async with Hira("m", base_url=endpoint.base_url, workflow="direct", journal=tmp_path / "journal") as hira:
            answer = await hira.ask("hello?")
    (line,) = conversations(read(Journal(tmp_path / "journal"), answer.rollout.run))
    recorded = json.loads(json.dumps(line))["turns"][0]["completion"]["tokens"]
    assert recorded == {"prompt": [1, 2, 3], "sampled": [7, 8, 9], "logprobs": [-0.5, -0.25, 0.0]}
