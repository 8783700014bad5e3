"""The record of a run: turns, trajectories, and the rollout that contains them."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from hira.core.errors import HiraError
from hira.core.memory import DualMemory, Fact, Resource
from hira.core.policy import Completion, Request, Usage
from hira.evidence import Citation, Relevance, Sources

Status = Literal["answered", "unverified", "insufficient_evidence", "partial", "interrupted", "failed"]
FINAL = ("answered", "unverified", "insufficient_evidence")
"""The statuses of runs that reached their end, so that there is nothing to resume."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One policy call: the request and the completion."""

    request: Request
    completion: Completion


@dataclass(slots=True)
class Trajectory:
    """All turns of one role in one conversation."""

    conversation: str
    """The name of the conversation, such as `planner` or `2/code`."""
    role: str
    turns: list[Turn] = field(default_factory=list)
    calls: int = 0
    """The number of calls that the role wrote and that could be read."""
    failed: int = 0
    """The number of these calls that were refused, or whose tool failed."""
    unreadable: int = 0
    """The number of turns that could not be read."""
    lost: Usage = Usage()
    """The usage of replies that broke off."""

    @property
    def usage(self) -> Usage:
        return sum((turn.completion.usage for turn in self.turns), self.lost)


@dataclass(frozen=True, slots=True)
class Subtask:
    """A subtask of the planner; `id` counts from "1" in the order of issue. `expert` is the one that the planner named,
    empty if it left the choice to the coordinator."""

    id: str
    text: str
    expert: str = ""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A subtask that a person would not have handed out, and why; `reason` may be empty."""

    subtask: Subtask
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """The distilled result of a subtask. If the expert failed or concluded nothing, `ok` is False."""

    subtask: Subtask
    expert: str
    reasoning: str
    conclusion: str
    facts: tuple[Fact, ...] = ()
    resources: tuple[Resource, ...] = ()
    ok: bool = True


@dataclass(slots=True)
class Rollout:
    """One question's whole way through a workflow."""

    run: str
    question: str
    workflow: str
    trajectories: dict[str, Trajectory] = field(default_factory=dict)
    memory: DualMemory = field(default_factory=DualMemory)
    sources: Sources = field(default_factory=Sources)
    findings: list[Finding] = field(default_factory=list)
    """The results of subtasks, in the order in which they came back."""
    answer: str = ""
    citations: list[Citation] = field(default_factory=list)
    answers: Relevance | None = None
    """The judgement if the answer answers the question; None if nothing was checked."""
    lacking: tuple[str, ...] = ()
    """Words of the question that no supported claim contains."""
    unread: list[str] = field(default_factory=list)
    """The documents and attached files that could not be read, and why; empty in a run read from its record."""
    notices: list[str] = field(default_factory=list)
    """The texts that the terminal shows as notes: a fallback was taken, a service was down, a limit was reached."""
    status: Status = "partial"
    failure: HiraError | None = None
    """The error that ended the run early, None if none did."""
    began: float = field(default_factory=time.time)
    """Seconds since the epoch; a run that is resumed keeps them, so that its prompts name the same day."""
    summary: str = ""
    """The summary of earlier turns that this run made, empty if it made none."""
    unused: Usage = Usage()
    """The usage of recorded calls that a resumed run did not take; known at its end."""
    output: Any = None
    """The answer as a value, if one was asked for and written."""
    has_output: bool = False
    output_error: str = ""
    """Why there is no value."""

    @property
    def today(self) -> str:
        """The day on which the run began, in UTC, as `2026-11-20`."""
        return datetime.fromtimestamp(self.began, UTC).date().isoformat()

    @property
    def error(self) -> str:
        return str(self.failure or "")

    @property
    def usage(self) -> Usage:
        return sum((trajectory.usage for trajectory in self.trajectories.values()), self.unused)
