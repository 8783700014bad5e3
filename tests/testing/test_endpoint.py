"""A scripted endpoint over real HTTP."""

import json
import urllib.error
import urllib.request

import pytest

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


def test_each_model_can_have_a_script_of_its_own():
    with Endpoint({"small": ["from small"], "org/large": [calling("search", query="x")]}) as endpoint:
        assert post(endpoint, model="org/large")["choices"][0]["finish_reason"] == "tool_calls"
        assert post(endpoint, model="small")["choices"][0]["message"]["content"] == "from small"


def test_a_script_that_ran_out_is_told_to_the_client_and_to_the_test():
    with Endpoint([]) as endpoint:
        with pytest.raises(urllib.error.HTTPError, match="500"):
            post(endpoint)
        with pytest.raises(ScriptError, match="no reply left"):
            endpoint.assert_done()


def test_a_reply_that_cannot_be_made_ends_the_request():
    def reply(request):
        raise KeyError(request.conversation)

    with Endpoint(reply) as endpoint, pytest.raises(ConnectionError):
        post(endpoint)


def test_faults_come_first_and_those_left_over_are_reported():
    with Endpoint(["good"], faults=["503", "500"]) as endpoint:
        with pytest.raises(urllib.error.HTTPError, match="503"):
            post(endpoint)
        with pytest.raises(ScriptError, match="faults were not used: \\['500'\\]"):
            endpoint.assert_done()
