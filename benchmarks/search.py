"""What many searches at once cost the loop they run in: `python benchmarks/search.py`.

A fake SearXNG in a process of its own holds every answer until all searches have come. The lag is how much later than
asked for a sleeping task wakes up meanwhile.
"""

import argparse
import asyncio
import statistics
import subprocess
import sys
import time

from hira.testing.web import FakeWeb
from hira.tools.search import open_backend, open_client, search_tool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.searches)
        return
    rounds = [asyncio.run(measured(arguments.searches)) for _ in range(arguments.rounds)]
    walls, lags = zip(*rounds, strict=True)
    print(
        f"{arguments.searches} searches: {statistics.median(walls) * 1000:.0f} ms, "
        f"longest lag of the loop {statistics.median(lags) * 1000:.0f} ms (worst {max(lags) * 1000:.0f})"
    )


def serve(searches: int) -> None:
    with FakeWeb({"/kama": "<title>The Kama</title><p>A long river.</p>"}, together=searches) as web:
        print(web.url, flush=True)
        sys.stdin.read()


async def measured(searches: int) -> tuple[float, float]:
    server = subprocess.Popen(
        [sys.executable, __file__, "--serve", "--searches", str(searches)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout
    assert server.stdin
    url = server.stdout.readline().strip()
    lags = [0.0]

    async def beat() -> None:
        while True:
            due = time.perf_counter() + 0.001
            await asyncio.sleep(0.001)
            lags.append(time.perf_counter() - due)

    async with open_client({}) as client:
        search = search_tool([open_backend("searxng", client, base_url=url)])
        heart = asyncio.create_task(beat())
        began = time.perf_counter()
        await asyncio.gather(*(search.call({"query": f"Kama {n}"}) for n in range(searches)))
        wall = time.perf_counter() - began
        heart.cancel()
    server.stdin.close()
    server.wait(10)
    return wall, max(lags)


if __name__ == "__main__":
    main()
