"""What is said of an endpoint's failure, to somebody who has to do something about it."""

import asyncio

import pytest

from hira.core.errors import EndpointError
from hira.core.messages import user
from hira.core.policy import Request
from hira.policies.failures import failure
from hira.policies.openai import OpenAIPolicy

VLLM = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'


def test_a_server_that_was_started_without_tool_calls_is_told_how_to_be_used() -> None:
    error = failure(400, {"object": "error", "message": VLLM, "code": 400}, {}, where="at a server")
    assert "HIRA_DIALECT=tags" in error.fix
    assert "--enable-auto-tool-choice" in error.fix
    assert not error.retryable


async def test_a_connection_that_ends_before_the_answer_is_told_in_words() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    policy = OpenAIPolicy("m", f"http://127.0.0.1:{port}/v1")
    with pytest.raises(EndpointError) as caught:
        await policy.complete(Request((user("Hello"),)))
    await policy.aclose()
    server.close()
    assert "class" not in caught.value.what
    assert "closed the connection" in caught.value.what
