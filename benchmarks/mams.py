"""MaMs over a data set at several concurrencies, and its two chains within one run (rubrics paper, appendix F).

    python benchmarks/mams.py [--topics 16] [--delay 1] [--write]

Every topic goes through the whole workflow: documents, search, chunks, notes, report, the check of citations. The model
is a scripted endpoint over HTTP that waits before each reply. The paper says that a concurrency of C takes |D|/C; the
ratio is the time at C over the time at 1 divided by C, in one run. Within a run, the State agents' calls and the Report
agents' are two chains; the ratio is the time over that of the longer chain with the Search agent's calls.
"""

import argparse
import asyncio
import json
import platform
import re
import time
from collections.abc import Sequence
from pathlib import Path

from hira import Hira, Settings
from hira.policy import Completion, Request
from hira.settings import RoleSettings
from hira.testing import calling
from hira.testing.endpoint import Endpoint

HERE = Path(__file__).parent
DOCUMENTS = HERE / "data" / "offline" / "documents"
RESULTS = HERE / "results" / "mams.md"
WORDS = "rivers bridges towns tea probes railways peaks harbours handbooks instruments varna orlen mard budgets".split()
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


def settings(endpoint: Endpoint, *, chunk: int) -> Settings:
    roles = {name: RoleSettings(model=name) for name in SCRIPT}
    options = {"mams": {"chunk": chunk}}
    return Settings(
        model="state", base_url=endpoint.base_url, api_key="none", roles=roles, docs=(DOCUMENTS,), journal=None,
        workflow="mams", workflows=options,
    )  # fmt: skip


async def batch(topics: Sequence[str], concurrency: int, delay: float) -> tuple[float, int]:
    """Seconds for all topics, and calls of models."""
    with Endpoint(SCRIPT, delay=delay, keep=False) as endpoint:
        async with Hira(settings=settings(endpoint, chunk=5_000)) as hira:
            await hira.opened()
            began = time.perf_counter()
            answers = [answer async for answer in hira.batch(topics, concurrency=concurrency)]
            seconds = time.perf_counter() - began
    assert all(answer.text and not answer.error for answer in answers), [answer.error for answer in answers]
    return seconds, sum(answer.rollout.usage.calls for answer in answers)


async def chains(delay: float) -> tuple[float, float, float, int]:
    """Seconds of one run over several chunks; of its longer chain; if all calls came one after another; chunks."""

    def slow(request: Request) -> float:
        return 2 * delay if "Write the whole report between" in request.messages[0].text else delay

    with Endpoint(SCRIPT, delay=slow, keep=False) as endpoint:
        async with Hira(settings=settings(endpoint, chunk=400)) as hira:
            await hira.opened()
            began = time.perf_counter()
            answer = await hira.ask("rivers bridges towns tea probes railways")
            seconds = time.perf_counter() - began
    names = [name.rpartition("/")[2] for name in answer.rollout.trajectories]
    chunks = names.count("state")
    searches = names.count("search") * delay
    return seconds, searches + chunks * 2 * delay, searches + chunks * 3 * delay, chunks


async def measured(topics: int, delay: float) -> str:
    asked = [f"{WORDS[at % len(WORDS)]} {WORDS[at * 3 % len(WORDS)]} {at}" for at in range(topics)]
    lines = ["| concurrency C | seconds | × of the time at 1, divided by C |", "|---|---|---|"]
    alone = 0.0
    for concurrency in AT_ONCE:
        seconds, calls = await batch(asked, concurrency, delay)
        alone = alone or seconds
        ratio = seconds / (alone / concurrency)
        lines.append(f"| {concurrency} | {seconds:.2f} | {ratio:.2f} |")
        print(lines[-1], flush=True)
    seconds, longer, one_by_one, chunks = await chains(delay)
    told = (
        f"One run over {chunks} chunks, reports of {2 * delay:g} s and all else of {delay:g} s: {seconds:.2f} s, "
        f"which is {seconds / longer:.2f} × its longer chain ({longer:.2f} s); one call after another it would be "
        f"{one_by_one:.2f} s."
    )
    asked_of = f"{topics} topics, {calls} calls of {delay:g} s; the goal is at most {GOAL} at every concurrency."
    lines += ["", asked_of, "", told]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure MaMs over a data set.")
    parser.add_argument("--topics", type=int, default=16)
    parser.add_argument("--delay", type=float, default=1.0)
    parser.add_argument("--write", action="store_true", help="write the figures to benchmarks/results/mams.md")
    args = parser.parse_args()
    shown = asyncio.run(measured(args.topics, args.delay))
    print(shown)
    if args.write:
        made = f"`python benchmarks/mams.py --write`, Python {platform.python_version()} on {platform.system()}"
        RESULTS.write_text(f"# MaMs over a data set\n\n{made}.\n\n{shown}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
