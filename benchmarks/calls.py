"""CPU a model call, one question at a time, no latency: hira with everything included against hand-written loops.

    python benchmarks/calls.py [--rounds 15] [--write]

The endpoint runs in a process of its own; the ways take turns, so that a busy machine disturbs them alike. Printed are
medians of this process's CPU time and ratios within the run.
"""

import argparse
import asyncio
import statistics
import time
from contextlib import AsyncExitStack
from pathlib import Path

from contenders import CONTENDERS, about, serving

TURNS = (5, 20, 100)


async def measure(turns: int, rounds: int) -> dict[str, float]:
    """CPU milliseconds a model call, median over the rounds."""
    spent: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    with serving(turns=turns) as base_url:
        async with AsyncExitStack() as stack:
            asks = {name: await stack.enter_async_context(way(base_url, 1)) for name, way in CONTENDERS.items()}
            for _ in range(rounds + 1):
                for name, ask in asks.items():
                    began = time.process_time()
                    await ask(turns)
                    spent[name].append((time.process_time() - began) * 1000 / (turns + 1))
    return {name: statistics.median(times[1:]) for name, times in spent.items()}


def table(rounds: int) -> str:
    found = {turns: asyncio.run(measure(turns, max(3, rounds * 5 // turns))) for turns in TURNS}
    lines = ["| ms CPU a call, and × the SDK | " + " | ".join(f"{turns} tool turns" for turns in TURNS) + " |"]
    lines.append("|---" * (len(TURNS) + 1) + "|")
    for name in CONTENDERS:
        cells = [f"{found[turns][name]:.2f} ({found[turns][name] / found[turns]['openai SDK']:.2f})" for turns in TURNS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="questions of five turns; fewer of the longer ones")
    parser.add_argument("--write", action="store_true", help="write results/calls.md too")
    chosen = parser.parse_args()
    made = table(chosen.rounds)
    print(made)
    if chosen.write:
        text = f"# CPU a model call\n\nMade by `python benchmarks/calls.py --write`: {about()}.\n\n{made}\n"
        Path(__file__).with_name("results").joinpath("calls.md").write_text(text)


if __name__ == "__main__":
    main()
