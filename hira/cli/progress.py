"""How far work is, of one run or of many questions: plain lines here, drawings on a terminal in `hira.cli.live`."""

import asyncio
import re
import sys
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from hira.cli.shell import WIDTH, Shell, View, brief
from hira.core import events
from hira.core.errors import count_of
from hira.core.policy import Usage

HEARTBEAT = 10.0
EVERY = 5.0
BAR = 12
SLOW = 1.0
"""Seconds from which on the end of a tool's call has a line, also if it did not fail."""
TITLE = 40
"""Characters of a title among several."""
_PYTHON_ERROR = re.compile(r"[\w.]+(?:Error|Exception|Exit|Interrupt)\b")


@dataclass(slots=True)
class Count:
    """The results of one cell's questions so far."""

    done: int = 0
    scored: int = 0
    right: int = 0
    failed: int = 0
    tokens: int = 0
    cost: float = 0.0

    @property
    def share_right(self) -> str:
        """The share of right answers, empty if nothing is scored."""
        return f"{100 * self.right / self.scored:.0f} % right" if self.scored else ""


class CellCounts:
    """The results of `items` questions in each cell. Those from `before` count as done, but not for the rate."""

    def __init__(self, items: int, cells: Sequence[str] = ("",)) -> None:
        self.items = items
        self.cells = {name: Count() for name in cells}
        self.before = 0
        self.begun = 0
        self.calls = 0
        self.began = time.monotonic()
        self.stopping = False

    def add(
        self, status: str, tokens: int, cost: float | None, *, cell: str = "", correct: float | None = None
    ) -> None:
        """Count one answer, and whether it is `correct` where that is known."""
        count = self.cells[cell]
        count.done += 1
        count.scored += correct is not None
        count.right += bool(correct)
        count.failed += status == "failed"
        count.tokens += tokens
        count.cost += cost or 0.0

    def watch(self, event: events.Event) -> None:
        """Count the begun questions and the calls of their models: signs of life until the first one is answered."""
        self.begun += isinstance(event, events.RunStarted)
        self.calls += isinstance(event, events.TurnEnded)

    @property
    def total(self) -> int:
        return self.items * len(self.cells)

    @property
    def finished(self) -> int:
        return sum(count.done for count in self.cells.values())

    @property
    def state(self) -> str:
        """Such as `120 of 600 · 1 failed · 41 % right · 2.1 a second · $0.3100 · about 4 min left`."""
        seconds, new = max(1e-9, time.monotonic() - self.began), self.finished - self.before
        every = list(self.cells.values())
        failed, cost = sum(count.failed for count in every), sum(count.cost for count in every)
        right = Count(scored=sum(count.scored for count in every), right=sum(count.right for count in every))
        rate = new / seconds
        parts = [f"{self.finished} of {self.total}", f"{failed} failed" if failed else "", right.share_right]
        if self.begun and not new:
            parts.append(f"{self.begun} in progress, {count_of(self.calls, 'model call')} done")
        if new:
            parts.append(f"{rate:.1f} a second" if rate >= 1 else f"{60 * rate:.1f} a minute")
        parts.append(f"${cost:.4f}" if cost else "")
        if new and self.finished < self.total and not self.stopping:
            parts.append(f"about {format_duration((self.total - self.finished) / rate)} left")
        return " · ".join(filter(None, parts))


@dataclass(slots=True)
class Waiting:
    """A turn or a tool call under way: since when, the tokens of the prompt, and how many pieces the reply has."""

    since: float
    prompt: int = 0
    written: int = 0

    def describe(self, now: float) -> str:
        """Such as `20 s, 140 tokens`, or `20 s, reads about 2,700 tokens` before a role has written anything."""
        waited = f"{now - self.since:.0f} s"
        if self.written:  # most servers send each token separately
            return f"{waited}, {self.written:,} tokens"
        return f"{waited}, reads about {self.prompt:,} tokens" if self.prompt else waited


