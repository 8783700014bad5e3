"""How far an evaluation is: a table of its cells on a terminal, plain lines elsewhere."""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from hira.cli.batch_progress import EVERY, spell
from hira.cli.progress import Tell
from hira.cli.shell import visible
from hira.evaluation.cells import Cell
from hira.evaluation.record import Record

if TYPE_CHECKING:
    from rich.console import Group


class Tally:
    """Counts by cell. What was there before counts as done, and not for the rate."""

    def __init__(self, cells: Sequence[Cell], items: int, before: Sequence[Record]) -> None:
        self.cells = cells
        self.items = items
        self.records: dict[str, list[Record]] = {cell.name: [] for cell in cells}
        self.before = len(before)
        self.began = time.monotonic()
        for record in before:
            self.records[record.cell].append(record)

    def done(self, record: Record) -> None:
        self.records[record.cell].append(record)

    @property
    def finished(self) -> int:
        return sum(map(len, self.records.values()))

    @property
    def total(self) -> int:
        return self.items * len(self.cells)

    @property
    def state(self) -> str:
        """Such as `120 of 600 · 41 % right · 2.1 a second · $0.31 · about 4 min left`."""
        every = [record for records in self.records.values() for record in records]
        seconds, new = max(1e-9, time.monotonic() - self.began), self.finished - self.before
        rate = new / seconds
        parts = [f"{self.finished} of {self.total}", right(every)]
        parts += [f"{rate:.1f} a second" if rate >= 1 else f"{60 * rate:.1f} a minute"] if new else []
        cost = sum(record.cost or 0.0 for record in every)
        parts += [f"${cost:.4f}"] if cost else []
        if new and self.finished < self.total:
            parts.append(f"about {spell((self.total - self.finished) / rate)} left")
        return " · ".join(part for part in parts if part)


def right(records: Sequence[Record]) -> str:
    """The share of right answers so far, empty if nothing is scored."""
    scored = [record.score.correct for record in records if record.score.correct is not None]
    return f"{100 * sum(scored) / len(scored):.0f} % right" if scored else ""


class Lines:
    """Tells how far it is in a line every few seconds; with `every` None nothing but what has to be said."""

    def __init__(self, tell: Tell, tally: Tally, every: float | None = EVERY) -> None:
        self.tell = tell
        self.tally = tally
        self.every = every
        self._told = tally.began

    def done(self, record: Record) -> None:
        self.tally.done(record)
        now = time.monotonic()
        if self.every is not None and (now - self._told >= self.every or self.tally.finished == self.tally.total):
            self._told = now
            self.tell(f"{now - self.tally.began:6.1f} s  {self.tally.state}")

    def say(self, text: str) -> None:
        self.tell(f"hira: {text}")


class Table(Lines):
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
            own = self.tally.records[cell.name]
            cost = sum(record.cost or 0.0 for record in own)
            tokens = sum(record.tokens for record in own) // max(1, len(own))
            failed = sum(record.status == "failed" for record in own)
            shown = (f"{len(own)}/{self.tally.items}", right(own), f"{tokens:,}", f"${cost:.4f}" if cost else "")
            drawn.add_row(Text(visible(cell.name)), *shown, str(failed or ""))
        return Group(drawn, Text(self.tally.state))

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()
