"""Many questions at once, five calls each, with everything included, against aiohttp alone in the same run.

    python benchmarks/concurrency.py [--rounds 3] [--all] [--write]

The endpoint runs in a process of its own and waits before each reply. Printed are median walls, as multiples of the
critical path (calls × delay) and of aiohttp. `--all` measures httpx and the SDK as well, which takes minutes.
"""

import argparse
import asyncio
import gc
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from contenders import CONTENDERS, about, hira, serving

TURNS = 4
CALLS = TURNS + 1
MANY = (32, 256, 1000)


async def wall(name: str, base_url: str, many: int) -> float:
    """Seconds from the first question's beginning to the last one's end."""
    gc.collect()
    async with CONTENDERS[name](base_url, many) as ask:
        began = time.perf_counter()
        await asyncio.gather(*(ask(TURNS) for _ in range(many)))
        return time.perf_counter() - began


def row(names: Sequence[str], many: int, delay: float, rounds: int) -> list[str]:
    took: dict[str, list[float]] = {name: [] for name in names}
    with serving(turns=TURNS, delay=delay) as base_url:
        for _ in range(rounds):
            for name in names:
                took[name].append(asyncio.run(wall(name, base_url, many)))
    median = {name: statistics.median(times) for name, times in took.items()}
    path = CALLS * delay
    return [f"{many} questions, {delay:g} s a call"] + [
        f"{median[name]:.2f} s ({median[name] / path:.2f} × path, {median[name] / median['aiohttp']:.2f} × aiohttp)"
        for name in names
    ]


def resident_kb() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


async def waiting_memory(many: int) -> float:
    """kB of resident memory for each question that waits for a reply. Only where /proc is."""
    with serving(turns=0, delay=3.0) as slow:
        async with hira(slow, many) as ask:
            await ask(0)
            before = resident_kb()
            asked = [asyncio.ensure_future(ask(0)) for _ in range(many)]
            await asyncio.sleep(1.5)
            after = resident_kb()
            await asyncio.gather(*asked)
    return (after - before) / many


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--all", action="store_true", help="httpx and the SDK, too")
    parser.add_argument("--write", action="store_true", help="write results/concurrency.md too")
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.memory:
        print(f"{asyncio.run(waiting_memory(1000)):.0f}")
        return
    names = list(CONTENDERS) if chosen.all else ["hira", "aiohttp"]
    rows = [row(names, many, 0.2, chosen.rounds) for many in MANY]
    rows.append(row(["hira", "aiohttp"], 256, 2.0, 1) + [""] * (len(names) - 2))
    lines = ["| wall | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    lines += ["| " + " | ".join(cells) + " |" for cells in rows]
    made = "\n".join(lines)
    print(made)
    memory = subprocess.run([sys.executable, __file__, "--memory"], capture_output=True, text=True, check=True).stdout
    told = f"Memory for each of 1000 waiting questions: {memory.strip()} kB."
    print(told)
    if chosen.write:
        made_by = f"Made by `python benchmarks/concurrency.py --write`: {about()}."
        text = f"# Many questions at once\n\n{made_by}\n\n{made}\n\n{told}\n"
        Path(__file__).with_name("results").joinpath("concurrency.md").write_text(text)


if __name__ == "__main__":
    main()
