"""MaMs over a data set at several concurrencies, and its two chains within one run (rubrics paper, appendix F).

    python benchmarks/mams.py [--topics 16] [--delay 1] [--write]

Every topic goes through the whole workflow: documents, search, chunks, notes, report, the check of citations. The model
is a scripted endpoint in a process of its own that waits before each reply. The paper says that a concurrency of C
takes |D|/C; the ratio is the time at C over the time at 1 divided by C, in one run. Since all topics begin together and
every reply takes as long, what hira computes for C topics comes at once and is waited for: the ratio grows with the
share of computing in a run, and with what else the machine does. The control beside it takes the same calls in the same
order, with bare httpx and nothing computed, and so has what the machine adds; hira's own part is its processor time.
Within a run, the State agents' calls and the Report agents' are two chains; the ratio is the time over that of the
longer chain with the Search agent's calls.
"""

import argparse
import asyncio
import json
import platform
import re
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import httpx
from apart import apart, serve

from hira import Hira, Settings
from hira.core.policy import Completion, Request
from hira.runtime.settings import RoleSettings
from hira.testing import calling
from hira.testing.endpoint import Endpoint

HERE = Path(__file__).parent
DOCUMENTS = HERE.parent / "docs"
RESULTS = HERE / "results" / "mams.md"
WORDS = "planner coordinator memory experts workflows tools dialects journal policies rubrics training budgets".split()
AT_ONCE = (1, 2, 4, 8)
GOAL = 1.15


def search(request: Request) -> str | Completion:
    """Search once, then end."""
    text = request.messages[0].text
    if " — " in text.partition("Calls that were made")[2].partition("Report so far")[0]:
        return "<plan>- [x] look it up</plan>\nThe report is complete."
    topic = text.partition("Topic:\n")[2].partition("\n")[0]
    return calling("search", query=topic)


def state(request: Request) -> str:
    """Keep every note, and note one thing of each fragment."""
    notes, _, fragment = request.messages[0].text.partition("\nFragment;")
    source = re.search(r"^\[(s\d+)\]", fragment, re.MULTILINE)
    written = [{"text": f"Source {source[1]} was read.", "sources": [source[1]]}] if source else []
    return json.dumps({"keep": re.findall(r"^(m\d+)\. ", notes, re.MULTILINE), "memory": written})


def report(request: Request) -> str:
    sources = dict.fromkeys(re.findall(r"^\[(s\d+)\]", request.messages[0].text, re.MULTILINE))
    return "<report># Report\n\n" + "\n".join(f"- It was read [{one}]." for one in sources) + "</report>"


SCRIPT = {"search": search, "state": state, "report": report}


LONG = "Write the whole report between"
"""Stands in the prompts of the Report agent."""


def settings(base_url: str, *, chunk: int) -> Settings:
    roles = {name: RoleSettings(model=name) for name in SCRIPT}
    options = {"mams": {"chunk": chunk}}
    return Settings(
        model="state", base_url=base_url, api_key="none", roles=roles, docs=(DOCUMENTS,), journal=None,
        workflow="mams", workflows=options,
    )  # fmt: skip


def seconds_of(delay: float, times: float, request: Request) -> float:
    """How long a reply takes: a report `times` as long as all else."""
    return delay * times if LONG in request.messages[0].text else delay


async def batch(base_url: str, topics: Sequence[str], concurrency: int) -> tuple[float, float, int]:
    """Seconds for all topics, of which so many of this process's processor, and calls of models."""
    async with Hira(settings=settings(base_url, chunk=5_000)) as hira:
        await hira.open_session()
        began, worked = time.perf_counter(), time.process_time()
        answers = [answer async for answer in hira.batch(topics, concurrency=concurrency)]
        seconds, busy = time.perf_counter() - began, time.process_time() - worked
    assert all(answer.text and not answer.error for answer in answers), [answer.error for answer in answers]
    return seconds, busy, sum(answer.usage.calls for answer in answers)


