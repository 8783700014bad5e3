"""Progress in plain lines: one a notable event, and a heartbeat while nothing comes."""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import singledispatchmethod
from typing import Protocol

from hira.cli.shell import Shell, visible
from hira.core.events import (
    ApprovalAwaited,
    CallApproved,
    CallRefused,
    DocumentsRead,
    Event,
    Notice,
    Remembered,
    RunEnded,
    RunStarted,
    SourceRead,
    SubtaskApproved,
    SubtaskAssigned,
    SubtaskDone,
    SubtaskIssued,
    SubtaskRejected,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    TurnText,
)
from hira.core.policy import Usage

HEARTBEAT = 10.0
WIDTH = 160
BAR = 12
Tell = Callable[[str], None]


class View(Protocol):
    """A reader of events that shows them; `keep` keeps what is shown alive until it is cancelled."""

    def __call__(self, event: Event) -> None: ...

    async def keep(self) -> None: ...

    def say(self, text: str) -> None:
        """A line for the person that no event of the run stands for."""
        ...

    def paused(self) -> AbstractContextManager[None]:
        """Shows nothing of itself meanwhile, because a person is asked something."""
        ...


class Silent:
    """Shows no progress, and still says what has to be said."""

    def __init__(self, tell: Tell) -> None:
        self.tell = tell

    def __call__(self, event: Event) -> None:
        if isinstance(event, Notice) and event.important:
            self.say(event.text)

    def say(self, text: str) -> None:
        self.tell(f"hira: {text}")

    async def keep(self) -> None:
        pass

    def paused(self) -> AbstractContextManager[None]:
        return nullcontext()


