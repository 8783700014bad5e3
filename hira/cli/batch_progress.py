"""How far a batch or an evaluation is: how many are done, how fast, at what cost, and how long the rest will take."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from hira.cli.progress import HEARTBEAT, Tell
from hira.cli.shell import visible
from hira.evaluation.cells import Cell
from hira.evaluation.record import Record
from hira.runtime.batch import Done

if TYPE_CHECKING:
    from rich.console import Group


EVERY = 5.0


class Keeps(Protocol):
    """What shows the progress, and goes on to do so while nothing comes."""

    async def keep(self) -> None: ...


@asynccontextmanager
async def keep_shown(progress: Keeps) -> AsyncIterator[None]:
    """Keep the progress shown for as long as the context lasts."""
    keeping = asyncio.create_task(progress.keep())
    try:
        yield
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping


async def pulse(due: Callable[[], float], tell: Callable[[], None]) -> None:
    """Call `tell`, which moves the moment that is `due`, whenever that has come."""
    while True:
        left = due() - time.monotonic()
        if left > 0:
            await asyncio.sleep(left)
        else:
            tell()


class Progress:
    """Counts, and shows nothing but what has to be said."""

    def __init__(self, tell: Tell, total: int) -> None:
        self.tell = tell
        self.total = total
        self.finished = self.failed = 0
        self.cost = 0.0
        self.began = time.monotonic()

    def done(self, one: Done) -> None:
        self.finished += 1
        self.failed += one.answer.status == "failed"
        self.cost += one.answer.rollout.usage.cost or 0.0

    def say(self, text: str) -> None:
        self.tell(f"hira: {text}")

    async def keep(self) -> None:
        """Go on showing that it goes on; cancelled in the end."""

    @property
    def state(self) -> str:
        """Such as `12 of 100 · 1 failed · 4.2 a minute · $0.31 · about 21 min left`."""
        seconds = max(1e-9, time.monotonic() - self.began)
        left = (self.total - self.finished) * seconds / self.finished if self.finished else None
        rate = self.finished / seconds
        told = f"{rate:.1f} a second" if rate >= 1 else f"{rate * 60:.1f} a minute"
        parts = [f"{self.finished} of {self.total}", *([f"{self.failed} failed"] if self.failed else []), told]
        parts += [f"${self.cost:.4f}"] if self.cost else []
        return " · ".join(parts + ([f"about {spell(left)} left"] if left else []))


def spell(seconds: float) -> str:
    """A time as a person says it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


class BatchLines(Progress):
    """Tells how far it is in a line every few seconds, and when `heartbeat` seconds brought none."""

    def __init__(self, tell: Tell, total: int, every: float = EVERY, heartbeat: float = HEARTBEAT) -> None:
        super().__init__(tell, total)
        self.every = every
        self.heartbeat = heartbeat
        self._told = self.began

    def done(self, one: Done) -> None:
        super().done(one)
        if time.monotonic() - self._told >= self.every or self.finished == self.total:
            self._tell()

    def _tell(self) -> None:
        self._told = time.monotonic()
        self.tell(f"{self._told - self.began:6.1f} s  {self.state}")

    async def keep(self) -> None:
        await pulse(lambda: self._told + self.heartbeat, self._tell)


class Bar(Progress):
    """A bar on a terminal; a context manager that draws it."""

    def __init__(self, stderr: TextIO, total: int) -> None:
        from rich import progress  # only where it draws
        from rich.console import Console
        from rich.text import Text

        self.console = Console(file=stderr)
        super().__init__(lambda text: self.console.print(Text(visible(text)), soft_wrap=True), total)
        columns = (progress.BarColumn(), progress.TextColumn("{task.fields[state]}", markup=False))
        self._bar = progress.Progress(
            *columns, console=self.console, redirect_stdout=False, redirect_stderr=False, refresh_per_second=4
        )
        self._task = self._bar.add_task("", total=total, state=self.state)

    def done(self, one: Done) -> None:
        super().done(one)
        self._bar.update(self._task, advance=1, state=self.state)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()


