"""A dialect: how a call is written in text and its result is written back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from hira.core.messages import Filled, Message
from hira.core.policy import Completion

if TYPE_CHECKING:
    from hira.core.tool import Tool


@dataclass(frozen=True, slots=True)
class Call:
    """What the model wants done. `id` ties a native call to its result."""

    name: str
    arguments: Mapping[str, Any]
    id: str = ""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A turn as read: what was said, what is to be called, and how the turn stands in the conversation.

    `error`, if not empty, tells the model what was wrong with its call; `calls` is then empty.
    """

    text: str
    calls: tuple[Call, ...]
    message: Message
    error: str = ""


def missing(arguments: Mapping[str, Any], tool: "Tool") -> str:
    """What a call lacks, told to the model; empty if it has every parameter it must have."""
    lacking = [name for name in tool.parameters.get("required", ()) if arguments.get(name) in (None, "")]
    return f"The call of {tool.name} lacks {', '.join(lacking)}; it takes {', '.join(tool.fields)}." if lacking else ""


class Dialect(Protocol):
    """Writes instructions and results, reads turns. Holds no state."""

    @property
    def name(self) -> str: ...

    def instructions(self, tools: "Sequence[Tool]") -> Filled:
        """What a prompt says about calling these tools."""
        ...

    def stops(self, tools: "Sequence[Tool]", several: int) -> tuple[str, ...]:
        """Stop strings for a turn that may hold `several` calls."""
        ...

    def specs(self, tools: "Sequence[Tool]") -> tuple[Mapping[str, Any], ...]:
        """Function definitions for the request, empty where calls are plain text."""
        ...

    def parse(self, completion: Completion, tools: "Sequence[Tool]", several: int = 1) -> Parsed:
        """Read a turn. At most `several` calls are accepted, whatever follows them is cut."""
        ...

    def results(self, pairs: Sequence[tuple[Call, str]], notice: Filled | None = None) -> tuple[Message, ...]:
        """The messages that bring back the results of calls, with hira's own `notice` after them."""
        ...

    def write(self, call: Call, tool: "Tool") -> str:
        """The call as this dialect's text; empty where calls are not text. `parse` reads it back."""
        ...
