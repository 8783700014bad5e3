"""One `Hira` in threads, in forked processes and in one event loop after another."""

import asyncio
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hira import Hira, Settings, tool
from hira.core.errors import UsageError
from hira.testing import Endpoint, ScriptedPolicy, calling

QUESTION = "When was ASEAN founded?"
OFFLINE = Settings(model="offline")
BOUND = 60
"""Seconds after which a test that hangs fails."""


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "asean.txt").write_text("ASEAN was founded on 8 August 1967 in Bangkok.\n", encoding="utf-8")
    return tmp_path


async def test_a_hira_that_is_closed_ends_the_waiting_of_other_threads() -> None:
    begun = threading.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    hira = Hira(policies={"*": ScriptedPolicy([calling("wait")])}, workflow="react", tools=[wait], settings=OFFLINE)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(hira.ask_sync, "What is it?")
        assert await asyncio.to_thread(begun.wait, BOUND)
        await asyncio.to_thread(hira.close)
        with pytest.raises(UsageError, match="this Hira is closed"):
            waiting.result(BOUND)


@pytest.mark.parametrize("name", ["ask_sync", "close"])
def test_code_in_the_background_loop_cannot_wait_for_it(name: str) -> None:
    raised: list[UsageError] = []

    @tool
    async def nest() -> str:
        """Ask again."""
        with pytest.raises(UsageError, match="would wait for its own event loop") as caught:
            hira.ask_sync("And?") if name == "ask_sync" else hira.close()
        raised.append(caught.value)
        return ""

    replies, before = [calling("nest"), "Done."], set(threading.enumerate())
    hira = Hira(policies={"*": ScriptedPolicy(replies)}, workflow="react", tools=[nest], settings=OFFLINE)
    assert hira.ask_sync("What is it?").text == "Done."
    assert raised
    hira.close()
    assert not [thread for thread in set(threading.enumerate()) - before if thread.name == "hira"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_asks_in_a_loop_of_its_own(docs: Path) -> None:
    with Hira(docs=docs, settings=OFFLINE) as hira:
        assert hira.ask_sync(QUESTION).status == "answered"
        if not (child := os.fork()):
            signal.alarm(BOUND)
            try:
                answered = hira.ask_sync(QUESTION).status == "answered"
                hira.close()
                os._exit(0 if answered else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert hira.ask_sync(QUESTION).status == "answered"


def run_bare(work: Coroutine[Any, Any, object]) -> None:
    """Run a coroutine in a loop that is closed without closing its generators."""
    loop = asyncio.new_event_loop()
    loop.run_until_complete(work)
    loop.close()


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
@pytest.mark.parametrize("run", [asyncio.run, run_bare])
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_loops_that_ended_keep_no_descriptors_open(docs: Path, run: Callable[..., object]) -> None:
    def count_left(loops: int) -> int:
        """Return the open descriptors after a question in each of several loops, and the end of the endpoint."""
        with Endpoint(["ASEAN was founded on 8 August 1967 [s1]."] * loops) as endpoint:
            asked = {"base_url": endpoint.base_url, "workflow": "rag", "verify": "off", "journal": docs / "runs.sqlite"}
            hira = Hira("scripted", api_key="k", docs=docs / "asean.txt", **asked)
            for _ in range(loops):
                run(hira.ask(QUESTION))
            hira.close()
        gc.collect()
        return len([*Path("/proc/self/fd").iterdir()])

    assert count_left(1) == count_left(4)
