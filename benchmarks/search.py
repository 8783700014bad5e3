"""What many searches at once cost the loop they run in.

    python benchmarks/search.py              prints the figures
    python benchmarks/search.py --write      also writes results/search.md

A fake SearXNG in a process of its own holds every answer until all searches have come. The lag is how much later than
asked for a sleeping task wakes up meanwhile.
"""

import argparse
import asyncio
import platform
import statistics
import time
from pathlib import Path

from apart import apart, serve

from hira.testing.web import FakeWeb
from hira.tools.search import open_backend, open_client, search_tool

RESULTS = Path(__file__).parent / "results" / "search.md"
PAGE = """# Web searches at once

Made by `python benchmarks/search.py --write`: Python {version}, {machine}. {searches} searches at once, medians of
{rounds} rounds and the worst of them. One run on a shared machine.

| | ms | worst | goal |
|---|---|---|---|
| all answered | {wall:.0f} | {walls:.0f} | |
| longest lag of the loop | {lag:.0f} | {lags:.0f} | 50 |
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="also write results/search.md")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(FakeWeb({"/kama": "<title>The Kama</title><p>A long river.</p>"}, together=arguments.searches))
        return
    rounds = [asyncio.run(measured(arguments.searches)) for _ in range(arguments.rounds)]
    walls, lags = zip(*rounds, strict=True)
    page = PAGE.format(
        version=platform.python_version(),
        machine=platform.machine(),
        searches=arguments.searches,
        rounds=arguments.rounds,
        wall=statistics.median(walls) * 1000,
        walls=max(walls) * 1000,
        lag=statistics.median(lags) * 1000,
        lags=max(lags) * 1000,
    )
    print(page)
    if arguments.write:
        RESULTS.write_text(page, encoding="utf-8")


async def measured(searches: int) -> tuple[float, float]:
    lags = [0.0]

    async def beat() -> None:
        while True:
            due = time.perf_counter() + 0.001
            await asyncio.sleep(0.001)
            lags.append(time.perf_counter() - due)

    with apart(__file__, "--serve", "--searches", str(searches)) as url:
        async with open_client({}) as client:
            search = search_tool([open_backend("searxng", client, base_url=url)])
            heart = asyncio.create_task(beat())
            began = time.perf_counter()
            await asyncio.gather(*(search.call({"query": f"Kama {n}"}) for n in range(searches)))
            wall = time.perf_counter() - began
            heart.cancel()
    return wall, max(lags)


if __name__ == "__main__":
    main()