class JsonLines:
    """Each event as one line of JSON."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell

    def __call__(self, event: Event) -> None:
        self.shell.event(event)

    def say(self, text: str) -> None:
        self.shell.remark(text)

    async def keep(self) -> None:
        pass

    def paused(self) -> AbstractContextManager[None]:
        return nullcontext()


def brief(text: str, width: int = WIDTH) -> str:
    """The text on one line, at most `width` characters of it."""
    line = " ".join(visible(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def format_usage(usage: Usage) -> str:
    """What a call or a run cost, as a person reads it."""
    parts = [f"{usage.calls} call{'' if usage.calls == 1 else 's'}", f"{usage.tokens:,} tokens"]
    return " · ".join(parts + ([f"${usage.cost:.4f}"] if usage.cost else []))


def meter(usage: Usage, seconds: float, limits: Mapping[str, float]) -> str:
    """What a run has spent so far, against its limits, with a bar for the limit that is nearest."""
    used = {"tokens": usage.tokens, "cost": usage.cost or 0.0, "seconds": seconds, "calls": usage.calls}
    told = [_metered(name, used[name], limits.get(name)) for name in used if name in limits or used[name]]
    share = max((used[name] / limit for name, limit in limits.items()), default=0.0)
    return " · ".join([*([draw_bar(share)] if limits else []), *told])


def format_reading(event: DocumentsRead) -> str:
    """How far the reading of documents is, with a bar."""
    return f"{draw_bar(event.done / event.total)} reading documents: {event.done:,} of {event.total:,}"


def draw_bar(share: float) -> str:
    filled = min(BAR, round(share * BAR))
    return "█" * filled + "░" * (BAR - filled)


def _metered(name: str, used: float, limit: float | None) -> str:
    """Such as `1,200 of 9,000 tokens`, `$0.0123 of $0.5`, `12 of 60 s`."""
    if name == "cost":
        return f"${used:.4f}" + (f" of ${limit:g}" if limit is not None else "")
    unit = {"tokens": "tokens", "seconds": "s", "calls": "call" if limit is None and used == 1 else "calls"}[name]
    return f"{used:,.0f}" + (f" of {limit:,.0f} {unit}" if limit is not None else f" {unit}")


class Lines:
    """Tells each notable event in one line, and what is being waited for when `heartbeat` seconds brought none."""

    def __init__(self, tell: Tell, heartbeat: float = HEARTBEAT) -> None:
        self.tell = tell
        self.heartbeat = heartbeat
        self.waiting: dict[str, float] = {}
        self.written: dict[str, int] = {}
        self.still = False
        self.last = time.monotonic()

    def __call__(self, event: Event) -> None:
        if isinstance(event, TurnText):  # nothing of it is told, so it is no sign of life
            self.written[event.conversation] = self.written.get(event.conversation, 0) + 1
            return
        self.last = time.monotonic()
        if text := self.line(event):
            self.tell(f"{event.at:6.1f} s  {brief(text, sys.maxsize if isinstance(event, Notice) else WIDTH)}")

    def say(self, text: str) -> None:
        self.tell(f"hira: {text}")

    async def keep(self) -> None:
        while True:
            quiet = time.monotonic() - self.last
            if quiet < self.heartbeat or self.still:
                await asyncio.sleep(max(self.heartbeat - quiet, 0.1))
                continue
            self.last = now = time.monotonic()
            what = ", ".join(
                f"{name} ({now - since:.0f} s{self._pieces(name)})" for name, since in self.waiting.items()
            )
            self.tell(f"          … waiting for {what or 'the run to continue'}")

    def _pieces(self, name: str) -> str:
        """How much has been written of what is waited for; most servers send each token by itself."""
        return f", {self.written[name]:,} tokens" if self.written.get(name) else ""

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.still = True
        try:
            yield
        finally:
            self.still, self.last = False, time.monotonic()

    @singledispatchmethod
    def line(self, _event: Event) -> str:
        return ""

    @line.register
    def _(self, event: DocumentsRead) -> str:
        return format_reading(event)

    @line.register
    def _(self, event: RunStarted) -> str:
        models = ", ".join(dict.fromkeys(event.models.values()))
        return f"run {event.run} · workflow {event.workflow} · model {models}"

    @line.register
    def _(self, event: TurnStarted) -> str:
        self.waiting[event.conversation] = time.monotonic()
        return ""

    @line.register
    def _(self, event: TurnEnded) -> str:
        self.waiting.pop(event.conversation, None)
        self.written.pop(event.conversation, None)
        return f"{event.conversation} wrote · {event.usage.tokens:,} tokens, {event.usage.seconds:.1f} s"

    @line.register
    def _(self, event: ToolStarted) -> str:
        self.waiting[f"{event.conversation} {event.tool}"] = time.monotonic()
        return f"{event.conversation} calls {event.tool}: {format_call(event)}"

    @line.register
    def _(self, event: ToolEnded) -> str:
        self.waiting.pop(f"{event.conversation} {event.tool}", None)
        outcome = "" if event.ok else f": {event.text}"
        return f"{event.conversation} {event.tool} {'done' if event.ok else 'failed'}, {event.seconds:.1f} s{outcome}"

    @line.register
    def _(self, event: SubtaskIssued) -> str:
        return f"subtask {event.subtask}: {event.text}"

    @line.register
    def _(self, event: ApprovalAwaited) -> str:
        if event.calls:
            return f"waiting for a person to approve a call of {event.tool}"
        count = len(event.subtasks)
        return f"waiting for a person to approve {count} subtask{'' if count == 1 else 's'}"

    @line.register
    def _(self, event: CallApproved) -> str:
        return f"call of {event.tool} edited by a person: {event.arguments}" if event.changed else ""

    @line.register
    def _(self, event: CallRefused) -> str:
        return f"call of {event.tool} refused" + (f": {event.reason}" if event.reason else "")

    @line.register
    def _(self, event: SubtaskApproved) -> str:
        return f"subtask {event.subtask} edited by a person: {event.text}" if event.changed else ""

    @line.register
    def _(self, event: SubtaskRejected) -> str:
        return f"subtask {event.subtask} rejected by a person" + (f": {event.reason}" if event.reason else "")

    @line.register
    def _(self, event: SubtaskAssigned) -> str:
        recalled = f" · {event.recalled} from memory" if event.recalled else ""
        return f"subtask {event.subtask} → {event.expert}{recalled}" + (f": {event.reason}" if event.reason else "")

    @line.register
    def _(self, event: SubtaskDone) -> str:
        return f"subtask {event.subtask} {'done' if event.ok else 'failed'}: {event.conclusion}"

    @line.register
    def _(self, event: Remembered) -> str:
        return f"remembered {event.channel}: {event.text}" + (f" ({event.origin})" if event.origin else "")

    @line.register
    def _(self, event: SourceRead) -> str:
        return f"read [{event.source}] {event.title} — {event.location}"

    @line.register
    def _(self, event: Notice) -> str:
        return f"note: {event.text}"

    @line.register
    def _(self, event: RunEnded) -> str:
        return f"{event.status.replace('_', ' ')} · {format_usage(event.usage)}"


def format_call(call: ToolStarted) -> str:
    """What a tool is called with: its one text as it is, several arguments by name."""
    values = list(call.arguments.values())
    if len(values) == 1:
        return str(values[0])
    return ", ".join(f"{name} {value!r}" for name, value in call.arguments.items())