class Lines(View):
    """Plain lines: a line for each notable event of a run, or for the `counts` of many questions every few seconds.
    While nothing happens, a line says what is waited for: after `heartbeat` seconds, then more and more rarely."""

    counts: CellCounts | None

    def __init__(
        self, shell: Shell, counts: CellCounts | None = None, heartbeat: float = HEARTBEAT, every: float = EVERY
    ) -> None:
        super().__init__(shell, counts)
        self.heartbeat, self.every = heartbeat, every
        self.still = False
        self.last = time.monotonic()
        self.beats = 0
        self.waiting: dict[tuple[str, str], Waiting] = {}
        """By conversation and tool; a turn has no tool."""
        self.subtasks: set[str] = set()
        self.conclusion = ""
        """The one of the latest subtask: a fact in it is not shown once more."""
        self.read: list[events.SourceRead] = []
        """The sources that have no line yet: those of a search share one."""

    def __call__(self, event: events.Event) -> None:
        if isinstance(event, events.TurnText):  # nothing of it is shown, so it is no sign of life
            if turn := self.waiting.get((event.conversation, "")):
                turn.written += 1
            return
        self.last, self.beats = time.monotonic(), 0
        self._track(event)
        if isinstance(event, events.SourceRead):
            self.read.append(event)
            return
        self._tell_sources()
        if isinstance(event, events.Remembered) and event.text in self.conclusion:
            return
        if text := describe_event(event, self.subtasks):
            self._tell(event.at, text, sys.maxsize if isinstance(event, events.Notice) else WIDTH)

    def _tell_sources(self) -> None:
        """Name the sources that have no line yet: one with its location, several by their titles."""
        if not self.read:
            return
        *_, last = self.read
        titles = [f"[{source.source}] {brief(source.title or source.location, TITLE)}" for source in self.read]
        one = f"read [{last.source}] {last.title} — {last.location}"
        self._tell(last.at, one if len(titles) == 1 else f"read {len(titles)} sources: {', '.join(titles)}")
        self.read.clear()

    def _tell(self, at: float, text: str, width: int = WIDTH) -> None:
        self.shell.tell(f"{at:6.1f} s  {brief(text, width)}")

    def _track(self, event: events.Event) -> None:
        """Keep what is waited for."""
        match event:
            case events.TurnStarted():
                for key in [key for key in self.waiting if is_over(key[0], event.conversation)]:
                    del self.waiting[key]
                self.waiting[event.conversation, ""] = Waiting(self.last, event.prompt)
            case events.TurnEnded():
                self.waiting.pop((event.conversation, ""), None)
            case events.ToolStarted():
                self.waiting[event.conversation, event.tool] = Waiting(self.last)
            case events.ToolEnded():
                self.waiting.pop((event.conversation, event.tool), None)
            case events.SubtaskIssued():
                self.subtasks.add(event.subtask)
            case events.SubtaskDone():  # an interrupted turn has no end of its own
                self.conclusion = event.conclusion
                for key in [key for key in self.waiting if key[0].startswith(f"{event.subtask}/")]:
                    del self.waiting[key]

    def update(self) -> None:
        if self.counts and (time.monotonic() - self.last >= self.every or self.counts.finished == self.counts.total):
            self._beat()

    async def keep(self) -> None:
        while True:
            quiet = time.monotonic() - self.last
            patience = self.heartbeat * (1 if self.counts else min(2**self.beats, 6))
            if quiet < patience or self.still:
                await asyncio.sleep(max(patience - quiet, 0.1))
            else:
                self._beat()

    def _beat(self) -> None:
        self.last = time.monotonic()
        if self.counts:
            self.shell.tell(f"{self.last - self.counts.began:6.1f} s  {self.counts.state}")
            return
        self.beats += 1
        self._tell_sources()
        waiting = ", ".join(
            f"{name_speaker(name, self.subtasks)}{tool and f' · {tool}'} ({turn.describe(self.last)})"
            for (name, tool), turn in self.waiting.items()
        )
        self.shell.tell(f"          … waiting for {waiting or 'the run to continue'}")

    @contextmanager
    def pause(self) -> Iterator[None]:
        self.still = True
        try:
            yield
        finally:
            self.still, self.last, self.beats = False, time.monotonic(), 0


def format_duration(seconds: float) -> str:
    """Return a duration such as 0.4 s, 12 s, 3 min 20 s, 1 h 5 min."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def format_usage(usage: Usage) -> str:
    """Format the cost of a call or a run for a person."""
    parts = [count_of(usage.calls, "call"), f"{usage.tokens:,} tokens"]
    return " · ".join(parts + ([f"${usage.cost:.4f}"] if usage.cost else []))


def format_reading(event: events.DocumentsRead) -> str:
    """How far the reading of documents, or the encoding of passages, is, with a bar."""
    doing = "reading" if event.what == "documents" else "encoding"
    return f"{draw_bar(event.done / event.total)} {doing} {event.what}: {event.done:,} of {event.total:,}"


def format_failure(failed: events.ToolEnded) -> str:
    """Format why a tool failed, without repeating that it did: of a traceback only the last line."""
    last = failed.text.rstrip().rpartition("\n")[2]
    return last if _PYTHON_ERROR.match(last) else failed.text.removeprefix(f"{failed.tool} failed: ")


def format_call(call: events.ToolStarted) -> str:
    """Format a tool's arguments: a single text unchanged, several arguments by name."""
    if len(call.arguments) == 1:
        (value,) = call.arguments.values()
        return str(value)
    return ", ".join(f"{name} {value!r}" for name, value in call.arguments.items())


