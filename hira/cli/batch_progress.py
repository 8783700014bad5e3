"""How far a batch is: how many are done, how fast, at what cost, and how long it will take."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Protocol, Self, TextIO

from hira.cli.progress import HEARTBEAT, Tell
from hira.cli.shell import visible
from hira.runtime.batch import Done

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


class Lines(Progress):
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
