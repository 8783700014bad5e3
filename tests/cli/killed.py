"""What the tests of killed runs share: a scripted model whose reply hangs on the request alone, and real commands."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Self

from hira.core.messages import ToolCall
from hira.core.policy import Completion, Request
from hira.journal import Journal
from hira.testing.endpoint import Endpoint

QUESTION = "How long are the rivers Kama, Oka and Ufa?"
LENGTHS = {"Kama": 1805, "Oka": 1500, "Ufa": 918}
ANSWER = " ".join(f"The river {name} is {length} kilometres long." for name, length in LENGTHS.items())


def replies(at_once: int) -> object:
    """A model that knows what to say by the request alone; `at_once` subtasks stand in one turn."""

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


FORKING = """
import json, os, sys
import hira.api, hira.cli.ask, hira.cli.resume, hira.policies.openai, hira.workflows.hira
from hira.cli import main
for line in sys.stdin:
    told = json.loads(line)
    if child := os.fork():
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    os.chdir(told["folder"])
    os.environ.clear()
    os.environ.update(told["environ"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdin = open(0)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(told[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    code = main(told["argv"])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
"""


class Forks:
    """Starts commands, one after the other, as processes of their own that have loaded hira already: loading it is most
    of what a short command takes."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", FORKING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.kill()
        self._process.communicate()

    def start(self, argv: Sequence[str], folder: Path, environ: Mapping[str, str]) -> "Forked":
        told = {name: str(folder / f"command.{name}") for name in ("out", "err")}
        line = json.dumps({"argv": argv, "folder": str(folder), "environ": dict(environ), **told})
        assert self._process.stdin
        self._process.stdin.write(line.encode() + b"\n")
        return Forked(self.said(), self, Path(told["out"]), Path(told["err"]))

    def said(self) -> int:
        """The next number that the process tells: of the command it has started, or the code with which that ended."""
        assert self._process.stdout
        return int(self._process.stdout.readline())

    def ended(self) -> bool:
        """Whether the command that is under way has ended."""
        return bool(select.select([self._process.stdout], [], [], 0)[0])


@dataclass
class Forked:
    """One command under way, as `subprocess.Popen` shows one."""

    pid: int
    forks: Forks
    out: Path
    err: Path
    returncode: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()
        self.communicate()

    def poll(self) -> int | None:
        if self.returncode is None and self.forks.ended():
            self.returncode = self.forks.said()
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def communicate(self, timeout: float = 60) -> tuple[str, str]:
        until = time.monotonic() + timeout
        while self.poll() is None:
            assert time.monotonic() < until, f"it goes on for {timeout} s"
            time.sleep(0.001)
        return self.out.read_text(encoding="utf-8"), self.err.read_text(encoding="utf-8")


@dataclass(frozen=True)
class Place:
    folder: Path
    forks: Forks | None = None

    def __post_init__(self) -> None:
        (self.folder / "docs").mkdir(parents=True)
        for name, length in LENGTHS.items():
            text = f"The river {name} is {length} kilometres long.\n"
            (self.folder / "docs" / f"{name.lower()}.txt").write_text(text, encoding="utf-8")

    def start(self, *argv: str) -> "subprocess.Popen[str] | Forked":
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HIRA_", "OPENAI_", "XDG_"))}
        if self.forks:
            return self.forks.start(argv, self.folder, {**kept, "HOME": str(self.folder / "home")})
        return subprocess.Popen(
            [sys.executable, "-m", "hira", *argv],
            cwd=self.folder,
            env={**kept, "HOME": str(self.folder / "home")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def ask(self, endpoint: Endpoint, parallel: int) -> "subprocess.Popen[str] | Forked":
        where = ("--docs", "docs", "--model", endpoint.model, "--base-url", endpoint.base_url)
        return self.start("ask", QUESTION, *where, "--parallel", str(parallel), "--quiet")

    def resume(self) -> tuple[int, str, str]:
        with self.start("resume", "last", "--quiet") as process:
            out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def completed(self) -> int:
        """How many model calls stand in the journal with their result."""
        path = self.folder / "home" / ".local" / "state" / "hira" / "journal.sqlite"
        if not path.exists():
            return 0
        journal = Journal(path)
        try:
            return sum(
                call.kind == "policy" and call.result is not None for call in journal.calls(journal.entry("last").id)
            )
        finally:
            journal.close()


def plain(out: str) -> str:
    """The answer without its citations: which id a source has hangs on which subtask reads first."""
    return re.sub(r" \[s\d+\]", "", out.partition("\n\n")[0])


def killed_and_resumed(folder: Path, parallel: int, random: Random, total: int, forks: Forks | None = None) -> None:
    """Kill a run at a random point, resume it: the same answer, no completed call again, and none left out."""
    place = Place(folder, forks)
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
        code, out, err = place.resume()
        assert (code, plain(out)) == (0, ANSWER), (asked, wait, err)
        assert (len(endpoint.calls) - sent, asked, wait) == (total - completed, asked, wait)