@dataclass(slots=True)
class Count:
    """What came of the questions of one cell so far. Records are not kept: there may be many, and it is told often."""

    done: int = 0
    scored: int = 0
    right: int = 0
    failed: int = 0
    tokens: int = 0
    cost: float = 0.0

    def add(self, record: Record) -> None:
        self.done += 1
        self.scored += record.score.correct is not None
        self.right += bool(record.score.correct)
        self.failed += record.status == "failed"
        self.tokens += record.tokens
        self.cost += record.cost or 0.0


class Tally:
    """Counts by cell. What was there before counts as done, and not for the rate."""

    def __init__(self, cells: Sequence[Cell], items: int, before: Sequence[Record]) -> None:
        self.cells = cells
        self.items = items
        self.counts = {cell.name: Count() for cell in cells}
        self.before = len(before)
        self.began = time.monotonic()
        for record in before:
            self.done(record)

    def done(self, record: Record) -> None:
        self.counts[record.cell].add(record)

    @property
    def finished(self) -> int:
        return sum(count.done for count in self.counts.values())

    @property
    def total(self) -> int:
        return self.items * len(self.cells)

    @property
    def state(self) -> str:
        """Such as `120 of 600 · 41 % right · 2.1 a second · $0.31 · about 4 min left`."""
        seconds, new = max(1e-9, time.monotonic() - self.began), self.finished - self.before
        rate = new / seconds
        parts = [f"{self.finished} of {self.total}", right(*self.counts.values())]
        parts += [f"{rate:.1f} a second" if rate >= 1 else f"{60 * rate:.1f} a minute"] if new else []
        cost = sum(count.cost for count in self.counts.values())
        parts += [f"${cost:.4f}"] if cost else []
        if new and self.finished < self.total:
            parts.append(f"about {spell((self.total - self.finished) / rate)} left")
        return " · ".join(part for part in parts if part)


def right(*counts: Count) -> str:
    """The share of right answers so far, empty if nothing is scored."""
    scored = sum(count.scored for count in counts)
    return f"{100 * sum(count.right for count in counts) / scored:.0f} % right" if scored else ""


class EvaluationLines:
    """Tells how far it is in a line every few seconds, and when `heartbeat` seconds brought none; with `every` None
    nothing but what has to be said."""

    def __init__(self, tell: Tell, tally: Tally, every: float | None = EVERY, *, heartbeat: float = HEARTBEAT) -> None:
        self.tell = tell
        self.tally = tally
        self.every = every
        self.heartbeat = heartbeat
        self._told = tally.began

    def done(self, record: Record) -> None:
        self.tally.done(record)
        due = self.every is not None and time.monotonic() - self._told >= self.every
        if due or (self.every is not None and self.tally.finished == self.tally.total):
            self._tell()

    def _tell(self) -> None:
        self._told = time.monotonic()
        self.tell(f"{self._told - self.tally.began:6.1f} s  {self.tally.state}")

    async def keep(self) -> None:
        """Go on showing that it goes on; cancelled in the end."""
        if self.every is not None:
            await pulse(lambda: self._told + self.heartbeat, self._tell)

    def say(self, text: str) -> None:
        self.tell(f"hira: {text}")


class Table(EvaluationLines):
    """A table of the cells on a terminal, redrawn in place; a context manager that draws it."""

    def __init__(self, stderr: TextIO, tally: Tally) -> None:
        from rich.console import Console  # only where it draws
        from rich.live import Live
        from rich.text import Text

        self.console = Console(file=stderr)
        super().__init__(lambda text: self.console.print(Text(visible(text)), soft_wrap=True), tally, None)
        self._live = Live(console=self.console, get_renderable=self._drawn, refresh_per_second=4)

    def _drawn(self) -> "Group":
        from rich.console import Group
        from rich.table import Table as Drawn
        from rich.text import Text

        drawn = Drawn(box=None, pad_edge=False)
        for name in ("", "done", "right", "tokens", "cost", "failed"):
            drawn.add_column(name, justify="left" if not name else "right")
        for cell in self.tally.cells:
            own = self.tally.counts[cell.name]
            tokens, cost = own.tokens // max(1, own.done), f"${own.cost:.4f}" if own.cost else ""
            shown = (f"{own.done}/{self.tally.items}", right(own), f"{tokens:,}", cost)
            drawn.add_row(Text(visible(cell.name)), *shown, str(own.failed or ""))
        return Group(drawn, Text(self.tally.state))

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()
