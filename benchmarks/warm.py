"""Runs pytest again and again in a tree that changes, without the seconds that its packages take to load.

A `WarmTests` has a process that has imported the packages, and forks one for each run. Only what is installed is
loaded before: the tree's own modules are read afresh, since they are what changes.
"""

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

PACKAGES = (
    "hypothesis", "pytest", "pytest_asyncio", "pydantic", "httpx", "rich", "datasets", "sympy", "torch", "transformers",
    "peft", "accelerate", "trl",
)  # fmt: skip
PLUGINS_ARE_LOADED = "ignore::pytest.PytestAssertRewriteWarning"
TIMED_OUT = -1


class WarmTests:
    def __init__(self, tree: Path) -> None:
        environ = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", "from benchmarks.warm import main; main()"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(command, cwd=tree, env=environ, text=True, **pipes)

    def run(self, arguments: list[str], seconds: float) -> int:
        """The exit status of pytest with these arguments; -1 if it did not end in time."""
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps([arguments, seconds]), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def fork_run(arguments: list[str], seconds: float) -> int:
    child = os.fork()
    if not child:
        _run_here(arguments)
    deadline = time.monotonic() + seconds
    ended, status = os.waitpid(child, os.WNOHANG)
    while not ended and time.monotonic() < deadline:
        time.sleep(0.02)
        ended, status = os.waitpid(child, os.WNOHANG)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # and what it has started
    if not ended:
        os.waitpid(child, 0)
        return TIMED_OUT
    return os.waitstatus_to_exitcode(status)


def _run_here(arguments: list[str]) -> None:
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    status = 1
    try:
        status = int(importlib.import_module("pytest").main(["-W", PLUGINS_ARE_LOADED, *arguments]))
    finally:
        os._exit(status)


def main() -> None:
    warnings.simplefilter("ignore")
    for name in PACKAGES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        arguments, seconds = json.loads(line)
        print(fork_run(arguments, seconds), flush=True)
