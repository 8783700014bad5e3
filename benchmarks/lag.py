"""How long an event loop is held up: by the clock, by the processor time that it takes itself, and beside a bare loop.

A tick is a task that sleeps 10 ms; by the clock, its lag is how late it wakes up. On a machine that others use, too,
that counts their work as well. So there are two other figures: the lag of a bare loop, which ticks at the same time in
a separate process and does nothing else; and the processor time that passed in this process between two
ticks, of the loop's own thread and of all threads together, which a tick that comes in time keeps near 10 ms or below.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

TICK = 0.01
GOAL = 100
"""ms."""
METHOD = """A tick is a task that sleeps 10 ms, and its lag is how late it wakes up. By the
clock that counts the work of other programs on the machine, too: the bare loop ticked at the same time in a process of
its own and did nothing else. What the process took itself is the processor time that passed in it between two ticks,
in the loop's thread and in all threads together; where every tick comes in time, that is about 10 ms at the most."""


@dataclass(frozen=True, slots=True)
class Lags:
    """All in ms, one number a tick: how late it came; the processor time since the one before, of the loop's thread and
    of the process. `bare` is how late those of the bare loop came."""

    late: list[float] = field(default_factory=list)
    thread: list[float] = field(default_factory=list)
    process: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)

    @property
    def rows(self) -> list[tuple[str, str]]:
        """The lines of a table."""
        return [
            ("lag of the loop, median", f"{median(self.late):.1f} ms"),
            ("lag of the loop, longest", f"{max(self.late):.0f} ms"),
            (f"ticks that came more than {GOAL} ms late", over(self.late)),
            ("a bare loop beside it: lag, median", f"{median(self.bare):.1f} ms"),
            ("a bare loop beside it: lag, longest", f"{max(self.bare):.0f} ms"),
            (f"a bare loop beside it: ticks more than {GOAL} ms late", over(self.bare)),
            ("processor time between two ticks, of the loop's thread, longest", f"{max(self.thread):.0f} ms"),
            ("processor time between two ticks, of all threads, longest", f"{max(self.process):.0f} ms"),
        ]


def over(late: Sequence[float]) -> str:
    return f"{sum(one > GOAL for one in late)} of {len(late)}"


@asynccontextmanager
async def lagging() -> AsyncIterator[Lags]:
    """The lags of this loop as long as the context lasts; those of the bare loop are there when it is left."""
    beside = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "import lag; lag.alone()", cwd=Path(__file__).parent,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert beside.stdout
    await beside.stdout.readline()  # it has begun
    found = Lags()
    ticking = asyncio.create_task(ticks(found))
    try:
        yield found
    finally:
        ticking.cancel()
        told, _ = await beside.communicate(b"")  # the end of its input
        found.bare.extend(json.loads(told))


async def ticks(found: Lags) -> None:
    thread, process = time.thread_time(), time.process_time()
    while True:
        before = time.perf_counter()
        await asyncio.sleep(TICK)
        found.late.append((time.perf_counter() - before - TICK) * 1000)
        now = time.thread_time(), time.process_time()
        found.thread.append((now[0] - thread) * 1000)
        found.process.append((now[1] - process) * 1000)
        thread, process = now


def alone() -> None:
    """The bare loop: ticks until its input ends, then prints how late each tick came."""

    async def ticking() -> list[float]:
        found = Lags()
        task = asyncio.create_task(ticks(found))
        await asyncio.to_thread(sys.stdin.read)
        task.cancel()
        return found.late

    print(flush=True)
    print(json.dumps(asyncio.run(ticking())))
