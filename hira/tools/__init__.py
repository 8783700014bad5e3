"""Tools that roles may call, and the toolbox that has those of one run; a field of None means that it has none."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from hira.core.messages import Media
from hira.core.tool import Observation, Passage, Tool, tool

__all__ = ["Observation", "Passage", "Tool", "Toolbox", "tool"]

WHERE_TO_SEARCH = "give documents (--docs or docs=) or a search (--search or search=)"
"""The fix for a run that has nothing to search."""
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
    unread: list[str] = field(default_factory=list)
    """The documents and attached files that could not be read, and why, a line each; calls of the run add to it."""

    def extra_for(self, expert: str) -> tuple[Tool, ...]:
        """Return the user's tools for this expert."""
        return (*self.extra, *self.scoped.get(expert, ()))

    @property
    def given(self) -> tuple[Tool, ...] | None:
        """The user's files and tools if no role can use them, for lack of Python and a search; otherwise None."""
        reader_tools = (*([self.files] if self.files else []), *self.extra_for("reader"))
        return reader_tools if reader_tools and not (self.search or self.python) else None

    def has(self, need: str) -> bool:
        """Return whether the run can do what an expert needs, such as `search`."""
        return getattr(self, need) is not None


SINGLE = ("search", "scholar", "browse", "files")
_SHOWN = ("name", "description", "parameters", "pure", "stateful")
_LATER = "1000000"
"""An id that no subtask has. Python describes itself for it as for the later subtasks of a run."""


async def dump_toolbox(toolbox: Toolbox) -> dict[str, Any]:
    """Return the toolbox as JSON values: each tool as a model sees it."""

    def describe(*tools: Tool) -> list[dict[str, Any]]:
        return [{name: getattr(tool, name) for name in _SHOWN} for tool in tools]

    record: dict[str, Any] = {name: describe(tool)[0] for name in SINGLE if (tool := getattr(toolbox, name))}
    if toolbox.python:
        async with toolbox.python("0") as python, toolbox.python(_LATER) as later:  # nothing starts before a call
            record["python"] = describe(python)[0]
            record["python_later"] = later.description
    return {
        **record,
        "media": toolbox.media is not None,
        "visible": toolbox.visible,
        "extra": describe(*toolbox.extra),
        "scoped": {role: describe(*tools) for role, tools in toolbox.scoped.items()},
    }
