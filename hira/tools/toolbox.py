"""The tools of one run. Experts take what they need from it; what is None cannot be done in this run."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from hira.core.messages import Media
from hira.core.tool import Tool

OpenPython = Callable[[str], AbstractAsyncContextManager[Tool]]


@dataclass(frozen=True, slots=True)
class Toolbox:
    """`scholar` searches scholarly works alone, where a service for them is set up; `search` looks there too.
    `python` opens a session for the subtask with that id: variables last as long as the session.

    `media` reads an image, a sound or a video at a path for a model that can take it; raises `ToolError`. `visible` are
    the names of what there is to be seen and heard from the beginning.
    `extra` are the tools that the user brings, for every expert with a loop, `scoped` those for some experts by name.
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
        """The user's tools that this expert is given."""
        return (*self.extra, *self.scoped.get(expert, ()))

    @property
    def given(self) -> tuple[Tool, ...] | None:
        """What the user gave that nobody else can use, because there is neither Python nor a search: the attached
        files, and tools; None if there is nothing of it."""
        own = (*([self.files] if self.files else []), *self.extra_for("reader"))
        return own if own and not (self.search or self.python) else None

    def has(self, need: str) -> bool:
        return getattr(self, need) is not None
