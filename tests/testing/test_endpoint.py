"""A scripted endpoint over real HTTP."""

import json
import time
import urllib.error
import urllib.request

import pytest

from hira.core.messages import user
from hira.core.policy import Request
from hira.policies.openai import OpenAIPolicy
from hira.testing import Endpoint, ScriptError, calling


def post(endpoint, **body):
    request = urllib.request.Request(  # noqa: S310 - loopback
        f"{endpoint.base_url}/chat/completions",
        json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], **body}).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:  # noqa: S310 - loopback
        return json.load(response) if not body.get("stream") else response.read().decode()


def test_synchronous_code_can_use_it():
    with Endpoint(["hello"]) as endpoint:
        assert post(endpoint)["choices"][0]["message"]["content"] == "hello"
        assert endpoint.calls[0].body["messages"] == [{"role": "user", "content": "hi"}]
        endpoint.assert_done()


def test_a_stream_ends_with_usage_and_done():
    with Endpoint(["hello"]) as endpoint:
        events = post(endpoint, stream=True, stream_options={"include_usage": True}).split("\n\n")
    assert events[-2] == "data: [DONE]"
    assert json.loads(events[-3][6:])["usage"]["completion_tokens"] == 1


def test_each_model_can_have_a_script_of_its_own():
    with Endpoint({"small": ["from small"], "org/large": [calling("search", query="x")]}) as endpoint:
        assert post(endpoint, model="org/large")["choices"][0]["finish_reason"] == "tool_calls"
        assert post(endpoint, model="small")["choices"][0]["message"]["content"] == "from small"


def test_a_function_reads_the_request():
    with Endpoint(lambda request: f"{request.messages[-1].text}! {request.sampling.max_tokens}") as endpoint:
        assert post(endpoint, max_tokens=3)["choices"][0]["message"]["content"] == "hi! 3"


def test_a_script_that_ran_out_is_told_to_the_client_and_to_the_test():
    with Endpoint([]) as endpoint:
        with pytest.raises(urllib.error.HTTPError, match="500"):
            post(endpoint)
        with pytest.raises(ScriptError, match="no reply left"):
            endpoint.assert_done()


def test_faults_come_first_and_those_left_over_are_reported():
    with Endpoint(["good"], faults=["503", "500"]) as endpoint:
        with pytest.raises(urllib.error.HTTPError, match="503"):
            post(endpoint)
        with pytest.raises(ScriptError, match="faults were not used: \\['500'\\]"):
            endpoint.assert_done()


def test_a_reply_may_take_as_long_as_its_request_is_worth():
    def seconds(request: Request) -> float:
        return 0.3 if "long" in request.messages[0].text else 0.0

    with Endpoint(["a", "b"], delay=seconds) as endpoint:
        took = []
        for text in ("short", "long"):
            began = time.perf_counter()
            post(endpoint, messages=[{"role": "user", "content": text}])
            took.append(time.perf_counter() - began)
    assert took[1] > took[0] + 0.2


async def test_nothing_is_left_open_when_it_closes():
    with Endpoint(["never"], delay=60) as endpoint:
        policy = OpenAIPolicy("m", endpoint.base_url)
        await policy.aclose()
    with pytest.raises(Exception, match="refused"):
        await policy.complete(Request((user("x"),)))
