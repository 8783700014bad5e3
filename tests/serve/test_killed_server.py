"""Two tabs on one run, a server that is killed under it, and one that is started again and goes on with it."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from hira.core.policy import Request
from hira.testing import Endpoint

pytestmark = pytest.mark.heavy
ANSWER = "The tower of Alta is 31 metres high."
PATIENCE = 60.0


@contextmanager
def served(folder: Path, base_url: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`hira serve` in a process of its own: where it answers, and the process."""
    command = [
        sys.executable, "-m", "hira", "serve", "--port", "0", "--model", "m", "--base-url", base_url,
        "--docs", "docs", "--journal", "journal.sqlite",
    ]  # fmt: skip
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "OPENAI_API_KEY": "k"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder, env=environ) as server:
        try:
            assert server.stderr is not None
            told = (re.search(r"page to watch runs: (http://\S+)/", line) for line in server.stderr)
            yield next(filter(None, told))[1], server
        finally:
            server.kill()


class Tab(threading.Thread):
    """Somebody who watches a run: the kinds of events, in their order, until the stream ends or breaks."""

    def __init__(self, url: str, run: str) -> None:
        super().__init__()
        self.url, self.run_id, self.seen = url, run, list[str]()
        self.start()

    def run(self) -> None:
        try:
            with httpx.stream("GET", f"{self.url}/api/runs/{self.run_id}/events", timeout=PATIENCE) as stream:
                for line in stream.iter_lines():
                    if line.startswith("data: "):
                        self.seen.append(json.loads(line.removeprefix("data: "))["event"])
        except httpx.HTTPError:
            self.seen.append("broken")

    def after(self, event: str) -> list[str]:
        """What it has seen, once that is among it."""
        deadline = time.monotonic() + PATIENCE
        while event not in self.seen:
            assert time.monotonic() < deadline, self.seen
            time.sleep(0.02)
        return list(self.seen)


def asked(endpoint: Endpoint) -> list[Any]:
    return [one.body["messages"] for one in endpoint.requests if one.path.endswith("/chat/completions")]


def test_a_run_under_which_the_server_is_killed_is_listed_and_gone_on_with_in_two_tabs(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "alta.txt").write_text(f"{ANSWER}\n", encoding="utf-8")
    replies, killed = 0, threading.Event()

    def delay(_request: Request) -> float:
        """The first reply comes at once, those after it only once the server was killed."""
        nonlocal replies
        replies += 1
        return 0.0 if replies == 1 or killed.is_set() else PATIENCE

    with Endpoint(lambda _: ANSWER, delay=delay, model="m") as endpoint:
        with served(tmp_path, endpoint.base_url) as (url, server):
            begun = httpx.post(f"{url}/api/runs", json={"question": "How high is Alta?", "workflow": "marsrl"})
            run = begun.json()["id"]
            tabs = [Tab(url, run), Tab(url, run)]
            first, second = (tab.after("TurnEnded") for tab in tabs)
            assert first[: len(second)] == second[: len(first)]
            while len(asked(endpoint)) < 2:
                time.sleep(0.02)
            server.send_signal(signal.SIGKILL)
            for tab in tabs:
                tab.join(PATIENCE)
                assert tab.seen[-1] == "broken"
        killed.set()
        with served(tmp_path, endpoint.base_url) as (url, _server):
            (listed,) = httpx.get(f"{url}/api/runs").json()["runs"]
            assert (listed["id"], listed["status"], listed["resumable"]) == (run, "interrupted", True)
            paid = asked(endpoint)[0]
            before = len(asked(endpoint))
            pressed = [httpx.post(f"{url}/api/runs/{run}/resume", json={}).status_code for _ in range(2)]
            assert pressed[0] == 201
            assert pressed[1] in (200, 201)  # it may have ended by then, and is then gone on with to the same end
            tabs = [Tab(url, run), Tab(url, run)]
            for tab in tabs:
                tab.join(PATIENCE)
                assert tab.seen[-1] == "Ended"
            assert tabs[0].seen == tabs[1].seen
            told = httpx.get(f"{url}/api/runs/{run}").json()
    assert ANSWER in told["answer"]["answer"]
    assert paid not in asked(endpoint)[before:]
