"""The events of a run: typed, one stream, many readers."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from hira.core.policy import Count, Seconds, Usage, fields_of
from hira.core.sanitize import printable, redact


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened. `at` is seconds since the run began, set when the event is sent."""

    at: Seconds = field(default=0.0, kw_only=True)


@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """`models` are by role; `limits` are those of the run's budget that are set: tokens, cost, seconds, calls."""

    run: str
    question: str
    workflow: str
    models: Mapping[str, str]
    limits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunEnded(Event):
    run: str
    status: str
    answer: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class TurnStarted(Event):
    """`prompt` is the approximate number of tokens that the model reads, 0 if no reader needs it."""

    conversation: str
    role: str
    prompt: Count = 0


@dataclass(frozen=True, slots=True)
class TurnText(Event):
    conversation: str
    text: str
    reasoning: bool
    role: str = ""


@dataclass(frozen=True, slots=True)
class TurnEnded(Event):
    conversation: str
    role: str
    text: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class ToolStarted(Event):
    conversation: str
    tool: str
    arguments: Mapping[str, Any]
    call: Count = 0


@dataclass(frozen=True, slots=True)
class ToolEnded(Event):
    conversation: str
    tool: str
    ok: bool
    text: str
    seconds: Seconds
    call: Count = 0


@dataclass(frozen=True, slots=True)
class SubtaskIssued(Event):
    subtask: str
    text: str


@dataclass(frozen=True, slots=True)
class ApprovalAwaited(Event):
    """The run waits until a person has decided on these subtasks, or on this call of a tool.

    Args:
        subtasks: Their texts, by id.
        calls: The arguments as JSON text, by the id of the call.
        tool: The tool that is called; empty for subtasks.
    """

    subtasks: Mapping[str, str]
    calls: Mapping[str, str] = field(default_factory=dict)
    tool: str = ""


@dataclass(frozen=True, slots=True)
class CallApproved(Event):
    """A person approved a tool call with these `arguments`, as JSON text; `changed` if the person edited them."""

    call: str
    tool: str
    arguments: str
    changed: bool


@dataclass(frozen=True, slots=True)
class CallRefused(Event):
    call: str
    tool: str
    reason: str


@dataclass(frozen=True, slots=True)
class SubtaskApproved(Event):
    """A person approved the subtask, as `text`; `changed` if the person edited it."""

    subtask: str
    text: str
    changed: bool


@dataclass(frozen=True, slots=True)
class SubtaskRejected(Event):
    subtask: str
    reason: str


@dataclass(frozen=True, slots=True)
class SubtaskAssigned(Event):
    subtask: str
    expert: str
    reason: str
    recalled: Count


@dataclass(frozen=True, slots=True)
class SubtaskDone(Event):
    subtask: str
    expert: str
    conclusion: str
    ok: bool


@dataclass(frozen=True, slots=True)
class Remembered(Event):
    channel: str
    text: str
    origin: str
    subtask: str = ""


@dataclass(frozen=True, slots=True)
class SourceRead(Event):
    source: str
    kind: str
    title: str
    location: str


@dataclass(frozen=True, slots=True)
class DocumentsRead(Event):
    """Changed documents indexed so far, before the run begins; or passages encoded, if `what` says so."""

    done: Count
    total: Count
    what: str = "documents"


@dataclass(frozen=True, slots=True)
class AnswerChecked(Event):
    """The claims of the answer were checked; one record per citation, with the fields of `hira.evidence.Citation`.

    `answers` says whether the answer answers the question: `yes`, `partly`, `no` or `refusal`. `lacking` are words of
    the question that no supported claim mentions.
    """

    citations: tuple[Mapping[str, Any], ...]
    answers: str = ""
    lacking: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Notice(Event):
    """Something a person should know: a fallback was taken, a limit was reached, an id was dropped.

    An `important` one is shown even if progress is turned off.
    """

    text: str
    important: bool = False
    endpoint: str = ""
    """The endpoint or model that a call waits for, in a notice about that."""
    passing: bool = False
    """It matters only during the run; no answer keeps it."""


@dataclass(frozen=True, slots=True)
class Error(Event):
    """The failure that a command reports, after the run's events or instead of them; `where` and `fix` may be empty."""

    what: str
    where: str = ""
    fix: str = ""


AnyEvent: TypeAlias = (
    RunStarted | RunEnded | TurnStarted | TurnText | TurnEnded | ToolStarted | ToolEnded | ApprovalAwaited
    | CallApproved | CallRefused | SubtaskIssued | SubtaskApproved | SubtaskRejected | SubtaskAssigned | SubtaskDone
    | Remembered | SourceRead | DocumentsRead | AnswerChecked | Notice
)  # fmt: skip
"""Every event of a run, so that type checkers know that a `match` is complete."""
Reader = Callable[[Event], None]
KINDS: Mapping[str, type[Event]] = {kind.__name__: kind for kind in Event.__subclasses__()}


RUNS = logging.getLogger("hira.runs")
"""The log of runs: starts, ends and notices, without questions and answers."""


def log_notice(run: str, text: str, *, important: bool = False) -> None:
    """Log a notice of a run in one line, an `important` one as a warning."""
    level = logging.WARNING if important else logging.INFO
    RUNS.log(level, "run %s: %s", run, " ".join(printable(text).split()))


class Events:
    """The event stream of one run. Readers are called in order, in the run's own thread; they must be quick.

    The `secrets` of the run are masked for all of them.
    """

    def __init__(self, *readers: Reader, secrets: frozenset[str] = frozenset()) -> None:
        self.readers: list[Reader] = list(readers)
        self.secrets = secrets
        self._began = time.monotonic()

    def __call__(self, event: Event) -> None:
        if self.readers:
            if self.secrets:
                values = fields_of(event)
                masked = {name: redact(value, self.secrets) for name, value in values.items()}
                event = event if masked == values else replace(event, **masked)
            object.__setattr__(event, "at", round(time.monotonic() - self._began, 3))
            for reader in self.readers:
                reader(event)


def record(event: Event) -> dict[str, Any]:
    """Return the event as one JSON object: its kind first, then its fields."""
    values: dict[str, Any] = {"event": type(event).__name__, **fields_of(event)}
    if isinstance(event, TurnEnded | RunEnded):
        values["usage"] = fields_of(event.usage)
    return values
