"""A thousand questions through HiRA's workflow while the endpoint misbehaves: what is lost, and what piles up. Then
many clients of `hira serve` over the same endpoint, some of which leave before they have their answer.

    python benchmarks/soak.py [--questions 1000] [--concurrency 64] [--share 0.1] [--clients 200] [--seconds 180]
                              [--leaving 0.3] [--write]

The endpoint runs in a process of its own and serves a random fault instead of every tenth reply: rate limits, server
faults, connections that break, replies that are cut short, empty, filtered, or no completions at all. Printed are the
endings of the questions, the calls, the wall, and this process's resident memory after a fifth and after all of them.

The clients run in a process of their own and ask, whole and as a stream in turn, until the time is over; the `leaving`
ones close their connection within two seconds. An answer or one clear error ends a question; anything else is lost, and
so is a run that the journal does not see ended. Printed are the server's memory, descriptors, threads and tasks after a
first round of all clients, and once all have gone.
"""

import argparse
import asyncio
import gc
import json
import platform
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
from apart import apart, serve, serve_app
from batch import resident

from hira import Settings
from hira.agents.experts import DeepSearch, SimpleSearch
from hira.agents.run_context import RoleConfig, RunContext
from hira.agents.trajectory import Rollout
from hira.core.policy import Request
from hira.evidence import Source
from hira.policies import open_policy
from hira.policies.limited import gate_at
from hira.server.app import application
from hira.testing import Endpoint, calling
from hira.tools import Observation, Passage, Toolbox, tool
from hira.workflows import HiRA, rollout

FAULTS = (
    "429", "429-ra-ms", "500", "502", "503", "504", "529", "408", "reset-before", "reset-headers", "half-json",
    "bad-json", "error-200", "empty-body", "null-choices", "null-content", "empty-content", "blank-content",
    "reasoning-only", "finish-filter", "tool-unknown", "tool-bad-json",
)  # fmt: skip
CLEAR = {"answered", "unverified", "partial", "failed", "insufficient_evidence"}
PAGE = "The old mill of Varn was built in 1742 by Ida Lorn, and stands by the river. " * 12
ANSWER = "The old mill of Varn was built in 1742 [s1]."
DELAY = 0.05


def reply(request: Request) -> Any:
    """What fits the prompt, whoever asks."""
    first, told = request.messages[0].text, "".join(message.text for message in request.messages[1:])
    if "names above" in first or '"expert"' in first:
        return '{"reason": "a page states it", "expert": "simple_search"}'
    if '"queries"' in first and len(request.messages) == 1:
        return '{"queries": ["mill of Varn"]}'
    if '"conclusion"' in first:
        fact = {"text": "The mill was built in 1742.", "sources": ["s1"]}
        return json.dumps({"reasoning": "Looked.", "conclusion": ANSWER, "facts": [fact]})
    if any(one["function"]["name"] == "subtask" for one in request.tools) and "1742" not in told:
        return calling("subtask", task="Find out when the mill of Varn was built")
    return ANSWER


def faults(share: float) -> Callable[[int], str]:
    chance = random.Random(7)
    return lambda _: chance.choice(FAULTS) if chance.random() < share else ""


@tool(pure=True)
async def search(query: str) -> Observation:
    "Search."
    return Observation(passages=(Passage(Source("mills.txt", "Mills", PAGE), f"{query}: {PAGE}"),))


