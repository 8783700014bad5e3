"""What an endpoint can really do."""

import json

import pytest

from hira.core.errors import MediaRefused
from hira.core.messages import Media, user
from hira.core.policy import Request
from hira.policies import open_policy
from hira.policies.capabilities import capabilities
from hira.testing import Endpoint, calling

COUNT = "one two three four five six seven eight nine"


def clever(request):
    """A model that does what it is asked, behind a server that can everything."""
    if request.tools:
        return calling("weather", city="Bern")
    if request.schema:
        return json.dumps({"answer": "yes"})
    if "colour" in request.messages[0].text:
        return "Red."
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
        "pictures": True,
    }


async def test_what_it_cannot_is_found_out_too():
    with Endpoint(dull) as endpoint:
        found = await capabilities("m", endpoint.base_url)
    assert (found["native tools"], found["continuation"], found["JSON schema"]) == (False, "not shown", False)
    assert found["pictures"] is False


async def test_the_refusal_of_a_picture_says_where_it_came_from():
    with Endpoint(["A tower."], faults=lambda _: "400-no-images") as endpoint:
        policy = open_policy("m", base_url=endpoint.base_url)
        with pytest.raises(MediaRefused) as refused:
            await policy.complete(Request((user("What is this?", Media("image", "data:image/png;base64,AA")),)))
        await policy.aclose()
        assert endpoint.base_url in refused.value.where


async def test_pictures_that_are_refused_are_told_and_not_sent_again():
    with Endpoint(clever, faults=lambda number: "400-no-images" if number == 8 else "") as endpoint:
        found = await capabilities("m", endpoint.base_url)
        assert "the model takes no pictures" in str(found["pictures"])
        asked = len(endpoint.calls)
        assert "image_url" in str(endpoint.calls[-1].body)
        policy = open_policy("m", base_url=endpoint.base_url)
        with pytest.raises(MediaRefused, match="takes no pictures"):
            await policy.complete(Request((user("What is this?", Media("image", "data:image/png;base64,AA")),)))
        await policy.aclose()
        assert len(endpoint.calls) == asked
