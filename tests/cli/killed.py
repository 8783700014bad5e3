"""Shared by the tests of killed runs: a scripted model whose reply depends only on the request, and real commands."""

import json
import re
import subprocess
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from command import Command, at

from hira.core.messages import ToolCall
from hira.core.policy import Completion, Request
from hira.journal import Journal
from hira.testing.endpoint import Endpoint

QUESTION = "How long are the rivers Kama, Oka and Ufa?"
LENGTHS = {"Kama": 1805, "Oka": 1500, "Ufa": 918}
ANSWER = " ".join(f"The river {name} is {length} kilometres long." for name, length in LENGTHS.items())


def replies(at_once: int) -> object:
    """Return a model whose reply depends only on the request; it hands out `at_once` subtasks in one turn."""

    def reply(request: Request) -> Completion:
        text = "\n".join(message.text for message in request.messages)
        if request.tools:
            return _planner(request, at_once)
        shape = (request.schema or {}).get("properties", {})
        river = next(name for name in LENGTHS if f"the river {name}?" in text)
        said = f"The river {river} is {LENGTHS[river]} kilometres long"
        cited = next((f" [s{at}]" for at in range(1, 9) if f"[s{at}] {river.lower()}" in text.lower()), "")
        if "expert" in shape:
            return Completion('{"reason": "a page states it", "expert": "simple_search"}')
        return Completion(said + cited + ".")

    return reply


def _planner(request: Request, at_once: int) -> Completion:
    done = sum(message.role == "tool" for message in request.messages)
    names = list(LENGTHS)[done : done + at_once] if request.choose == "auto" else []
    if not names:
        text = "\n".join(message.text for message in request.messages)
        found = (re.search(rf"The river {name} is \d+ kilometres long \[s\d+\]\.", text) for name in LENGTHS)
        return Completion(rf"\boxed{{{' '.join(one[0] for one in found if one)}}}")
    calls = tuple(
        ToolCall(f"call_{name}", "subtask", json.dumps({"task": f"How long is the river {name}?"})) for name in names
    )
    return Completion("", calls=calls, finish="calls")


@dataclass(frozen=True)
class Place(Command):
    """A folder with documents about the rivers."""

    environ: Mapping[str, str] = field(default_factory=lambda: {"HIRA_WORKFLOW": "hira"})

    def __post_init__(self) -> None:
        self.write(
            **{name.lower(): f"The river {name} is {length} kilometres long." for name, length in LENGTHS.items()}
        )

    def ask(self, endpoint: Endpoint, parallel: int) -> "subprocess.Popen[str]":
        return self.start("ask", QUESTION, "--docs", "docs", *at(endpoint), "--parallel", str(parallel), "--quiet")

    def completed(self) -> int:
        """Return the number of model calls that the journal holds with their result."""
        if not self.journal.exists():
            return 0
        with closing(Journal(self.journal)) as journal:
            calls = journal.calls(journal.entry("last").id)
            return sum(call.kind == "policy" and call.position > 0 and call.result is not None for call in calls)


def plain(out: str) -> str:
    """Return the answer without its citations: the ids of the sources depend on which subtask reads first."""
    return re.sub(r" \[s\d+\]", "", out.partition("\n\n")[0])


def killed_and_resumed(folder: Path, parallel: int, random: Random, total: int) -> None:
    """Kill a run at a random point and resume it: it gives the same answer, repeats no completed call and leaves none
    out."""
    place = Place(folder)
    with Endpoint(replies(parallel), delay=0.02) as endpoint:  # type: ignore[arg-type]
        asked, wait = random.randint(1, total), random.uniform(0, 0.04)
        with place.ask(endpoint, parallel) as process:
            while len(endpoint.calls) < asked and process.poll() is None:
                time.sleep(0.001)
            time.sleep(wait)
            process.kill()
            process.communicate()
        while endpoint.connections:  # what was sent is read to its end
            time.sleep(0.001)
        completed, sent = place.completed(), len(endpoint.calls)
        assert sent - completed <= parallel, "more calls were lost than were in flight"
        said = place.run("resume", "last", "--quiet")
        assert (said.code, plain(said.out)) == (0, ANSWER), (asked, wait, said.err)
        assert (len(endpoint.calls) - sent, asked, wait) == (total - completed, asked, wait)
