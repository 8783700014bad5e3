"""The tools of one run, their record, and the substitutes that replay it.

Experts take the tools that they need from a `Toolbox`; a field of None means that this run cannot do it.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import TypedDict

from hira.core.errors import ToolError
from hira.core.messages import Media
from hira.core.tool import Observation, Tool
from hira.journal.decoding import validate

LONGEST_QUERY = 400
"""The most characters of a search query."""
OpenPython = Callable[[str], AbstractAsyncContextManager[Tool]]


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The tools of a run."""

    search: Tool | None = None
    """Searches all services, those for scholarly works included."""
    scholar: Tool | None = None
    """Searches scholarly works alone, if a service for them is set up."""
    browse: Tool | None = None
    files: Tool | None = None
    python: OpenPython | None = None
    """Opens a session for the subtask with that id: variables last as long as the session."""
    media: Callable[[str], Media] | None = None
    """Reads an image, a sound or a video at a path for a model that accepts it. Raises `ToolError`."""
    visible: tuple[str, ...] = ()
    """Names of the pictures, sounds and videos that exist from the beginning."""
    extra: tuple[Tool, ...] = ()
    """The user's own tools, for every expert with a loop."""
    scoped: Mapping[str, tuple[Tool, ...]] = field(default_factory=dict)
    """The user's own tools for some experts, by name."""

    def extra_for(self, expert: str) -> tuple[Tool, ...]:
        """Return the user's tools for this expert."""
        return (*self.extra, *self.scoped.get(expert, ()))

    @property
    def given(self) -> tuple[Tool, ...] | None:
        """The user's attached files and tools if no other role can use them, because there is neither Python nor a
        search; otherwise None."""
        reader_tools = (*([self.files] if self.files else []), *self.extra_for("reader"))
        return reader_tools if reader_tools and not (self.search or self.python) else None

    def has(self, need: str) -> bool:
        return getattr(self, need) is not None


_SINGLE = ("search", "scholar", "browse", "files")
_SHOWN = ("name", "description", "parameters", "pure", "stateful")


async def dump_toolbox(toolbox: Toolbox) -> dict[str, Any]:
    """Return the toolbox as JSON values: each tool as a model sees it."""

    def describe(*tools: Tool) -> list[dict[str, Any]]:
        return [{name: getattr(tool, name) for name in _SHOWN} for tool in tools]

    record: dict[str, Any] = {name: describe(tool)[0] for name in _SINGLE if (tool := getattr(toolbox, name))}
    if toolbox.python:
        async with toolbox.python("0") as python:  # nothing starts before the first call
            record["python"] = describe(python)[0]
    return {
        **record,
        "media": toolbox.media is not None,
        "visible": toolbox.visible,
        "extra": describe(*toolbox.extra),
        "scoped": {role: describe(*tools) for role, tools in toolbox.scoped.items()},
    }


class _ToolRecord(TypedDict):
    name: str
    description: str
    parameters: dict[str, Any]
    pure: bool
    stateful: bool


class _ToolboxRecord(TypedDict, total=False):
    search: _ToolRecord
    scholar: _ToolRecord
    browse: _ToolRecord
    files: _ToolRecord
    python: _ToolRecord
    media: bool
    visible: tuple[str, ...]
    extra: list[_ToolRecord]
    scoped: dict[str, list[_ToolRecord]]


def stand_ins(values: Mapping[str, Any]) -> Toolbox:
    """Return a toolbox that looks like the recorded one. The results of its tools have to come from the record."""
    record: Mapping[str, Any] = validate(_ToolboxRecord, values, "the tools of the run")

    async def refuse_call(_arguments: Mapping[str, Any]) -> Observation:
        raise ToolError("this run is replayed, and the record does not hold this call")

    def refuse_media(path: str) -> Media:
        raise ToolError(f"this run is replayed, and {path!r} is not read")

    def make(*records: Mapping[str, Any]) -> tuple[Tool, ...]:
        return tuple(Tool(**record, run=refuse_call) for record in records)

    @asynccontextmanager
    async def open_python(_subtask: str) -> AsyncIterator[Tool]:
        yield make(record["python"])[0]

    return Toolbox(
        **{name: make(record[name])[0] for name in _SINGLE if name in record},
        python=open_python if record.get("python") else None,
        media=refuse_media if record.get("media") else None,
        visible=tuple(record.get("visible", ())),
        extra=make(*record.get("extra", ())),
        scoped={role: make(*tools) for role, tools in record.get("scoped", {}).items()},
    )