async def control(base_url: str, topics: Sequence[str], concurrency: int) -> float:
    """Seconds for the same calls: a search, note and report side by side, a search."""
    gate = asyncio.Semaphore(concurrency)
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=base_url, timeout=60, limits=limits) as client:

        async def call(role: str, text: str) -> None:
            messages = [{"role": "user", "content": text}]
            (await client.post("/chat/completions", json={"model": role, "messages": messages})).raise_for_status()

        async def topic(text: str) -> None:
            async with gate:
                await call("state", text)
                await asyncio.gather(call("state", text), call("report", text))
                await call("state", text)

        await call("state", "")
        began = time.perf_counter()
        await asyncio.gather(*map(topic, topics))
        return time.perf_counter() - began


async def chains(base_url: str, delay: float) -> tuple[float, float, float, int]:
    """Seconds of one run over several chunks; of its longer chain; if all calls came one after another; chunks."""
    async with Hira(settings=settings(base_url, chunk=400)) as hira:
        await hira.open_session()
        began = time.perf_counter()
        answer = await hira.ask("rivers bridges towns tea probes railways")
        seconds = time.perf_counter() - began
    names = [name.rpartition("/")[2] for name in answer.rollout.trajectories]
    chunks = names.count("state")
    searches = names.count("search") * delay
    return seconds, searches + chunks * 2 * delay, searches + chunks * 3 * delay, chunks


async def at_all(base_url: str, topics: Sequence[str]) -> tuple[list[str], int]:
    """A row for each concurrency, and the calls of models at each."""
    lines = []
    alone = bare_alone = 0.0
    for concurrency in AT_ONCE:
        seconds, busy, calls = await batch(base_url, topics, concurrency)
        bare = await control(base_url, topics, concurrency)
        alone, bare_alone = alone or seconds, bare_alone or bare
        ratio, machine = (one * concurrency for one in (seconds / alone, bare / bare_alone))
        spent = busy / len(topics) * 1000
        lines.append(f"| {concurrency} | {seconds:.2f} | {ratio:.2f} | {machine:.2f} | {spent:.0f} ms |")
        print(lines[-1], flush=True)
    return lines, calls


async def measured(base_url: str, slow: str, topics: int, delay: float) -> str:
    """`base_url` answers alike, at `slow` a report takes twice as long."""
    asked = [f"{WORDS[at % len(WORDS)]} {WORDS[at * 3 % len(WORDS)]} {at}" for at in range(topics)]
    head = "| concurrency C | seconds | × of the time at 1, divided by C | the control's | processor time a topic |"
    rows, calls = await at_all(base_url, asked)
    seconds, longer, one_by_one, chunks = await chains(slow, delay)
    told = (
        f"One run over {chunks} chunks, reports of {2 * delay:g} s and all else of {delay:g} s: {seconds:.2f} s, "
        f"which is {seconds / longer:.2f} × its longer chain ({longer:.2f} s); one call after another it would be "
        f"{one_by_one:.2f} s."
    )
    asked_of = f"{topics} topics, {calls} calls of {delay:g} s; the goal is at most {GOAL} at every concurrency."
    return "\n".join([head, "|---" * 5 + "|", *rows, "", asked_of, "", told])


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure MaMs over a data set.")
    parser.add_argument("--topics", type=int, default=16)
    parser.add_argument("--delay", type=float, default=1.0)
    parser.add_argument("--write", action="store_true", help="write the figures to benchmarks/results/mams.md")
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(Endpoint(SCRIPT, delay=partial(seconds_of, args.delay, args.serve), keep=False))
        return
    server = (__file__, "--delay", str(args.delay), "--serve")
    with apart(*server, "1") as base_url, apart(*server, "2") as slow:
        shown = asyncio.run(measured(base_url, slow, args.topics, args.delay))
    print(shown)
    if args.write:
        made = f"`python benchmarks/mams.py --write`, Python {platform.python_version()} on {platform.system()}"
        RESULTS.write_text(f"# MaMs over a data set\n\n{made}.\n\n{shown}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
