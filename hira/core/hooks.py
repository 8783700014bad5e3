"""Functions of a program that see each tool call and each turn of a run, and may change or refuse it."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeAlias, TypeVar

from hira.core.messages import Message
from hira.core.policy import Completion
from hira.core.tool import Context, D, Observation

_NO_CONTEXT: Context[Any] = Context(None)


@dataclass(frozen=True, slots=True)
class ToolUse(Generic[D]):
    """A tool call that a role wants to make.

    Args:
        name: The tool's name.
        arguments: The arguments of the call.
        role: The role that makes the call, such as `reader`.
        id: Names the call within its run.
        context: The program's `deps`, and the run with its question.
    """

    name: str
    arguments: Mapping[str, Any]
    role: str = ""
    id: str = ""
    context: Context[D] = _NO_CONTEXT


@dataclass(frozen=True, slots=True)
class TurnInput(Generic[D]):
    """The input of a model's next turn.

    Args:
        role: The role that takes the turn, such as `planner`.
        messages: The prompt, oldest message first.
        conversation: Names the conversation within its run.
        context: The program's `deps`, and the run with its question.
    """

    role: str
    messages: tuple[Message, ...]
    conversation: str = ""
    context: Context[D] = _NO_CONTEXT


@dataclass(frozen=True, slots=True)
class Refusal:
    """Returned by a hook, or by a person who approves, to prevent a call or a turn.

    Args:
        reason: Why not. The model reads it.
    """

    reason: str = ""


_R = TypeVar("_R")
_Either: TypeAlias = _R | Awaitable[_R]
"""The result of a function, or of an async one."""
BeforeTool: TypeAlias = Callable[[ToolUse[Any]], _Either[Mapping[str, Any] | Refusal | None]]
AfterTool: TypeAlias = Callable[[ToolUse[Any], Observation], _Either[Observation | str | Refusal | None]]
BeforeTurn: TypeAlias = Callable[[TurnInput[Any]], _Either[Sequence[Message] | Refusal | None]]
AfterTurn: TypeAlias = Callable[[TurnInput[Any], Completion], _Either[Completion | str | Refusal | None]]
ApproveTool: TypeAlias = Callable[[ToolUse[Any]], _Either[ToolUse[Any] | Refusal]]
"""Asks a person about one call; sync or async. Returns it, unchanged or with other arguments, or a `Refusal`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Functions that see each tool call and each turn of a run, sync or async. A result of None changes nothing.

    Args:
        before_tool: Gets each call before the tool runs; returns other arguments, or a `Refusal` that the model reads.
        after_tool: Gets the call and its result; returns another result, or a `Refusal` that the model reads instead.
        before_turn: Gets the messages before a model reads them; returns other messages for this turn, or a `Refusal`,
            which fails the turn.
        after_turn: Gets the turn and the reply; returns another reply, as a `Completion` or a text, or a `Refusal`: the
            model reads the reason and replies again, twice at most.
    """

    before_tool: BeforeTool | None = None
    after_tool: AfterTool | None = None
    before_turn: BeforeTurn | None = None
    after_turn: AfterTurn | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the hooks that are set."""
        return tuple(field.name for field in fields(self) if getattr(self, field.name) is not None)

    @property
    def sees_tools(self) -> bool:
        """True if a hook sees tool calls."""
        return self.before_tool is not None or self.after_tool is not None


NO_HOOKS = Hooks()


def parse_arguments(text: str) -> dict[str, Any] | None:
    """Parse the arguments that a person wrote as JSON text; None if it is not an object."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None
