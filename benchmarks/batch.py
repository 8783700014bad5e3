"""A thousand questions in one batch, and in one evaluation, offline: speed, memory, and how long the loop is held up.

    python benchmarks/batch.py [--questions 1000] [--concurrency 64] [--write]

The questions are asked of local documents through the whole HiRA workflow, with the journal, in a process of its own;
resident memory is taken after a fifth of them and at the end. The loop's lag is how late a task that sleeps 10 ms
wakes up. `offline` computes inside the loop, which an endpoint does not: its lag is the longest that a question's own
computing takes. The evaluation is `hira eval`'s: scored, recorded line by line, summarised at the end.
"""

import argparse
import asyncio
import platform
import tempfile
import time
from collections.abc import AsyncIterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from hira import Hira, Settings
from hira.evaluation import report
from hira.evaluation.cells import grid
from hira.evaluation.item import Item
from hira.evaluation.metrics import match
from hira.evaluation.run import Evaluation, Plan

HERE = Path(__file__).parent
DOCUMENTS = HERE / "data" / "offline" / "documents"
RESULTS = HERE / "results" / "batch.md"
TICK = 0.01
QUESTION = "How long is the river number {}, and who measured it?"


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


async def batched(many: int, concurrency: int) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(model="offline", docs=(DOCUMENTS,), journal=Path(folder) / "journal.sqlite")
        async with Hira(settings=settings) as hira:
            await hira.ask(QUESTION.format(0))
            questions = [QUESTION.format(at) for at in range(many)]
            return await watched(hira.batch(questions, concurrency=concurrency), many)


async def evaluated(many: int, concurrency: int) -> Figures:
    items = tuple(Item(str(at), QUESTION.format(at), (str(at),)) for at in range(many))
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(model="offline", docs=(DOCUMENTS,))
        plan = Plan("rivers", items, tuple(grid(["hira"], [], 1)), settings, concurrency=concurrency)
        evaluation = Evaluation(plan, Path(folder), match)
        figures = await watched(evaluation.each(), many)
        report.write(evaluation)
        return figures


async def watched(finished: AsyncIterable[object], many: int) -> Figures:
    """The figures of what gives one object for each question that is finished."""
    found: list[float] = []
    early, done = 0.0, 0
    ticking = asyncio.create_task(lags(found))
    began = time.perf_counter()
    async for _ in finished:
        done += 1
        if done == many // 5:
            early = resident()
    seconds = time.perf_counter() - began
    ticking.cancel()
    return Figures(seconds, early, resident(), median(found), max(found))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a batch.")
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--write", action="store_true", help="write the figures to benchmarks/results/batch.md")
    args = parser.parse_args()
    both = [asyncio.run(work(args.questions, args.concurrency)) for work in (batched, evaluated)]
    fifth = args.questions // 5
    rows = [
        ("questions a second", [f"{args.questions / one.seconds:.1f}" for one in both]),
        (f"resident after {fifth}", [f"{one.early:.0f} MB" for one in both]),
        (f"resident after {args.questions}", [f"{one.late:.0f} MB" for one in both]),
        ("lag of the loop, median", [f"{one.lag:.1f} ms" for one in both]),
        ("lag of the loop, longest", [f"{one.longest:.0f} ms" for one in both]),
    ]
    lines = [f"| {name} | {' | '.join(values)} |" for name, values in rows]
    shown = "\n".join(["| | batch | evaluation |", "|---|---|---|", *lines])
    print(shown)
    if args.write:
        made = f"`python benchmarks/batch.py --write`, Python {platform.python_version()} on {platform.system()}"
        what = f"{args.questions} questions, {args.concurrency} at a time, `offline`, with the journal"
        RESULTS.write_text(f"# A batch\n\n{made}: {what}.\n\n{shown}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
