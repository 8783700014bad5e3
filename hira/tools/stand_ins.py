"""The tools of a run as its record keeps them, and stand-ins made from that: they look the same and can do nothing."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from hira.core.errors import ToolError
from hira.core.messages import Media
from hira.core.tool import Observation, Tool
from hira.tools.toolbox import Toolbox

_SINGLE = ("search", "scholar", "browse", "files")


async def dump_toolbox(toolbox: Toolbox) -> dict[str, Any]:
    """The toolbox as JSON values: each tool as a model is shown it."""
    single = {name: getattr(toolbox, name) for name in _SINGLE}
    return {
        **{name: _told(tool) for name, tool in single.items() if tool},
        **({"python": await _python(toolbox)} if toolbox.python else {}),
        "media": toolbox.media is not None,
        "visible": toolbox.visible,
        "extra": [_told(tool) for tool in toolbox.extra],
        "scoped": {role: [_told(tool) for tool in tools] for role, tools in toolbox.scoped.items()},
    }


def stand_ins(record: Mapping[str, Any]) -> Toolbox:
    """A toolbox that looks as the recorded one did. What it is asked for has to come from the record."""
    python: Mapping[str, Any] = record.get("python", {})

    @asynccontextmanager
    async def opened(_subtask: str) -> AsyncIterator[Tool]:
        yield _made(python)

    return Toolbox(
        **{name: _made(record[name]) for name in _SINGLE if name in record},
        python=opened if python else None,
        media=_no_media if record.get("media") else None,
        visible=tuple(record.get("visible", ())),
        extra=_all(record.get("extra", ())),
        scoped={role: _all(tools) for role, tools in record.get("scoped", {}).items()},
    )


def _all(records: Sequence[Mapping[str, Any]]) -> tuple[Tool, ...]:
    return tuple(map(_made, records))


async def _python(toolbox: Toolbox) -> dict[str, Any]:
    assert toolbox.python is not None  # noqa: S101 - the caller has looked
    async with toolbox.python("0") as python:  # nothing is started before its first call
        return _told(python)


def _told(tool: Tool) -> dict[str, Any]:
    names = ("name", "description", "parameters", "pure", "stateful")
    return {name: getattr(tool, name) for name in names}


def _made(record: Mapping[str, Any]) -> Tool:
    return Tool(**record, run=_gone)


async def _gone(_arguments: Mapping[str, Any]) -> Observation:
    raise ToolError("this run is replayed, and the record does not hold this call")


def _no_media(path: str) -> Media:
    raise ToolError(f"this run is replayed, and {path!r} is not read")
