"""What an endpoint can really do."""

import json

import pytest

from hira.policies.capabilities import capabilities
from hira.testing import Endpoint, calling

COUNT = "one two three four five six seven eight nine"


def clever(request):
    """A model that does what it is asked, behind a server that can everything."""
    if request.tools:
        return calling("weather", city="Bern")
    if request.schema:
        return json.dumps({"answer": "yes"})
    return "i j k" if request.continues else COUNT


def dull(request):
    """A model that says one thing only."""
    return "Sure!" if request.continues else COUNT


@pytest.mark.parametrize(("stops", "shown"), [("strip", "stripped"), ("keep", "kept"), ("name", "named")])
async def test_what_an_endpoint_can_is_found_out(stops, shown):
    with Endpoint(clever, stops=stops) as endpoint:
        found = await capabilities("m", endpoint.base_url)
    assert found == {
        "streaming": True,
        "usage in stream": True,
        "native tools": True,
        "stop string": shown,
        "continuation": "continue_final_message",
        "JSON schema": True,
    }


async def test_what_it_cannot_is_found_out_too():
    with Endpoint(dull) as endpoint:
        found = await capabilities("m", endpoint.base_url)
    assert (found["native tools"], found["continuation"], found["JSON schema"]) == (False, "not shown", False)


async def test_a_failure_is_told_where_the_capability_stands():
    with Endpoint(clever, faults=["500"]) as endpoint:
        found = await capabilities("m", endpoint.base_url)
    assert str(found["streaming"]).startswith("the endpoint answered 500")
    assert found["native tools"] is True


async def test_a_real_server_shows_what_it_can(llama_server):
    found = await capabilities("tiny", llama_server)
    assert (found["streaming"], found["usage in stream"], found["JSON schema"]) == (True, True, True)
    assert found["stop string"] in {"stripped", "not shown"}
