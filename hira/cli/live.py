"""The live display of a terminal, redrawn in place by rich: the tree of a run, or the progress of many questions."""

import asyncio
import textwrap
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from hira.cli.progress import (
    CellCounts,
    describe_event,
    draw_bar,
    format_call,
    format_duration,
    format_failure,
    format_reading,
    is_over,
    name_role,
    name_speaker,
)
from hira.cli.shell import Shell, View, brief, visible
from hira.core import events
from hira.core.errors import count_of
from hira.core.policy import Usage

FRAMES_A_SECOND = 8
TOOLS_SHOWN = 4
SOURCES_SHOWN = 3
LINES_SHOWN = 3
"""The most lines of text shown for a role that works alone; of several roles, each has one line."""
_TAIL = 1_000
_CHARACTERS_A_TOKEN = 8


@dataclass(slots=True)
class Writing:
    """A turn under way: since when, how long its prompt is, since when it writes, and the end of what it wrote."""

    since: float
    prompt: int = 0
    first: float = 0.0
    tokens: int = 0
    text: str = ""

    def take(self, piece: str) -> None:
        self.first = self.first or time.monotonic()
        self.tokens += max(1, len(piece) // _CHARACTERS_A_TOKEN)  # most servers send one token at a time
        self.text = (self.text + piece)[-_TAIL:]

    @property
    def state(self) -> str:
        """Such as `12 s · 140 tokens · 16.2 tokens/s`."""
        now = time.monotonic()
        waited = f"{now - self.since:.0f} s"
        if not self.tokens:
            return f"{waited} · reads" + (f" about {self.prompt:,} tokens" if self.prompt else "")
        wrote = now - self.first
        speed = f" · {self.tokens / wrote:.1f} tokens/s" if wrote >= 1 else ""
        return f"{waited} · {count_of(self.tokens, 'token')}{speed}"


@dataclass(slots=True)
class Branch:
    """One subtask, or the run itself. `tools` are its calls, oldest first; a call without seconds still runs."""

    text: str
    expert: str = ""
    conclusion: str = ""
    ok: bool | None = None
    tools: list[tuple[str, float | None, bool]] = field(default_factory=list)
    busy: dict[str, Writing] = field(default_factory=dict)


class Drawing(View):
    """The drawing on a terminal, which replaces the one before it."""

    def __init__(self, shell: Shell, counts: CellCounts | None = None) -> None:
        super().__init__(shell, counts)
        self.console = Console(file=shell.stderr)
        self.began = time.monotonic()
        self.still = False
        self._live = Live(
            console=self.console,
            get_renderable=self.draw,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def draw(self) -> RenderableType:
        raise NotImplementedError

    def __exit__(self, *_: object) -> None:
        if self._live.is_started:
            self._live.refresh()
            self._live.stop()

    def say(self, text: str) -> None:
        self.console.print(Text(f"hira: {visible(text)}"), soft_wrap=True)

    async def keep(self) -> None:
        while True:
            await asyncio.sleep(1 / FRAMES_A_SECOND)
            if not self.still:
                self._live.refresh()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Freeze the drawing inside the context, and redraw it below the lines that were printed in it."""
        self.still = True
        self._live.refresh()
        self._live.stop()
        try:
            yield
        finally:
            self.still = False
            self._live.start()


class CountTable(Drawing):
    """How far many questions are: a row for each cell that has a name, and a bar."""

    counts: CellCounts

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def draw(self) -> Group:
        table = Table(box=None, pad_edge=False)
        for name in ("", "done", "right", "tokens", "cost", "failed"):
            table.add_column(name, justify="left" if not name else "right")
        for name, cell in self.counts.cells.items():
            tokens, cost = cell.tokens // max(1, cell.done), f"${cell.cost:.4f}" if cell.cost else ""
            shown = (f"{cell.done}/{self.counts.items}", cell.share_right, f"{tokens:,}", cost, str(cell.failed or ""))
            table.add_row(Text(visible(name)), *shown)
        share = self.counts.finished / max(1, self.counts.total)
        bar = Text(f"{draw_bar(share)} {self.counts.state}")
        return Group(table, bar) if all(self.counts.cells) else Group(bar)


class RunTree(Drawing):
    """The tree of one run, shown from its first event on."""

    def __init__(self, shell: Shell) -> None:
        self.planner = Branch("planner")
        self.subtasks: dict[str, Branch] = {}
        self.notices: list[events.Notice] = []
        self.sources: list[str] = []
        self.usage = Usage()
        self.limits: Mapping[str, float] = {}
        self.reading = ""
        self.ended = ""
        super().__init__(shell)

    def __call__(self, event: events.Event) -> None:
        self._live.start()
        self._take(event)
        super().__call__(event)

    def _take(self, event: events.Event) -> None:
        match event:
            case events.DocumentsRead():
                self.reading = format_reading(event)
            case events.RunStarted():
                self.reading, self.limits = "", event.limits
                self.planner.text = f"{event.question}  ({', '.join(dict.fromkeys(event.models.values()))})"
            case events.TurnStarted() | events.TurnEnded():
                self._turn(event)
            case events.TurnText(conversation=conversation, text=text):
                self.notices = [notice for notice in self.notices if not notice.endpoint]  # a wait is over
                self._branch(conversation).busy.setdefault(conversation, Writing(time.monotonic())).take(text)
            case events.SourceRead(source=source, title=title):
                self.sources.append(f"[{source}] {title}")
            case events.ToolStarted():
                self._branch(event.conversation).tools.append((f"{event.tool} {format_call(event)}", None, True))
            case events.ToolEnded():
                self._tool_ended(event)
            case events.Notice():
                self.notices.append(event)
            case events.RunEnded():
                self.ended = describe_event(event)
            case _:
                self._take_subtask(event)

    def _take_subtask(self, event: events.Event) -> None:
        match event:
            case events.SubtaskIssued():
                self.subtasks[event.subtask] = Branch(event.text)
            case events.SubtaskApproved():
                self._branch(event.subtask).text = event.text
            case events.SubtaskAssigned():
                reason = f": {event.reason}" if event.reason else ""
                self._branch(event.subtask).expert = f"{event.expert}{reason}"
            case events.SubtaskDone():
                branch = self._branch(event.subtask)
                branch.conclusion, branch.ok = event.conclusion, event.ok
                branch.busy.clear()  # an interrupted turn has no end of its own

    def _branch(self, conversation: str) -> Branch:
        return self.subtasks.get(conversation.partition("/")[0], self.planner)

    def _turn(self, event: events.TurnStarted | events.TurnEnded) -> None:
        branch = self._branch(event.conversation)
        if isinstance(event, events.TurnStarted):
            for name in [name for name in branch.busy if is_over(name, event.conversation)]:
                del branch.busy[name]
            branch.busy[event.conversation] = Writing(time.monotonic(), event.prompt)
        else:
            branch.busy.pop(event.conversation, None)
            self.usage += event.usage

    def _tool_ended(self, event: events.ToolEnded) -> None:
        tools = self._branch(event.conversation).tools
        for index, (text, seconds, _) in enumerate(tools):
            if seconds is None and text.startswith(f"{event.tool} "):
                reason = "" if event.ok else f": {format_failure(event)}"
                tools[index] = (f"{text}{reason}", event.seconds, event.ok)
                return

    def draw(self) -> Tree:
        """Return the current drawing. All texts are plain, so that no source can style or hide anything."""
        width = max(20, self.console.width - 12)
        tree = Tree(Text(brief(self.planner.text, width), style="bold"))
        self._show_tools(tree, self.planner, width)
        for name, branch in self.subtasks.items():
            self._show(tree, f"{name}. {branch.text}", branch, width)
        if self.sources and not self.ended:
            more = f"{len(self.sources) - SOURCES_SHOWN} more, " if len(self.sources) > SOURCES_SHOWN else ""
            tree.add(Text(brief(f"read {more}{', '.join(self.sources[-SOURCES_SHOWN:])}", width), style="dim"))
        for notice in self.notices[-3:]:
            tree.add(Text(brief(f"note: {notice.text}", width), style="yellow"))
        if self.reading:
            tree.add(Text(self.reading, style="dim"))
        if self.ended:
            tree.add(Text(self.ended, style="dim"))
        else:
            for name, writing in self.planner.busy.items():
                self._show_writing(tree, name_speaker(name), writing, width)
            state = format_spent(self.usage, time.monotonic() - self.began, self.limits)
            tree.add(Text(state, style="dim") if self.planner.busy else Spinner("dots", Text(state, style="dim")))
        return tree

    def _show_writing(self, node: Tree, name: str, writing: Writing, width: int) -> None:
        """Show the last lines that a role is writing, and its speed."""
        at_work = sum(len(branch.busy) for branch in (self.planner, *self.subtasks.values()))
        turn = node.add(Spinner("dots", Text(f"{name} · {writing.state}", style="dim")))
        lines = textwrap.wrap(" ".join(visible(writing.text).split()), width - 8)
        for line in lines[-(LINES_SHOWN if at_work == 1 else 1) :]:
            turn.add(Text(line, style="dim", no_wrap=True, overflow="ellipsis"))

    def _show(self, tree: Tree, title: str, branch: Branch, width: int) -> None:
        node = tree.add(Text(brief(title, width)))
        if branch.expert:
            node = node.add(Text(brief(branch.expert, width), style="cyan"))
        self._show_tools(node, branch, width)
        if branch.ok is not None:
            node.add(Text(brief(branch.conclusion, width), style="green" if branch.ok else "yellow"))
        for conversation, writing in branch.busy.items():
            self._show_writing(node, name_role(conversation), writing, width)

    def _show_tools(self, node: Tree, branch: Branch, width: int) -> None:
        if len(branch.tools) > TOOLS_SHOWN:
            node.add(Text(f"… {len(branch.tools) - TOOLS_SHOWN} earlier calls", style="dim"))
        for text, seconds, ok in branch.tools[-TOOLS_SHOWN:]:
            after = " …" if seconds is None else f" ({'' if ok else 'failed, '}{format_duration(seconds)})"
            node.add(Text(brief(text, width - len(after)) + after, style="dim" if ok else "yellow"))


def format_spent(usage: Usage, seconds: float, limits: Mapping[str, float]) -> str:
    """Format the usage of a run against its limits, with a bar for the nearest one: `1,200 of 9,000 tokens`."""
    used = {"tokens": usage.tokens, "cost": usage.cost or 0.0, "seconds": seconds, "calls": usage.calls}
    parts = [draw_bar(max(used[name] / limit for name, limit in limits.items()))] if limits else []
    for name, amount in used.items():
        limit = limits.get(name)
        if limit is None and not amount:
            continue
        if name == "cost":
            parts.append(f"${amount:.4f}" + (f" of ${limit:g}" if limit is not None else ""))
        else:
            unit = "s" if name == "seconds" else "call" if limit is None and (name, amount) == ("calls", 1) else name
            parts.append(f"{amount:,.0f}" + (f" of {limit:,.0f}" if limit is not None else "") + f" {unit}")
    return " · ".join(parts)
