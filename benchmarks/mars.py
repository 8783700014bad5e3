"""How long MARS takes to distil what it found: thirty pages in bins, against the slowest bin; and packing alone.

    python benchmarks/mars.py [--repeat 7] [--write]

One request of three queries brings ten pages each, which arrive one by one as pages do. The endpoint runs in a process
of its own and takes as long for a reply as a server would: for the first token, for each token that it has to read, and
for each that it writes. The critical path is the time from the last page that was opened to System 2's next turn, so it
holds counting, packing, the prompts, all bins of System 1 and the notes made of them. It is given as a ratio of times
of one run.
"""

import argparse
import asyncio
import platform
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apart import apart, serve

from hira.agents.packing import first_fit_decreasing
from hira.agents.run_context import RoleConfig, RunContext
from hira.core.events import Event, ToolEnded, TurnEnded, TurnStarted
from hira.core.policy import Completion, Request
from hira.core.tokens import count
from hira.evidence import Source
from hira.policies import open_policy
from hira.testing import Endpoint, calling
from hira.tools import Observation, Passage, Tool, Toolbox
from hira.workflows import rollout
from hira.workflows.mars import MARS

RESULTS = Path(__file__).with_name("results") / "mars.md"
QUESTION = "When was the mill of Varn built?"
QUERIES = ("mill of Varn", "Varn in the 18th century", "millers of Varn")
SENTENCE = "The old mill of Varn was built in 1742 by Ida Lorn, and stands by the river. "
FIRST, READ, WRITTEN = 0.5, 1 / 20_000, 1 / 60
"""Seconds until the first token, for each token of the prompt, and for each of the reply."""
NOTES = "\n".join(f"{what} [s1]." for what in (
    "The old mill of Varn was built in 1742", "Its builder was Ida Lorn", "It stands by the river",
    "No other year is given for the mill in these documents", "Nothing is said about who owns it today",
))  # fmt: skip
OUTPUTS = 10_000


def served(request: Request) -> Completion | str:
    if not request.tools:
        return NOTES
    if len(request.messages) > 1:
        return "<answer>The mill of Varn was built in 1742.</answer>"
    return calling("search", queries=list(QUERIES), purpose="the year in which it was built")


def seconds(request: Request) -> float:
    """System 2 answers at once: only System 1 is measured."""
    return 0.0 if request.tools else FIRST + READ * count(request.messages[0].text) + WRITTEN * count(NOTES)


def library() -> Toolbox:
    """A search with ten pages a query; the pages are as long as pages are, most of them short and some very long."""

    async def search(arguments: dict[str, Any]) -> Observation:
        places = [f"https://l.example/{arguments['query'].replace(' ', '-')}-{at}" for at in range(10)]
        return Observation(passages=tuple(Passage(Source(one, "Mill", SENTENCE, "hit"), SENTENCE) for one in places))

    async def browse(arguments: dict[str, Any]) -> Observation:
        place = str(arguments["url"])
        chance = random.Random(place)
        words = chance.lognormvariate(7.6, 0.9)
        await asyncio.sleep(chance.uniform(0.05, 0.6))
        text = f"{place}. " + SENTENCE * int(words / 16)
        return Observation(passages=(Passage(Source(place, "Mill", text), SENTENCE),))

    def made(name: str, field: str, run: Any) -> Tool:
        schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
        return Tool(name, f"{name} the library", schema, run, pure=True)

    return Toolbox(search=made("search", "query", search), browse=made("browse", "url", browse))


@dataclass(frozen=True, slots=True)
class Distilled:
    """Seconds: of the critical path, and of each bin's call. `pages` and `tokens` are what stood in the bins."""

    path: float
    bins: tuple[float, ...]
    pages: int
    tokens: int

    @property
    def ratio(self) -> float:
        return self.path / max(self.bins)


async def distilled(base_url: str) -> Distilled:
    policy = open_policy("scripted", base_url=base_url)
    context = RunContext({"*": RoleConfig(policy)}, tools=library())
    heard: list[tuple[float, Event]] = []
    context.events.readers.append(lambda event: heard.append((time.perf_counter(), event)))
    record = await rollout(MARS(), QUESTION, context)
    await policy.aclose()
    assert not record.error, record.error
    began = {event.conversation: at for at, event in heard if isinstance(event, TurnStarted)}
    ended = {event.conversation: at for at, event in heard if isinstance(event, TurnEnded)}
    opened = max(at for at, event in heard if isinstance(event, ToolEnded) and event.tool == "browse")
    reading = [name for name, one in record.trajectories.items() if one.role == "system1"]
    prompts = [record.trajectories[name].turns[0].request.messages[0].text for name in reading]
    return Distilled(
        began["system2"] - opened,
        tuple(ended[name] - began[name] for name in reading),
        sum(prompt.count("] Mill (") for prompt in prompts),
        sum(map(count, prompts)),
    )


def packed() -> tuple[float, float]:
    """CPU seconds to pack ten thousand lengths, and to sort them; medians."""
    source = random.Random(7)
    sizes = [source.randint(1, 20_000) for _ in range(OUTPUTS)]
    packing, sorting = [], []
    for _ in range(9):
        began = time.thread_time()
        first_fit_decreasing(sizes, 22_000)
        middle = time.thread_time()
        sorted(range(OUTPUTS), key=lambda at: -sizes[at])
        packing.append(middle - began)
        sorting.append(time.thread_time() - middle)
    return statistics.median(packing), statistics.median(sorting)


def table(runs: Sequence[Distilled], packing: float, sorting: float) -> str:
    ranked = sorted(runs, key=lambda one: one.ratio)
    middle = ranked[len(runs) // 2]
    ratio = f"{middle.ratio:.2f} ({ranked[0].ratio:.2f} to {ranked[-1].ratio:.2f})"
    return f"""# MARS

Made by `python benchmarks/mars.py --write`: Python {platform.python_version()}, {platform.machine()}. One request
brings {middle.pages} pages; {len(runs)} runs, the median by ratio. A scripted endpoint in a process of its own takes
{FIRST} s, {READ * 1000:.2f} ms for each token of a prompt and {WRITTEN * 1000:.0f} ms for each of a reply.

| measure | value | goal |
|---|---|---|
| pages, tokens of all prompts | {middle.pages}, {middle.tokens:,} | |
| bins | {len(middle.bins)} | |
| slowest bin | {max(middle.bins):.2f} s | |
| all bins one after another | {sum(middle.bins):.2f} s | |
| critical path, from the last page to System 2's next turn | {middle.path:.2f} s | |
| critical path ÷ slowest bin | {ratio} | 1.20 |
| {OUTPUTS:,} outputs packed, lengths known, CPU | {packing * 1000:.0f} ms | 50 ms |
| packing ÷ sorting them | {packing / sorting:.1f} | |
"""


async def measured(base_url: str, repeat: int) -> list[Distilled]:
    return [await distilled(base_url) for _ in range(repeat)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="keep the figures in benchmarks/results/mars.md")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(Endpoint(served, delay=seconds, keep=False))
        return
    with apart(__file__, "--serve") as base_url:
        runs = asyncio.run(measured(base_url, arguments.repeat))
    told = table(runs, *packed())
    print(told)
    if arguments.write:
        RESULTS.write_text(told, encoding="utf-8")


if __name__ == "__main__":
    main()
