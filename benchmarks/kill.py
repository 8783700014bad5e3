"""A batch that is killed (kill -9) at random moments and resumed: nothing that was recorded is lost or paid for again.

    python benchmarks/kill.py [--rounds 200] [--seed N] [--write]

Each round asks twelve questions of four model calls, six at a time, through `Hira.batch` with the journal, in a process
that is killed at a random moment; another process resumes the batch to its end. The endpoint, in a process of its own,
notes every request. A round fails if a recorded call is requested again, if more calls were lost than were in flight,
or if an answer is not the one of an undisturbed run. The seed is printed; POSIX only.
"""

import argparse
import asyncio
import os
import random
import re
import secrets
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from apart import apart, serve

from hira import Hira, tool
from hira.core.policy import Completion, Request
from hira.journal import Journal
from hira.runtime.batch import Question
from hira.testing import Endpoint
from hira.testing.endpoint import turns

RESULTS = Path(__file__).with_name("results") / "kill.md"
QUESTIONS, AT_ONCE, TURNS = 12, 6, 3
CALLS = QUESTIONS * (TURNS + 1)
ANSWER = "The answer is 42."
RUN = "run-{}"


@tool
async def lookup(query: str) -> str:
    "Look something up."
    return f"For {query}, the answer is 42."


def key_of(request: Request) -> str:
    """Names a call of the batch: its question and its turn."""
    question = next(found[0] for message in request.messages if (found := re.search(r"Question \d+", message.text)))
    return f"{question} turn {sum(message.role == 'tool' for message in request.messages)}"


def serve_noting(notes: Path) -> None:
    reply = turns(TURNS)

    def script(request: Request) -> Completion:
        with notes.open("a", encoding="utf-8") as file:
            file.write(key_of(request) + "\n")
        ours = [one for one in request.tools if one["function"]["name"] == "lookup"]
        return reply(replace(request, tools=tuple(ours)))

    serve(Endpoint(script, delay=lambda _: random.uniform(0.001, 0.01), keep=False))


async def ask_all(folder: Path, base_url: str) -> None:
    """Ask the batch, or resume it, and write its answers."""
    asked = [Question(f"Question {at}?", run=RUN.format(at), begin_as=RUN.format(at)) for at in range(QUESTIONS)]
    where = {"base_url": base_url, "api_key": "k", "journal": folder / "journal.sqlite"}
    async with Hira("m", **where, workflow="react", tools=[lookup]) as hira:
        answers = [answer.text async for answer in hira.batch(asked, concurrency=AT_ONCE)]
    (folder / "answers").write_text("\n".join(answers), encoding="utf-8")


def start(folder: Path, base_url: str) -> int:
    """The batch in a process of its own, which has loaded hira already."""
    if child := os.fork():
        return child
    status = 1
    try:
        asyncio.run(ask_all(folder, base_url))
        status = 0
    finally:
        os._exit(status)


def recorded(folder: Path) -> set[str]:
    """The calls of the batch that the journal holds with their results."""
    journal = Journal(folder / "journal.sqlite")
    try:
        calls = [
            (run.question, call) for run in journal.runs(QUESTIONS) for call in journal.calls(run.id) if call.result
        ]
        return {f"{question[:-1]} turn {call.position - 1}" for question, call in calls if call.kind == "policy"}
    finally:
        journal.close()


@dataclass(frozen=True)
class Round:
    """Calls: recorded when the process was killed, and answered by the endpoint but not recorded."""

    recorded: int
    lost: int


def take_undisturbed(folder: Path, base_url: str) -> float:
    """Seconds that the batch takes here, in this process. The processes to come have then loaded what it needs."""
    folder.mkdir()
    began = time.perf_counter()
    asyncio.run(ask_all(folder, base_url))
    return time.perf_counter() - began


def kill_once(folder: Path, base_url: str, notes: Path, seconds: float) -> Round:
    notes.write_text("", encoding="utf-8")
    child = start(folder, base_url)
    while not notes.stat().st_size:
        time.sleep(0.0005)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    time.sleep(0.03)  # what was requested is noted by then
    requested = Counter(notes.read_text(encoding="utf-8").split("\n")[:-1])
    held = recorded(folder)
    assert max(requested.values(), default=0) <= 1, f"requested twice before the kill: {requested.most_common(3)}"
    lost = len(requested) - len(held)
    assert 0 <= lost <= AT_ONCE, f"{len(requested)} calls were made and {len(held)} recorded"
    notes.write_text("", encoding="utf-8")
    assert os.waitstatus_to_exitcode(os.waitpid(start(folder, base_url), 0)[1]) == 0
    again = Counter(notes.read_text(encoding="utf-8").split("\n")[:-1])
    assert not held & again.keys(), f"paid for again: {sorted(held & again.keys())}"
    assert (sum(again.values()), len(again)) == (CALLS - len(held),) * 2, "each other call is made once"
    assert (folder / "answers").read_text(encoding="utf-8") == "\n".join([ANSWER] * QUESTIONS)
    return Round(len(held), lost)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--write", action="store_true", help="keep the figures in benchmarks/results/kill.md")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        serve_noting(chosen.serve)
        return
    seed = secrets.randbelow(2**32) if chosen.seed is None else chosen.seed
    print(f"seed {seed}", flush=True)
    draw, rounds = random.Random(seed), []
    with tempfile.TemporaryDirectory() as work:
        notes = Path(work) / "notes"
        os.environ.update(HOME=work)
        os.chdir(work)
        with apart(str(Path(__file__).resolve()), "--serve", str(notes)) as base_url:
            whole = [take_undisturbed(Path(work) / name, base_url) for name in ("first", "second")][1]
            for at in range(chosen.rounds):
                folder = Path(work) / str(at)
                folder.mkdir()
                try:
                    rounds.append(kill_once(folder, base_url, notes, draw.uniform(0, whole / 2)))
                except AssertionError as wrong:
                    sys.exit(f"round {at + 1} of seed {seed}: {wrong}")
    within = sum(0 < one.recorded < CALLS for one in rounds)
    told = f"""{len(rounds)} rounds, {within} of them killed between the first recorded call and the last. Of the
{sum(one.recorded for one in rounds)} calls that were recorded by then, 0 were lost and 0 were paid for again;
{sum(one.lost for one in rounds)} calls were in flight, at most {max(one.lost for one in rounds)} in a round."""
    print(told)
    if chosen.write:
        made = f"Made by `python benchmarks/kill.py --write`, seed {seed}."
        RESULTS.write_text(f"# A batch killed at random moments\n\n{made}\n\n{told}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
