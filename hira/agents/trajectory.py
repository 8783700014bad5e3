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


@dataclass(frozen=True, slots=True)
class Turn:
    """One policy call: the request and the completion."""

    request: Request
    completion: Completion


@dataclass(slots=True)
class Trajectory:
    """All turns of one role in one conversation; `conversation` names it, such as `planner` or `2/code`.

    `calls` counts the calls that the role wrote and that could be read, `failed` those of them that were refused or
    whose tool failed, `unreadable` the turns that could not be read; `lost` is what replies have cost that broke off.
    """

    conversation: str
    role: str
    turns: list[Turn] = field(default_factory=list)
    calls: int = 0
    failed: int = 0
    unreadable: int = 0
    lost: Usage = Usage()

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
    """The distilled result of a subtask. `ok` is False if the expert failed or came to no conclusion; `conclusion` then
    says so."""

    subtask: Subtask
    expert: str
    reasoning: str
    conclusion: str
    facts: tuple[Fact, ...] = ()
    resources: tuple[Resource, ...] = ()
    ok: bool = True


@dataclass(slots=True)
class Rollout:
    """One question's whole way through a workflow. `findings` are what came back from experts, in order.

    `failure` is what ended the run early, if anything did. `began` is in seconds since the epoch; a run that is resumed
    keeps it, so that its prompts tell the same day. `output` is the answer as a value, where one was asked for and
    had; else `output_error` says why not. `answers` says whether the answer answers the question, None if nothing was
    checked; `lacking` are words of the question that nothing supported speaks of.
    """

    run: str
    question: str
    workflow: str
    trajectories: dict[str, Trajectory] = field(default_factory=dict)
    memory: DualMemory = field(default_factory=DualMemory)
    sources: Sources = field(default_factory=Sources)
    findings: list[Finding] = field(default_factory=list)
    answer: str = ""
    citations: list[Citation] = field(default_factory=list)
    answers: Relevance | None = None
    lacking: tuple[str, ...] = ()
    status: Status = "partial"
    failure: HiraError | None = None
    began: float = field(default_factory=time.time)
    output: Any = None
    has_output: bool = False
    output_error: str = ""

    @property
    def today(self) -> str:
        """The day on which the run began, in UTC, as `2026-11-20`."""
        return datetime.fromtimestamp(self.began, UTC).date().isoformat()

    @property
    def error(self) -> str:
        return str(self.failure or "")

    @property
    def usage(self) -> Usage:
        return sum((trajectory.usage for trajectory in self.trajectories.values()), Usage())
