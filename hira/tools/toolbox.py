"""The tools of one run, their record, and the substitutes that replay it.

Experts take the tools that they need from a `Toolbox`; a field of None means that this run cannot do it.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from hira.core.errors import ToolError
from hira.core.messages import Media
from hira.core.tool import Observation, Tool

LONGEST_QUERY = 400
"""The most characters of a search query."""
OpenPython = Callable[[str], AbstractAsyncContextManager[Tool]]


@dataclass(frozen=True, slots=True)
class Toolbox:
    """`scholar` searches scholarly works alone, if a service for them is set up; `search` covers them too. `python`
    opens a session for the subtask with that id: variables last as long as the session.

    `media` reads an image, a sound or a video at a path for a model that accepts it; raises `ToolError`. `visible` are
    the names of the pictures, sounds and videos that exist from the beginning. `extra` are the user's own tools, for
    every expert with a loop, `scoped` those for some experts by name.
    """

    search: Tool | None = None
    scholar: Tool | None = None
    browse: Tool | None = None
    files: Tool | None = None
    python: OpenPython | None = None
    media: Callable[[str], Media] | None = None
    visible: tuple[str, ...] = ()
    extra: tuple[Tool, ...] = ()
    scoped: Mapping[str, tuple[Tool, ...]] = field(default_factory=dict)

    def extra_for(self, expert: str) -> tuple[Tool, ...]:
        """Return the user's tools for this expert."""
        return (*self.extra, *self.scoped.get(expert, ()))

    @property
    def given(self) -> tuple[Tool, ...] | None:
        """The user's attached files and tools if no other role can use them, because there is neither Python nor a
        search; otherwise None."""
        own = (*([self.files] if self.files else []), *self.extra_for("reader"))
        return own if own and not (self.search or self.python) else None

    def has(self, need: str) -> bool:
        return getattr(self, need) is not None


_SINGLE = ("search", "scholar", "browse", "files")


async def dump_toolbox(toolbox: Toolbox) -> dict[str, Any]:
    """Return the toolbox as JSON values: each tool as a model sees it."""
    single = {name: getattr(toolbox, name) for name in _SINGLE}
    return {
        **{name: _describe_tool(tool) for name, tool in single.items() if tool},
        **({"python": await _describe_python(toolbox)} if toolbox.python else {}),
        "media": toolbox.media is not None,
        "visible": toolbox.visible,
        "extra": [_describe_tool(tool) for tool in toolbox.extra],
        "scoped": {role: [_describe_tool(tool) for tool in tools] for role, tools in toolbox.scoped.items()},
    }


def stand_ins(record: Mapping[str, Any]) -> Toolbox:
    """Return a toolbox that looks like the recorded one. The results of its tools have to come from the record."""
    python: Mapping[str, Any] = record.get("python", {})

    @asynccontextmanager
    async def open_stand_in(_subtask: str) -> AsyncIterator[Tool]:
        yield _make_stand_in(python)

    return Toolbox(
        **{name: _make_stand_in(record[name]) for name in _SINGLE if name in record},
        python=open_stand_in if python else None,
        media=_no_media if record.get("media") else None,
        visible=tuple(record.get("visible", ())),
        extra=_make_stand_ins(record.get("extra", ())),
        scoped={role: _make_stand_ins(tools) for role, tools in record.get("scoped", {}).items()},
    )


def _make_stand_ins(records: Sequence[Mapping[str, Any]]) -> tuple[Tool, ...]:
    return tuple(map(_make_stand_in, records))


async def _describe_python(toolbox: Toolbox) -> dict[str, Any]:
    assert toolbox.python is not None  # noqa: S101 - the caller has looked
    async with toolbox.python("0") as python:  # nothing starts before the first call
        return _describe_tool(python)


def _describe_tool(tool: Tool) -> dict[str, Any]:
    names = ("name", "description", "parameters", "pure", "stateful")
    return {name: getattr(tool, name) for name in names}


def _make_stand_in(record: Mapping[str, Any]) -> Tool:
    return Tool(**record, run=_raise_unrecorded)


async def _raise_unrecorded(_arguments: Mapping[str, Any]) -> Observation:
    raise ToolError("this run is replayed, and the record does not hold this call")


def _no_media(path: str) -> Media:
    raise ToolError(f"this run is replayed, and {path!r} is not read")
