"""What recording costs: CPU of a model call and the lag of the loop, with and without the journal in the same run.

    python benchmarks/journal.py [--rounds 15] [--write]

HiRA's flow with three deep-search subtasks against a scripted endpoint without latency, in a process of its own; the
two ways take turns, three questions at a time and until all is in the database. CPU is that of the whole process, the
writing thread included; the share is the median of the turns. The lag is how late a timer of one
millisecond is while 32 questions run at once; what else the machine does is in it. What is not is the CPU time of the
loop's own thread that one recorded call takes, from the look into the record to the reply's being safe: nothing else
runs in that thread meanwhile, so for so long the journal holds the loop.
"""

import argparse
import asyncio
import os
import platform
import statistics
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from apart import apart
from flow import Quick, tool

from hira.agents.experts import DeepSearch
from hira.agents.run_context import RoleConfig, RunContext
from hira.agents.trajectory import Rollout
from hira.core.events import Events
from hira.core.messages import Message, assistant, user
from hira.core.policy import Completion, Request, Usage
from hira.journal import Journal, Log
from hira.policies import open_policy
from hira.policies.dialects import TAGS
from hira.runtime.session import logged
from hira.tools import Toolbox
from hira.workflows import HiRA, rollout

QUESTION = "When was the mill of Varn built?"
AT_ONCE = 32
A_TURN = 6
CALLS, TURNS = 1000, 20


class Asking:
    """Asks the question, recorded in the journal or not."""

    def __init__(self, base_url: str, journal: Journal | None) -> None:
        roles = ("planner", "coordinator", "deep_search")
        self.cast = {role: RoleConfig(open_policy(role, base_url=base_url), dialect=TAGS) for role in roles}
        # pure, as the real ones are
        search, browse = (replace(tool(*named), pure=True) for named in (("search", "query"), ("browse", "url")))
        self.tools = Toolbox(search=search, browse=browse)
        self.journal = journal
        self.log: Log | None = None
        self.asked = 0

    async def ask(self) -> int:
        """The number of model calls that it took."""
        self.asked += 1
        run = f"{'with' if self.journal else 'without'}-{self.asked}"
        log = self.log = self.journal.begin(run, settings={}, files=(), versions={}) if self.journal else None
        events = Events(*([logged(log)] if log else [lambda _: None]))
        context = RunContext(self.cast, rollout=Rollout(run, "", ""), events=events, tools=self.tools, log=log)
        record = await rollout(HiRA(experts=(DeepSearch(), Quick())), QUESTION, context)
        assert record.status == "answered", record.error
        return record.usage.calls

    async def close(self) -> None:
        for part in self.cast.values():
            await part.policy.aclose()


async def cpu(asking: Asking) -> tuple[float, float]:
    """Milliseconds of CPU and of wall time for each model call of some questions."""
    began, wall = time.process_time(), time.perf_counter()
    calls = sum([await asking.ask() for _ in range(A_TURN)])
    waited = time.perf_counter() - wall
    if asking.log:
        await asking.log.settle()
    return (time.process_time() - began) * 1000 / calls, waited * 1000 / calls


async def lags(asking: Asking) -> list[float]:
    """How late a timer was, in milliseconds, while questions run at once."""
    late: list[float] = []

    async def watch() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            late.append((time.perf_counter() - began - 0.001) * 1000)

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(asking.ask() for _ in range(AT_ONCE)))
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    return late


async def held(journal: Journal) -> list[float]:
    """Milliseconds of CPU for which each of `CALLS` recorded calls holds the loop.

    Conversations of twenty turns: each brings a reply of half a kilobyte and what was read, of eight.
    """
    log = journal.begin("held", settings={}, files=(), versions={})
    took: list[float] = []
    reply = Completion("The mill was built in 1742. " * 18, model="m", usage=Usage(1, 9000, 120))

    async def ask() -> Completion:
        return reply

    for number in range(CALLS):
        name, turn = f"{number // TURNS}/deep_search", number % TURNS
        if turn == 0:
            history: tuple[Message, ...] = (user(QUESTION),)
        request = Request(history, conversation=name)
        began = time.thread_time()
        await log.policy("m", request, ask)
        took.append((time.thread_time() - began) * 1000)
        history += (assistant(reply.text), user(f"{turn}: " + "The mill stands by the river. " * 270))
        await asyncio.sleep(0)  # the writing thread is given its turns
    log.end("answered", "", "")
    assert not log.trouble, log.trouble
    return took


async def run(base_url: str, rounds: int, folder: Path) -> str:
    journal = Journal(folder / "journal.sqlite")
    ways = {"without": Asking(base_url, None), "with": Asking(base_url, journal)}
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    late: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds + 2):
        for name, asking in ways.items():
            spent[name].append(await cpu(asking))
    for _ in range(3):
        for name, asking in ways.items():
            late[name] += await lags(asking)
    for asking in ways.values():
        await asking.close()
    journal.close()
    size = journal.path.stat().st_size / 1024 / ways["with"].asked
    other = Journal(folder / "held.sqlite")
    holds = await held(other)
    other.close()
    times = {name: statistics.median(one[0] for one in found[2:]) for name, found in spent.items()}
    walls = {name: statistics.median(one[1] for one in found[2:]) for name, found in spent.items()}
    share = statistics.median(
        (b[0] - a[0]) / b[0] for a, b in zip(spent["without"][2:], spent["with"][2:], strict=True)
    )
    cut = {name: statistics.quantiles(found, n=100) for name, found in late.items()}
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    about = f"Python {platform.python_version()}, {machine}"
    return f"""# The journal

Made by `python benchmarks/journal.py --write`: {about}.
HiRA's flow with three deep-search subtasks a question, a scripted endpoint without latency in a process of its own;
{rounds} turns of {A_TURN} questions each way. CPU is the whole process's, with the writing thread until all is in the
database; medians.

| measure | without | with | goal |
|---|---|---|---|
| CPU a model call | {times["without"]:.2f} ms | {times["with"]:.2f} ms | |
| the journal's share of it | | {share:.0%} | 15 % |
| wall time a model call, one question at a time | {walls["without"]:.2f} ms | {walls["with"]:.2f} ms | |
| lag of the loop, {AT_ONCE} questions at once, median | {cut["without"][49]:.1f} ms | {cut["with"][49]:.1f} ms | |
| the same, 99th percentile | {cut["without"][98]:.1f} ms | {cut["with"][98]:.1f} ms | |
| CPU for which one recorded call holds the loop, {CALLS:,} calls, median | | {statistics.median(holds):.2f} ms | |
| the same, 99th percentile | | {statistics.quantiles(holds, n=100)[98]:.2f} ms | |
| the same, the longest | | {max(holds):.2f} ms | |
| size of the file for a question | | {size:.0f} kB | |
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", action="store_true", help="keep the figures in benchmarks/results/journal.md")
    chosen = parser.parse_args()
    flow = str(Path(__file__).with_name("flow.py"))
    with tempfile.TemporaryDirectory() as folder, apart(flow, "--serve") as base_url:
        told = asyncio.run(run(base_url, chosen.rounds, Path(folder)))
    print(told)
    if chosen.write:
        Path(__file__).with_name("results").joinpath("journal.md").write_text(told, encoding="utf-8")


if __name__ == "__main__":
    main()
