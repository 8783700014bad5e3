"""Tools of a rollout, changed all alike; and watched, so that what broke below them is not held against the agent."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from typing import Any

from hira.core.errors import ToolDown
from hira.tools import Observation, Tool, Toolbox
from hira.tools.toolbox import OpenPython


def each(tools: Toolbox, change: Callable[[Tool], Tool]) -> Toolbox:
    """The tools with this change to each; sessions of Python are as they were."""
    return replace(
        tools,
        search=change(tools.search) if tools.search else None,
        scholar=change(tools.scholar) if tools.scholar else None,
        browse=change(tools.browse) if tools.browse else None,
        files=change(tools.files) if tools.files else None,
        extra=tuple(map(change, tools.extra)),
        scoped={role: tuple(map(change, own)) for role, own in tools.scoped.items()},
    )


Waiting = Callable[[str], AbstractContextManager[None]]


def watched(tools: Toolbox, down: list[ToolDown], waiting: Waiting = lambda _: nullcontext()) -> Toolbox:
    """The same tools; whenever a service, a server or a sandbox below one is down, that is entered into `down`. Each
    call is made within `waiting`, which is told the tool's name."""

    def watch(tool: Tool) -> Tool:
        async def run(arguments: dict[str, Any]) -> Observation:
            try:
                with waiting(tool.name):
                    return await tool.run(arguments)
            except ToolDown as error:
                down.append(error)
                raise

        return replace(tool, run=run)

    python = tools.python
    return replace(each(tools, watch), python=_opening(python, watch) if python else None)


def _opening(python: OpenPython, watch: Callable[[Tool], Tool]) -> OpenPython:
    @asynccontextmanager
    async def opened(subtask: str) -> AsyncIterator[Tool]:
        async with python(subtask) as session:
            yield watch(session)

    return opened
