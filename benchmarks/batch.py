"""A thousand questions in one batch, and in one evaluation, offline: speed, memory, and how long the loop is held up.

    python benchmarks/batch.py [--questions 1000] [--concurrency 64] [--write]

The questions are asked of local documents through the whole HiRA workflow, with the journal, in a process of its own;
resident memory is taken after a fifth and three fifths of them and at the end. lag.py explains the lags.
`offline` computes inside the loop, which an endpoint does not. The evaluation is `hira eval`'s: scored, recorded line
by line, summarised at the end. As in `hira ask --batch` and `hira eval`, garbage is
collected as `short_pauses` says.
"""

import argparse
import asyncio
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterable
from pathlib import Path

from lag import METHOD, lagging

from hira import Hira, Settings
from hira.cli.many import short_pauses
from hira.evaluation import report
from hira.evaluation.cells import grid
from hira.evaluation.files import Item
from hira.evaluation.run import Evaluation, EvaluationPlan
from hira.evaluation.scorers import match

HERE = Path(__file__).parent
DOCUMENTS = HERE.parent / "tests" / "data" / "library"
RESULTS = HERE / "results" / "batch.md"
QUESTION = "How high is the tower at Skerry Point, and who was its keeper in the year {}?"


Rows = list[tuple[str, str]]


def resident() -> float:
    """MB. Only where /proc is."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


async def batched(many: int, concurrency: int) -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            model="offline", docs=(DOCUMENTS,), workflow="hira", journal=Path(folder) / "journal.sqlite"
        )
        async with Hira(settings=settings) as hira:
            await hira.ask(QUESTION.format(0))
            questions = [QUESTION.format(at) for at in range(many)]
            return await watched(hira.batch(questions, concurrency=concurrency), many)


async def evaluated(many: int, concurrency: int) -> Rows:
    items = tuple(Item(str(at), QUESTION.format(at), (str(at),)) for at in range(many))
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(model="offline", docs=(DOCUMENTS,))
        plan = EvaluationPlan("rivers", items, tuple(grid(["hira"], [], 1)), settings, concurrency=concurrency)
        evaluation = Evaluation(plan, Path(folder), match)
        figures = await watched(evaluation.each(), many)
        report.write(evaluation)
        return figures


async def watched(finished: AsyncIterable[object], many: int) -> Rows:
    """The figures of what gives one object for each question that is finished."""
    memory: list[tuple[str, str]] = []
    done = 0
    with short_pauses():
        async with lagging() as lags:
            began = time.perf_counter()
            async for _ in finished:
                done += 1
                if done in (many // 5, many * 3 // 5, many):
                    memory.append((f"resident after {done}", f"{resident():.0f} MB"))
            seconds = time.perf_counter() - began
    return [("questions a second", f"{many / seconds:.1f}"), *memory, *lags.rows]


KINDS = {"batch": batched, "evaluation": evaluated}


def in_a_process(kind: str, questions: int, concurrency: int) -> Rows:
    """Each in a process of its own, since memory that was taken once is seldom given back."""
    command = [sys.executable, __file__, "--kind", kind, "--questions", str(questions)]
    told = subprocess.run([*command, "--concurrency", str(concurrency)], check=True, stdout=subprocess.PIPE).stdout
    return [(name, value) for name, value in json.loads(told)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a batch.")
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--write", action="store_true", help="write the figures to benchmarks/results/batch.md")
    parser.add_argument("--kind", choices=KINDS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.kind:
        print(json.dumps(asyncio.run(KINDS[args.kind](args.questions, args.concurrency))))
        return
    both = [in_a_process(kind, args.questions, args.concurrency) for kind in KINDS]
    rows = [(name, first, second) for (name, first), (_, second) in zip(*both, strict=True)]
    shown = "\n".join(["| | batch | evaluation |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)])
    print(shown)
    if args.write:
        made = f"`python benchmarks/batch.py --write`, Python {platform.python_version()} on {platform.system()}"
        what = f"{args.questions} questions, {args.concurrency} at a time, `offline`, with the journal"
        RESULTS.write_text(f"# A batch\n\n{made}: {what}. {METHOD}\n\n{shown}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