async def soak(base_url: str, questions: int, concurrency: int) -> tuple[Counter[str], Counter[str], dict[str, float]]:
    """Endings by status, what ended those that were not answered, and the figures."""
    policy = open_policy("m", base_url=base_url, api_key="k")
    workflow = HiRA(experts=(SimpleSearch(), DeepSearch()))
    endings: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    memory: dict[int, float] = {}
    calls = 0

    async def ask(number: int) -> Rollout:
        return await rollout(
            workflow,
            f"When was the mill of Varn built ({number})?",
            RunContext({"*": RoleConfig(policy)}, tools=Toolbox(search=search)),
        )

    async def worker(numbers: Iterator[int]) -> None:
        nonlocal calls
        for number in numbers:
            record = await ask(number)
            endings[record.status if record.answer or record.error else "lost"] += 1
            if record.status != "answered":
                reasons[record.error.splitlines()[0][:70] if record.error else "no evidence"] += 1
            calls += record.usage.calls
            done = endings.total()
            if done in (questions // 5, questions):
                gc.collect()
                memory[done] = resident()

    numbers = iter(range(questions))
    began = time.perf_counter()
    await asyncio.gather(*(worker(numbers) for _ in range(concurrency)))
    wall = time.perf_counter() - began
    gate = gate_at(base_url)
    await policy.aclose()
    assert gate.flying == 0, "calls are still under way"
    assert len(asyncio.all_tasks()) == 1, "tasks are left"
    figures = {"wall": wall, "calls": calls, "early": memory[questions // 5], "late": memory[questions]}
    return endings, reasons, figures


def page(questions: int, concurrency: int, share: float) -> str:
    with apart(__file__, "--serve", "--share", str(share)) as base_url:
        endings, reasons, figures = asyncio.run(soak(base_url, questions, concurrency))
    lost = questions - sum(endings[status] for status in CLEAR)
    ended = "".join(f"| … {status} | {number} |\n" for status, number in endings.most_common())
    why = "".join(f"| {number} | {reason} |\n" for reason, number in reasons.most_common())
    return f"""# Soak

Made by `python benchmarks/soak.py --write`: Python {platform.python_version()}, {platform.machine()}. HiRA's workflow,
{concurrency} questions at once, {DELAY * 1000:g} ms a reply, a fault in place of {share:.0%} of the replies, the
endpoint in a process of its own. One run on a shared machine.

| | |
|---|---|
| questions | {questions} |
{ended}| lost | {lost} |
| model calls that were answered | {figures["calls"]:,.0f} |
| wall | {figures["wall"]:.1f} s |
| resident memory after {questions // 5} questions | {figures["early"]:.1f} MB |
| resident memory after {questions} questions | {figures["late"]:.1f} MB |

What ended the questions that were not answered:

| questions | why |
|---|---|
{why}"""


def page_of_server(clients: int, seconds: float, share: float, leaving: float) -> str:
    with apart(__file__, "--serve", "--share", str(share)) as base_url:
        rows = asyncio.run(soak_server(base_url, clients, seconds, leaving))
    return f"""
## Clients that leave

{clients} clients of `hira serve` for {seconds:g} seconds over the same endpoint; {leaving:.0%} of their questions are
left by their client within two seconds. "Before" is after a first round of 20 seconds, which counts too, "after" is
once all runs have ended. Who leaves while a question still waits for its turn leaves no run.

{rows}"""


def resources() -> dict[str, int]:
    """What this process holds."""
    gc.collect()
    return {
        "resident memory, MB": int(resident()),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "threads": threading.active_count(),
        "tasks": len(asyncio.all_tasks()),
    }


async def soak_server(base_url: str, clients: int, seconds: float, leaving: float) -> str:
    """Serve the clients, and return the figures as rows of a table."""
    with tempfile.TemporaryDirectory() as folder:
        docs, journal = Path(folder, "docs"), Path(folder, "journal.sqlite")
        docs.mkdir()
        (docs / "mills.txt").write_text(PAGE)
        settings = Settings(model="m", base_url=base_url, api_key="k", docs=(docs,), journal=journal)
        async with (
            application(settings) as app,
            serve_app(app, log_level="error", timeout_graceful_shutdown=5) as (host, port),
        ):
            address = f"http://{host}:{port}"
            first = await ask_apart(address, clients, 20, leaving)
            await until_idle(journal)
            before = resources()
            told = await ask_apart(address, clients, seconds, leaving)
            await until_idle(journal)
            after = resources()
        ended = count_endings(journal)
    rows = [
        *((name, first[name] + number) for name, number in told.items()),
        *((f"runs in the journal: {status}", number) for status, number in ended.most_common()),
    ]
    held = "".join(f"| {name} | {before[name]} | {after[name]} |\n" for name in before)
    counted = "".join(f"| {name} | {number} |\n" for name, number in rows)
    return f"| | |\n|---|---|\n{counted}\n| the server holds | before | after |\n|---|---|---|\n{held}"


def count_endings(journal: Path) -> Counter[str]:
    with closing(sqlite3.connect(journal)) as database:
        return Counter(status for (status,) in database.execute("select status from runs"))


async def until_idle(journal: Path) -> None:
    """Wait until no run is under way; runs that never end are counted as `running` afterwards."""
    until = time.monotonic() + 60
    while count_endings(journal)["running"] and time.monotonic() < until:
        await asyncio.sleep(0.5)


async def ask_apart(address: str, clients: int, seconds: float, leaving: float) -> dict[str, int]:
    command = [__file__, "--ask", address, "--clients", str(clients), "--seconds", str(seconds)]
    command += ["--leaving", str(leaving)]
    asking = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=subprocess.PIPE)
    output, _ = await asking.communicate()
    told: dict[str, int] = json.loads(output)
    return told


async def ask(address: str, clients: int, seconds: float, leaving: float) -> Counter[str]:
    """Ask as all clients until the time is over, and count how the questions ended."""
    endings: Counter[str] = Counter(dict.fromkeys(("answered", "a clear error", "left by their client", "lost"), 0))
    until = time.monotonic() + seconds

    async def client(number: int) -> None:
        chance = random.Random(number)
        async with httpx.AsyncClient(base_url=address, timeout=120) as http:
            while time.monotonic() < until:
                content = f"When was the mill of Varn built ({number}, {chance.random()})?"
                body = {
                    "model": "hira",
                    "messages": [{"role": "user", "content": content}],
                    "stream": chance.random() < 0.5,
                }
                patience = chance.uniform(0.05, 2) if chance.random() < leaving else None
                try:
                    async with asyncio.timeout(patience):
                        reply = await http.post("/v1/chat/completions", json=body)
                except TimeoutError:
                    endings["left by their client"] += 1
                    continue
                except httpx.HTTPError:
                    endings["lost"] += 1
                    continue
                endings[ending_of(reply)] += 1

    await asyncio.gather(*map(client, range(clients)))
    return endings


def ending_of(reply: httpx.Response) -> str:
    if reply.status_code != 200:
        return "a clear error" if "error" in reply.json() else "lost"
    if reply.headers["content-type"].startswith("text/event-stream"):
        if 'data: {"error"' in reply.text:
            return "a clear error"
        return "answered" if reply.text.rstrip().endswith("data: [DONE]") else "lost"
    return "answered" if reply.json()["choices"][0]["message"]["content"] else "lost"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--share", type=float, default=0.1, help="of the replies that are faults")
    parser.add_argument("--write", action="store_true", help="write results/soak.md too")
    parser.add_argument("--clients", type=int, default=200, help="of hira serve, at once")
    parser.add_argument("--seconds", type=float, default=180, help="for which the clients ask")
    parser.add_argument("--leaving", type=float, default=0.3, help="of the questions are left by their client")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--ask", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.ask:
        print(json.dumps(asyncio.run(ask(chosen.ask, chosen.clients, chosen.seconds, chosen.leaving))))
        return
    if chosen.serve:
        serve(Endpoint(reply, faults=faults(chosen.share), delay=DELAY, keep=False))
        return
    made = page(chosen.questions, chosen.concurrency, chosen.share) if chosen.questions else ""
    if chosen.clients:
        made += page_of_server(chosen.clients, chosen.seconds, chosen.share, chosen.leaving)
    print(made)
    if chosen.write:
        Path(__file__).with_name("results").joinpath("soak.md").write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
