"""The options of a run."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hira.agents.trajectory import Rejected, Subtask
from hira.core.hooks import NO_HOOKS, ApproveTool, Hooks, Refusal
from hira.evidence import Verifier

if TYPE_CHECKING:
    from hira.agents.output_type import OutputType

Verify = Literal["lexical", "model", "off"]
Decisions = Sequence[Subtask | Rejected | Refusal]
Approve = Callable[[list[Subtask]], Decisions | Awaitable[Decisions]]
"""Asks a person about subtasks that are to be handed out. One decision for each, in their order: the subtask as it is,
with another text, or a refusal."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The settings that stay the same from the beginning of a run to its end. A session has one object for all its
    runs."""

    verify: Verify = "lexical"
    """How the answer is checked."""
    verifier: Verifier | None = None
    """The program's own verifier, in place of `verify`."""
    exam: bool = True
    """The verdicts of a model count only if it has passed an exam."""
    evidence: int = 0
    """A model scores and condenses this many passages of each search; 0 leaves them as they are."""
    rewrite: bool = False
    """A model adds queries to each search."""
    instructions: str = ""
    """Additional instructions for the roles that plan and answer."""
    output: "OutputType | None" = None
    """The type of the answer's value."""
    stream: bool = False
    """The models' text is sent to the readers of the events as it arrives."""
    approve: Approve | None = None
    """Decides about every subtask before it is handed out; None approves all."""
    approve_tool: ApproveTool | None = None
    """Decides about each call of a tool that needs approval."""
    hooks: Hooks = NO_HOOKS
    """See tool calls and turns, and may change them."""
    deps: Any = None
    """The program's own object, for its tools and hooks."""
