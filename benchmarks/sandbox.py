"""What the Python sandbox costs: its start, and a warm call beside the bare interpreter.

    python benchmarks/sandbox.py              prints the figures
    python benchmarks/sandbox.py --write      also writes results/sandbox.md
    python benchmarks/sandbox.py --check      ends with 1 where a goal is missed (meant for a quiet machine)

The bare interpreter is `python -c` for the start, and `compile` and `exec` in a plain process for a call.
"""

import asyncio
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from hira.tools.python import PythonSandbox, refusal, sandbox_layers

STARTS, CALLS = 15, 200
AT_ONCE = 8
START_GOAL, CALL_GOAL = 150.0, 5.0
RESULTS = Path(__file__).parent / "results" / "sandbox.md"
PROGRAMS: Mapping[str, str] = {
    "`6 * 7`": "6 * 7",
    "parse 100 lines of JSON": "import json\nlen([json.loads(json.dumps({'n': n})) for n in range(100)])",
    "add up 100,000 numbers": "total = 0\nfor n in range(100_000): total += n\ntotal",
    "print 1,000 lines": "for n in range(1000): print(n)",
    "write and read a file": "open('f.txt', 'w').write('x' * 1000)\nlen(open('f.txt').read())",
}
BARE = """
import sys, time
space = {}
while sys.stdin.readline():
    began = time.perf_counter()
    exec(compile(sys.argv[1], "call", "exec"), space)
    sys.stdout.flush()
    print(time.perf_counter() - began, file=sys.stderr, flush=True)
"""
PAGE = """# The Python sandbox

Made by `python benchmarks/sandbox.py --write`: Python {version}, {machine}. Milliseconds; medians of {starts} starts
and {calls} calls. One run on a shared machine. Layers: {layers}.

| start | median | slowest | goal |
|---|---|---|---|
| bare `python -c ""` | {bare} | {bare_most} | |
| sandbox, to the first answer | {start} | {start_most} | {goal_start:.0f} |
| {at_once} sandboxes at once, to the last answer | {together} | | |

| warm call | bare | sandbox | more | 95 of 100 | goal (more) |
|---|---|---|---|---|---|
{rows}

Resident: {resident:.0f} MB a session before it imports anything.
"""


class Call(NamedTuple):
    """Milliseconds of one program: bare, in the sandbox, the difference, and what 95 of 100 sandboxed stay below."""

    bare: float
    sandboxed: float
    more: float
    most: float


def bare_start() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", ""], check=True)
    return (time.perf_counter() - began) * 1000


async def start(folder: Path) -> float:
    """From nothing to the first answer."""
    began = time.perf_counter()
    async with PythonSandbox(folder) as sandbox:
        await sandbox.run("1")
        return (time.perf_counter() - began) * 1000


async def resident(folder: Path) -> float:
    """Megabytes."""
    async with PythonSandbox(folder) as sandbox:
        await sandbox.run("1")
        assert sandbox._interpreter is not None  # noqa: SLF001 - a benchmark may look inside
        pid = sandbox._interpreter.process.pid  # noqa: SLF001 - likewise
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * 4096 / 1e6


async def call(code: str, folder: Path) -> Call:
    """The bare interpreter and the sandbox take turns, so that a busy moment of the machine meets both."""
    pipe = asyncio.subprocess.PIPE
    bare = await asyncio.create_subprocess_exec(
        sys.executable, "-c", BARE, code, stdin=pipe, stdout=subprocess.DEVNULL, stderr=pipe, cwd=folder
    )
    assert bare.stdin is not None
    assert bare.stderr is not None
    taken: list[tuple[float, float]] = []
    async with PythonSandbox(folder / "work") as sandbox:
        await sandbox.run(code)
        for _ in range(CALLS):
            bare.stdin.write(b"\n")
            alone = float(await bare.stderr.readline()) * 1000
            began = time.perf_counter()
            outcome = await sandbox.run(code)
            taken.append((alone, (time.perf_counter() - began) * 1000))
            assert outcome.status == "ok", outcome
    bare.stdin.close()
    await bare.wait()
    free, held = ([pair[side] for pair in taken] for side in (0, 1))
    more = statistics.median(inside - outside for outside, inside in taken)
    return Call(statistics.median(free), statistics.median(held), more, statistics.quantiles(held, n=20)[-1])


async def measured() -> tuple[str, bool]:
    """The page, and whether every goal was met."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bare, starts = [], []
        for number in range(STARTS):
            bare.append(bare_start())
            starts.append(await start(folder / f"s{number}"))
        began = time.perf_counter()
        await asyncio.gather(*(start(folder / f"t{number}") for number in range(AT_ONCE)))
        together = (time.perf_counter() - began) * 1000
        calls = {title: await call(code, folder) for title, code in PROGRAMS.items()}
        megabytes = await resident(folder / "r")
    rows = [
        f"| {title} | {one.bare:.2f} | {one.sandboxed:.2f} | {one.more:.2f} | {one.most:.2f} | {CALL_GOAL:.0f} |"
        for title, one in calls.items()
    ]
    page = PAGE.format(
        version=platform.python_version(),
        machine=platform.machine(),
        layers=", ".join(layer.name for layer in sandbox_layers() if layer.active),
        starts=STARTS,
        calls=CALLS,
        bare=f"{statistics.median(bare):.0f}",
        bare_most=f"{max(bare):.0f}",
        start=f"{statistics.median(starts):.0f}",
        start_most=f"{max(starts):.0f}",
        goal_start=START_GOAL,
        at_once=AT_ONCE,
        together=f"{together:.0f}",
        rows="\n".join(rows),
        resident=megabytes,
    )
    met = all(one.more <= CALL_GOAL for one in calls.values())
    return page, met and statistics.median(starts) <= START_GOAL


def main() -> None:
    if line := refusal():
        sys.exit(line)
    page, met = asyncio.run(measured())
    print(page)
    if "--write" in sys.argv:
        RESULTS.write_text(page, encoding="utf-8")
    if "--check" in sys.argv and not met:
        sys.exit(1)


if __name__ == "__main__":
    main()
