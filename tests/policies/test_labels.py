"""Requests name their run, role and conversation in headers, so that a gateway can tell them apart."""

from typing import Any

from hira import Hira
from hira.core.messages import user
from hira.core.policy import CallOptions, Request
from hira.policies.openai import OpenAIPolicy
from hira.testing import Endpoint


def labels(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items() if name.lower().startswith("x-hira-")}


async def test_each_request_of_a_run_names_run_role_and_conversation() -> None:
    with Endpoint(lambda _: "42") as endpoint:
        async with Hira(endpoint.model, base_url=endpoint.base_url, workflow="direct", journal=False) as hira:
            answer = await hira.ask("What is 6 times 7?")
    (conversation,) = answer.rollout.trajectories.values()
    wanted = {
        "x-hira-run": answer.rollout.run,
        "x-hira-role": conversation.role,
        "x-hira-conversation": conversation.conversation,
    }
    assert [labels(call.headers) for call in endpoint.calls] == [wanted]


async def test_names_are_percent_encoded_so_that_no_name_can_add_a_header() -> None:
    with Endpoint(lambda _: "42") as endpoint:
        name = "1\r\nX-Evil: 1/pl\u00e4ner"
        policy = OpenAIPolicy(endpoint.model, endpoint.base_url)
        await policy.complete(Request((user("?"),), conversation=name), CallOptions(run="r 1"))
        await policy.complete(Request((user("?"),)))
        await policy.aclose()
    first, second = (labels(call.headers) for call in endpoint.calls)
    assert first == {
        "x-hira-run": "r%201",
        "x-hira-role": "pl%C3%A4ner",
        "x-hira-conversation": "1%0D%0AX-Evil%3A%201/pl%C3%A4ner",
    }
    assert second == {}, "a request outside of a run"


async def test_a_gateway_that_serves_completions_alone_is_enough() -> None:
    with Endpoint(lambda _: "42", pages={"/v1/models": {"error": "there is nothing here"}}) as endpoint:
        async with Hira("any", base_url=endpoint.base_url, workflow="direct", journal=False) as hira:
            answer = await hira.ask("What is 6 times 7?")
    assert (answer.text, answer.error) == ("42", "")
