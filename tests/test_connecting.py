"""Which endpoint is chosen, and what is refused before anything is sent."""

import asyncio
from typing import Any

import pytest

from hira.connecting import connected
from hira.errors import AccessDenied, UsageError
from hira.settings import Settings
from hira.testing import Endpoint


def given(**values: Any) -> Settings:
    return Settings.model_validate(values)


async def test_a_role_whose_model_would_be_asked_without_a_key_is_refused_before_any_call() -> None:
    for settings in (
        given(roles={"planner": {"model": "gpt-5"}}),
        given(model="offline", roles={"planner": {"model": "gpt-5"}}),
    ):
        with pytest.raises(AccessDenied, match="no key for model 'gpt-5' of role 'planner'"):
            await connected(settings, ports=())
    at_home = {"planner": {"model": "m@http://127.0.0.1:9/v1"}, "coordinator": {"model": "offline"}}
    assert (await connected(given(roles=at_home), ports=())).model == "offline"
    keyed = given(model="offline", roles={"planner": {"model": "gpt-5", "api_key": "sk-of-the-role"}})
    assert await connected(keyed, ports=()) == keyed


async def test_a_misspelt_model_gets_the_nearest_name_that_needs_no_key() -> None:
    for settings in (given(model="ofline"), given(model="offline", roles={"planner": {"model": "ofline"}})):
        with pytest.raises(AccessDenied, match=r"did you mean 'offline'\? Else set OPENAI_API_KEY"):
            await connected(settings, ports=())
    with Endpoint(model="qwen3-8b") as endpoint:
        port = int(endpoint.base_url.rsplit(":", 1)[1].partition("/")[0])
        with pytest.raises(AccessDenied, match=r"did you mean 'qwen3-8b'\?"):
            await connected(given(model="qwen-8b"), ports=(port,))
    with pytest.raises(AccessDenied, match=r"\nset OPENAI_API_KEY"):
        await connected(given(model="gpt-5"), ports=())


async def test_a_server_on_a_usual_port_that_wants_a_key_is_told() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    found = await connected(given(), ports=(port,))
    server.close()
    assert found.model == "offline"
    assert found.withheld == (
        f"a server at http://127.0.0.1:{port}/v1 wants a key: set HIRA_API_KEY, and name it with --base-url",
    )


@pytest.mark.parametrize("path", ["/chat/completions", "/completions/", "/models"])
async def test_a_base_url_with_the_path_of_a_request_names_the_one_to_write(path: str) -> None:
    for settings in (
        given(model="m", base_url=f"http://127.0.0.1:9/v1{path}"),
        given(model="offline", roles={"planner": {"base_url": f"http://127.0.0.1:9/v1{path}"}}),
    ):
        with pytest.raises(UsageError) as caught:
            await connected(settings, ports=())
        assert caught.value.fix == "write http://127.0.0.1:9/v1"
