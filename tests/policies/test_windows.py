"""Servers that say beforehand how long a prompt may be, and whether their model can chat at all."""

from dataclasses import replace
from typing import Any

import pytest

from hira.core.errors import EndpointError
from hira.core.messages import user
from hira.core.policy import Completion, Request, Sampling
from hira.core.tokens import count
from hira.policies import open_policy
from hira.testing import Endpoint

SHORT = Request((user("Where is the court?"),), Sampling(max_tokens=4096))
LONG = replace(SHORT, messages=(user(" ".join(f"word{at}" for at in range(4000))), user("Where is the court?")))
CHATML = (
    "{%- for message in messages -%}\n  {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}"
    "\n{%- endfor -%}"
)


def listing(**entry: Any) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": "scripted", "object": "model", **entry}]}


def llama(window: int, template: str) -> dict[str, Any]:
    """The pages of llama.cpp's server."""
    props = {"default_generation_settings": {"n_ctx": window}, "chat_template": template}
    return {"/v1/models": listing(owned_by="llamacpp", meta={"n_ctx": window}), "/props": props}


SAYING = {
    "vLLM": {"/v1/models": listing(owned_by="vllm", max_model_len=4096)},
    "llama.cpp": llama(4096, "{{ messages }}"),
    "LM Studio": {"/v1/models": listing(max_context_length="4096")},
}


async def sent(pages: dict[str, Any], *requests: Request) -> tuple[list[Any], list[str], Completion]:
    """The bodies that were sent, what was told before the reply, and the last reply."""
    told: list[str] = []
    with Endpoint(["here"] * 9, pages=pages) as endpoint:
        policy = open_policy("scripted", base_url=endpoint.base_url)
        for request in requests:
            completion = await policy.complete(replace(request, tell=told.append))
        await policy.aclose()
        bodies = [call.body for call in endpoint.calls if call.path == "/v1/chat/completions"]
    return bodies, told, completion


def tokens(body: Any) -> int:
    return sum(count(message["content"]) for message in body["messages"])


@pytest.mark.parametrize("server", SAYING)
async def test_a_prompt_is_shortened_before_it_is_sent_and_that_is_told_at_once(server: str) -> None:
    (body,), told, completion = await sent(SAYING[server], LONG)
    assert tokens(body) + body["max_tokens"] <= 4096
    assert body["messages"][-1]["content"] == "Where is the court?"
    assert told == list(completion.notes)
    assert "longer than the model's window" in told[0]


async def test_a_reply_is_given_no_more_room_than_the_window_has() -> None:
    short, long = (await sent(SAYING["vLLM"], SHORT, LONG))[0]
    assert 3900 < short["max_tokens"] < 4096
    assert long["max_tokens"] == 1024


async def test_a_window_of_two_thousand_tokens_is_enough() -> None:
    (body,), _, completion = await sent(llama(2048, "{{ messages }}"), LONG)
    assert tokens(body) + body["max_tokens"] <= 2048
    assert completion.text == "here"


@pytest.mark.parametrize("pages", [{}, {"/v1/models": "nonsense"}, {"/v1/models": {"data": [1]}}, llama(0, "")])
async def test_a_server_that_says_nothing_is_sent_everything(pages: dict[str, Any]) -> None:
    (body,), told, _ = await sent(pages, LONG)
    assert (body["max_tokens"], told) == (4096, [])
    assert tokens(body) == sum(count(message.text) for message in LONG.messages)


async def test_a_window_that_suffices_changes_nothing() -> None:
    (body,), told, _ = await sent({"/v1/models": listing(max_model_len=131_072)}, LONG)
    assert (body["max_tokens"], told) == (4096, [])


async def test_the_server_is_asked_once() -> None:
    with Endpoint(["here"] * 3, pages=SAYING["vLLM"]) as endpoint:
        policy = open_policy("scripted", base_url=endpoint.base_url)
        for _ in range(3):
            await policy.complete(SHORT)
        await policy.aclose()
        assert len([one for one in endpoint.requests if one.method == "GET"]) == 1


async def test_a_model_without_a_chat_template_is_refused_in_one_line() -> None:
    pages = llama(2048, CHATML) | {"/tokenize": {"tokens": [27, 91, 318]}}
    with pytest.raises(EndpointError, match="the model has no chat template") as refused:
        await sent(pages, SHORT)
    assert "instruct" in refused.value.fix


async def test_a_vocabulary_that_knows_the_marks_of_the_servers_template_is_enough() -> None:
    bodies, _, _ = await sent(llama(2048, CHATML) | {"/tokenize": {"tokens": [1]}}, SHORT)
    assert len(bodies) == 1
