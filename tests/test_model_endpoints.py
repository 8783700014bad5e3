"""Which endpoint is chosen, and what is refused before anything is sent."""

import asyncio
from importlib.util import find_spec
from typing import Any

import pytest

from hira.core.errors import AccessDenied, UsageError
from hira.runtime.endpoints import find_model
from hira.runtime.settings import RoleSettings, Settings, load
from hira.runtime.settings.keys import EndpointPlace, find_place
from hira.testing import Endpoint


def given(**values: Any) -> Settings:
    return Settings.model_validate(values)


async def test_a_role_whose_model_would_be_asked_without_a_key_is_refused_before_any_call() -> None:
    for settings in (
        given(roles={"planner": {"model": "gpt-5"}}),
        given(model="offline", roles={"planner": {"model": "gpt-5"}}),
    ):
        with pytest.raises(AccessDenied, match="no key for model 'gpt-5' of role 'planner'"):
            await find_model(settings, ports=())
    at_home = {"planner": {"model": "m@http://127.0.0.1:9/v1"}, "coordinator": {"model": "offline"}}
    assert (await find_model(given(roles=at_home), ports=())).model == "offline"
    keyed = given(model="offline", roles={"planner": {"model": "gpt-5", "api_key": "sk-of-the-role"}})
    assert await find_model(keyed, ports=()) == keyed


async def test_a_misspelt_model_gets_the_nearest_name_that_needs_no_key() -> None:
    for settings in (given(model="ofline"), given(model="offline", roles={"planner": {"model": "ofline"}})):
        with pytest.raises(AccessDenied, match=r"did you mean 'offline'\? Else set OPENAI_API_KEY"):
            await find_model(settings, ports=())
    with Endpoint(model="qwen3-8b") as endpoint:
        port = int(endpoint.base_url.rsplit(":", 1)[1].partition("/")[0])
        with pytest.raises(AccessDenied, match=r"did you mean 'qwen3-8b'\?"):
            await find_model(given(model="qwen-8b"), ports=(port,))
    with pytest.raises(AccessDenied, match=r"\nset OPENAI_API_KEY"):
        await find_model(given(model="gpt-5"), ports=())


async def test_a_server_on_a_usual_port_that_wants_a_key_is_told() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    found = await find_model(given(), ports=(port,))
    server.close()
    assert found.model == "offline"
    assert found.withheld == (
        f"a server at http://127.0.0.1:{port}/v1 needs a key: set HIRA_API_KEY, and name it with --base-url or base_url=",
    )


@pytest.mark.parametrize("path", ["/chat/completions", "/completions/", "/models"])
async def test_a_base_url_with_the_path_of_a_request_names_the_one_to_write(path: str) -> None:
    for settings in (
        given(model="m", base_url=f"http://127.0.0.1:9/v1{path}"),
        given(model="offline", roles={"planner": {"base_url": f"http://127.0.0.1:9/v1{path}"}}),
    ):
        with pytest.raises(UsageError) as caught:
            await find_model(settings, ports=())
        assert caught.value.fix == "write http://127.0.0.1:9/v1"


def place(name: str, **values: Any) -> EndpointPlace:
    """Where the general model of these settings is asked."""
    settings = asyncio.run(find_model(given(model=name, **values), ports=()))
    return find_place(name, "*", RoleSettings(), settings)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("claude-opus-4-1", "litellm/anthropic/claude-opus-4-1"),
        ("anthropic/claude-opus-4-1", "litellm/anthropic/claude-opus-4-1"),
        ("anthropic:claude-opus-4-1", "litellm/anthropic/claude-opus-4-1"),
    ],
)
def test_a_name_with_a_provider_leads_to_litellm_and_takes_no_key_of_openai(name, meant, tmp_path, monkeypatch) -> None:
    (tmp_path / "litellm.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    settings = load({"model": name}, {"OPENAI_API_KEY": "sk-of-openai"}, tmp_path, tmp_path)
    assert find_place(name, "*", RoleSettings(), settings) == EndpointPlace(meant, "", "", "")


@pytest.mark.skipif(find_spec("litellm") is not None, reason="litellm is installed")
@pytest.mark.parametrize("name", ["claude-opus-4-1", "gemini/gemini-2.5-pro"])
def test_without_litellm_one_line_says_what_a_name_with_a_provider_needs(name) -> None:
    with pytest.raises(UsageError, match="needs litellm") as refused:
        place(name)
    assert "pip install 'hira[litellm]'" in refused.value.fix
    assert "--base-url" in refused.value.fix


def test_at_an_endpoint_that_is_named_such_names_are_the_endpoints_own() -> None:
    url = "https://gateway.example/v1"
    for name in ("anthropic/claude-opus-4-1", "claude-opus-4-1", "openai/gpt-oss-20b", "ollama/qwen3"):
        assert place(name, base_url=url) == EndpointPlace(name, url, "", "")
    assert place("openai:gpt-5", base_url=url) == EndpointPlace("gpt-5", url, "", "")


def test_the_path_of_a_gguf_file_is_a_model_that_needs_no_key_unless_an_endpoint_names_it_so() -> None:
    assert place("models/qwen3.GGUF", api_key="sk-1") == EndpointPlace("gguf:models/qwen3.GGUF", "", "", "")
    url = "http://127.0.0.1:8080/v1"
    assert place("qwen3.gguf", base_url=url) == EndpointPlace("qwen3.gguf", url, "", "")


def test_openai_and_ollama_before_a_name_say_where_it_is_asked() -> None:
    key = {"api_key": "sk-1"}
    assert place("openai:gpt-5", **key)[:3] == place("openai/gpt-5", **key)[:3] == ("gpt-5", "", "sk-1")
    assert place("ollama/qwen3:8b", **key) == EndpointPlace("qwen3:8b", "http://127.0.0.1:11434/v1", "", "")
    assert place("mistral:7b", **key)[:2] == ("mistral:7b", "")
