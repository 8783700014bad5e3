"""What broke below a tool is the infrastructure's; what was asked of it is the agent's."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from test_rollouts import Letters, rollouts

from hira.core.errors import ToolDown
from hira.core.policy import Request
from hira.tools import Observation, Tool, Toolbox, tool
from hira.tools.search.service import Backend
from hira.tools.search.services import searxng
from hira.tools.search.tool import search_tool
from hira.trainers.calls import watch_tools


def nobody() -> str:
    """An address on which nobody listens."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{place.getsockname()[1]}"


def asks(query: str) -> Letters:
    def say(request: Request) -> str:
        last = request.messages[-1].text
        asking = f"<|begin_search_query|> {query} <|end_search_query|>"
        return "yes" if "failed" in last or "now" in last else asking

    return Letters(say)


@asynccontextmanager
async def searching(*more: Backend) -> AsyncIterator[Tool]:
    async with httpx.AsyncClient() as client:
        yield search_tool([searxng(client, base_url=nobody()), *more])


async def test_a_search_that_no_service_answers_is_not_the_agents_failure() -> None:
    async with searching() as search:
        made = await rollouts(asks("it"), {"tools": Toolbox(search=search)}, trust=1.0).collect(0)
    attempts = [one for group in made.groups for one in group.attempts]
    assert {(one.status, one.reward) for one in attempts} == {("infra_failed", None)}
    assert "no search service answers" in made.samples[0]["error"]


async def test_a_sandbox_that_does_not_start_is_seen() -> None:
    @tool(name="python")
    async def run(code: str) -> Observation:
        """Run."""
        raise ToolDown(f"Python could not be started for {code}")

    @asynccontextmanager
    async def opened(subtask: str) -> AsyncIterator[Tool]:
        assert subtask == "1"
        yield run

    down: list[ToolDown] = []
    tools = watch_tools(Toolbox(python=opened), down)
    assert tools.python
    async with tools.python("1") as session:
        with pytest.raises(ToolDown):
            await session.call({"code": "1"})
    assert len(down) == 1
