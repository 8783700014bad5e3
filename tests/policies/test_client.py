"""Client objects of the `openai` package that a program hands over."""

import subprocess
import sys

import httpx
import openai
import pytest

from hira import Hira
from hira.core.errors import AccessDenied, EndpointError, UsageError
from hira.core.messages import system, user
from hira.core.policy import CallOptions, Request, Sampling
from hira.policies.openai import OpenAIPolicy
from hira.testing import Endpoint

ASKED = Request((system("be brief"), user("what is it?")))


async def ask_through(client, request=ASKED, watch=None):
    policy = OpenAIPolicy("m", client=client)
    try:
        return await policy.complete(request, watch)
    finally:
        await policy.aclose()
        await client.close()


async def test_a_client_sends_requests_with_its_own_key_and_headers():
    with Endpoint(["fine"]) as endpoint:
        client = openai.AsyncOpenAI(base_url=endpoint.base_url, api_key="sk-own", default_headers={"x-team": "blue"})
        completion = await ask_through(client, Request(ASKED.messages, Sampling(top_k=20, max_tokens=7)))
        received = endpoint.calls[0]
    assert completion.text == "fine"
    assert (received.headers["authorization"], received.headers["x-team"]) == ("Bearer sk-own", "blue")
    assert (received.body["top_k"], received.body["max_tokens"]) == (20, 7)


async def test_an_azure_client_asks_its_deployment_with_a_token_that_is_fetched_anew():
    tokens = iter(["first", "second"])

    async def fetch_token():
        return next(tokens)

    with Endpoint(["one", "two"]) as endpoint:
        client = openai.AsyncAzureOpenAI(
            azure_endpoint=endpoint.base_url.removesuffix("/v1"),
            azure_ad_token_provider=fetch_token,
            api_version="2025-04-01-preview",
        )
        policy = OpenAIPolicy("gpt-of-mine", client=client)
        for _ in range(2):
            await policy.complete(ASKED)
        await client.close()
        paths = [(request.path, request.query["api-version"]) for request in endpoint.calls]
        keys = [request.headers["authorization"] for request in endpoint.calls]
    assert paths == [("/openai/deployments/gpt-of-mine/chat/completions", "2025-04-01-preview")] * 2
    assert keys == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [("401", AccessDenied), ("s-truncated", EndpointError), ("reset-before", EndpointError)],
)
async def test_a_clients_failures_are_those_of_an_endpoint(fault, kind):
    with Endpoint([], faults=[fault]) as endpoint:
        client = openai.AsyncOpenAI(base_url=endpoint.base_url, api_key="sk-own-secret")
        with pytest.raises(kind) as failed:
            await ask_through(client, watch=lambda _: None)
        assert len(endpoint.calls) == 1  # the client does not retry
    assert "sk-own-secret" not in str(failed.value)
    assert "client" in failed.value.where


async def test_hira_asks_every_role_without_an_endpoint_through_the_client(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with Endpoint(["It is blue."]) as endpoint:
        client = openai.AsyncOpenAI(base_url=endpoint.base_url, api_key="sk-own")
        async with client, Hira("m", client=client, workflow="direct", temperature=0, reasoning_effort="low") as hira:
            answer = await hira.ask("Which colour is it?")
        body = endpoint.calls[0].body
    assert "blue" in answer.text
    assert (body["temperature"], body["reasoning_effort"]) == (0.0, "low")


async def test_a_client_needs_the_name_of_a_model(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    async with openai.AsyncOpenAI(base_url="http://127.0.0.1:9/v1", api_key="k") as client:
        with pytest.raises(UsageError, match="no model is named"):
            await Hira(client=client).ask("What?")


def test_a_synchronous_client_is_refused():
    with pytest.raises(UsageError, match="asynchronous OpenAI client"):
        Hira("m", client=openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key="k"))


def test_a_plain_request_does_not_load_openai():
    program = """
import asyncio, sys
from hira.core.messages import user
from hira.policies import open_policy
from hira.core.policy import Request
from hira.testing import Endpoint

async def main():
    with Endpoint(["fine"]) as endpoint:
        policy = open_policy("m", base_url=endpoint.base_url)
        print((await policy.complete(Request((user("?"),)))).text, "openai" in sys.modules)
        await policy.aclose()

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["fine", "False"]


async def test_openai_gets_one_cache_key_for_all_requests_of_a_run_and_nobody_else_does():
    with Endpoint(["one", "two", "three", "four"]) as endpoint:
        proxy = endpoint.base_url.removesuffix("/v1")
        for base_url, through, run in (
            ("http://api.openai.com/v1", proxy, "run-1"),
            ("http://api.openai.com/v1", proxy, "run-1"),
            ("http://api.openai.com/v1", proxy, "run-2"),
            (endpoint.base_url, None, "run-1"),
        ):
            http_client = httpx.AsyncClient(proxy=through)
            client = openai.AsyncOpenAI(base_url=base_url, api_key="k", http_client=http_client)
            await ask_through(client, ASKED, CallOptions(run=run))
        first, second, other, elsewhere = [call.body.get("prompt_cache_key") for call in endpoint.calls]
    assert first == second != other
    assert "run-1" not in first
    assert elsewhere is None