def draw_bar(share: float) -> str:
    filled = min(BAR, round(share * BAR))
    return "█" * filled + "░" * (BAR - filled)


def name_role(conversation: str) -> str:
    """Return the role of a conversation: `code` for `2/code`, `reasoner` for `search-1a2b/reasoner.2`."""
    return re.sub(r"\.\d+$", "", conversation.rpartition("/")[2])


def name_speaker(conversation: str, subtasks: Container[str] = ()) -> str:
    """Return who speaks in a conversation, for a person: the role, after the number of its subtask or step."""
    number = conversation.partition("/")[0]
    if "/" not in conversation or not number[:1].isdecimal():
        return name_role(conversation)
    return f"{'subtask' if number in subtasks else 'step'} {number} · {name_role(conversation)}"


def is_over(conversation: str, started: str) -> bool:
    """Return whether a conversation, whose turn may have broken off, is over when a turn in another one has started:
    the roles without a subtask or a step work one after another."""
    return "/" not in conversation + started and name_role(conversation) != name_role(started)


def describe_event(event: events.Event, subtasks: Container[str] = ()) -> str:
    """The line of an event; empty for one that is not notable. Conversations of these `subtasks` are named by them."""
    describe = _DESCRIBED.get(type(event))
    if isinstance(event, events.TurnEnded | events.ToolStarted | events.ToolEnded):
        event = replace(event, conversation=name_speaker(event.conversation, subtasks))
    return describe(event) if describe else ""


def _after(reason: str) -> str:
    return f": {reason}" if reason else ""


_DESCRIBED: Mapping[type[events.Event], Callable[[Any], str]] = {
    events.DocumentsRead: format_reading,
    events.RunStarted: lambda event: (
        f"run {event.run} · workflow {event.workflow} · model {', '.join(dict.fromkeys(event.models.values()))}"
    ),
    events.TurnEnded: lambda event: (
        f"{event.conversation} wrote · {event.usage.tokens:,} tokens, {format_duration(event.usage.seconds)}"
    ),
    events.ToolStarted: lambda event: f"{event.conversation} calls {event.tool}: {format_call(event)}",
    events.ToolEnded: lambda event: (
        ""  # its call has a line
        if event.ok and event.seconds < SLOW
        else f"{event.conversation} {event.tool} {'done' if event.ok else 'failed'}, {format_duration(event.seconds)}"
        + _after("" if event.ok else format_failure(event))
    ),
    events.SubtaskIssued: lambda event: f"subtask {event.subtask}: {event.text}",
    events.ApprovalAwaited: lambda event: (
        "waiting for a person to approve "
        + (f"a call of {event.tool}" if event.calls else count_of(len(event.subtasks), "subtask"))
    ),
    events.CallApproved: lambda event: (
        f"call of {event.tool} edited by a person: {event.arguments}" if event.changed else ""
    ),
    events.CallRefused: lambda event: f"call of {event.tool} refused" + _after(event.reason),
    events.SubtaskApproved: lambda event: (
        f"subtask {event.subtask} edited by a person: {event.text}" if event.changed else ""
    ),
    events.SubtaskRejected: lambda event: f"subtask {event.subtask} rejected by a person" + _after(event.reason),
    events.SubtaskAssigned: lambda event: (
        f"subtask {event.subtask} → {event.expert}"
        + (f" · {event.recalled} from memory" if event.recalled else "")
        + _after(event.reason)
    ),
    events.SubtaskDone: lambda event: f"subtask {event.subtask} {'done' if event.ok else 'failed'}: {event.conclusion}",
    events.Remembered: lambda event: (
        f"remembered {event.channel}: {event.text}"
        # a fact cites its sources itself
        + ("" if all(part in event.text for part in event.origin.split(", ")) else f" ({event.origin})")
    ),
    events.Notice: lambda event: f"note: {event.text}",
    events.RunEnded: lambda event: (  # whoever interrupted a run knows it
        ("" if event.status == "interrupted" else f"{event.status.replace('_', ' ')} · ") + format_usage(event.usage)
    ),
}
