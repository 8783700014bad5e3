"""A thousand questions in one batch, offline: speed, memory and how long the event loop is held up.

    python benchmarks/batch.py [--questions 1000] [--concurrency 64] [--write]

The questions are asked of local documents through the whole HiRA workflow, with the journal, in a process of its own;
resident memory is taken after a fifth of them and at the end. The loop's lag is how late a task that sleeps 10 ms
wakes up. `offline` computes inside the loop, which an endpoint does not: its lag is the longest that a question's own
computing takes.
"""

import argparse
import asyncio
import platform
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from hira import Hira, Settings

HERE = Path(__file__).parent
DOCUMENTS = HERE / "data" / "offline" / "documents"
RESULTS = HERE / "results" / "batch.md"
TICK = 0.01


@dataclass(frozen=True, slots=True)
class Figures:
    """`early` and `late` are MB resident after a fifth of the questions and after all; lags are milliseconds."""

    seconds: float
    early: float
    late: float
    lag: float
    longest: float


def resident() -> float:
    """MB. Only where /proc is."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


async def lags(found: list[float]) -> None:
    while True:
        before = time.perf_counter()
        await asyncio.sleep(TICK)
        found.append((time.perf_counter() - before - TICK) * 1000)


async def measured(many: int, concurrency: int) -> Figures:
    questions = [f"How long is the river number {at}, and who measured it?" for at in range(many)]
    found: list[float] = []
    early, done = 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(model="offline", docs=(DOCUMENTS,), journal=Path(folder) / "journal.sqlite")
        async with Hira(settings=settings) as hira:
            await hira.ask(questions[0])
            ticking = asyncio.create_task(lags(found))
            began = time.perf_counter()
            async for _ in hira.batch(questions, concurrency=concurrency):
                done += 1
                if done == many // 5:
                    early = resident()
            seconds = time.perf_counter() - began
            late = resident()
            ticking.cancel()
    return Figures(seconds, early, late, median(found), max(found))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a batch.")
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--write", action="store_true", help="write the figures to benchmarks/results/batch.md")
    args = parser.parse_args()
    figures = asyncio.run(measured(args.questions, args.concurrency))
    fifth = args.questions // 5
    rows = [
        ("questions a second", f"{args.questions / figures.seconds:.1f}"),
        (f"resident after {fifth}", f"{figures.early:.0f} MB"),
        (f"resident after {args.questions}", f"{figures.late:.0f} MB"),
        ("lag of the loop, median", f"{figures.lag:.1f} ms"),
        ("lag of the loop, longest", f"{figures.longest:.0f} ms"),
    ]
    shown = "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])
    print(shown)
    if args.write:
        made = f"`python benchmarks/batch.py --write`, Python {platform.python_version()} on {platform.system()}"
        what = f"{args.questions} questions, {args.concurrency} at a time, `offline`, with the journal"
        RESULTS.write_text(f"# A batch\n\n{made}: {what}.\n\n{shown}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
