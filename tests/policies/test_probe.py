"""What stands behind a base URL."""

import socket
import time

import pytest

from hira.policies.probe import find_local, missing, probe
from hira.testing import Endpoint


async def test_an_endpoint_tells_its_models_and_its_kind():
    with Endpoint(model="tiny") as endpoint:
        found = await probe(endpoint.base_url, "key")
        assert endpoint.requests[0].headers["authorization"] == "Bearer key"
    assert (found.ok, found.models, found.server, found.lacks_v1) == (True, ("tiny",), "hira.testing", False)


async def test_a_url_without_v1_is_found_out():
    with Endpoint() as endpoint:
        found = await probe(endpoint.base_url.removesuffix("/v1"))
    assert (found.ok, found.lacks_v1, found.base_url) == (True, True, endpoint.base_url)


@pytest.mark.parametrize(
    ("model", "listed", "said"),
    [
        ("qwen3-8b", "Qwen3-8B", "the endpoint has Qwen3-8B"),
        ("abc", "zzz", "the endpoint has zzz"),
        ("same", "same", "lists this model"),
    ],
)
async def test_a_missing_model_is_answered_with_the_nearest(model, listed, said):
    with Endpoint(model=listed) as endpoint:
        assert said in await missing(model, endpoint.base_url, "")


async def test_servers_on_this_machine_are_found_without_sending_a_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    silent = socket.create_server(("127.0.0.1", 0))
    with silent, Endpoint(model="a") as one, Endpoint(model="b") as two:
        ports = [int(url.base_url.split(":")[2].removesuffix("/v1")) for url in (one, two)]
        began = time.monotonic()
        found = await find_local((ports[0], 9, silent.getsockname()[1], ports[1]))
        assert time.monotonic() - began < 10  # the silent one is not waited for, which would be for ever
        assert "authorization" not in one.requests[0].headers
    assert [local.models for local in found] == [("a",), ("b",)]
