"""One `Hira` in threads, in forked processes and in one event loop after another."""

import asyncio
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from hira import Hira, Settings, Tool, tool
from hira.core.errors import UsageError
from hira.journal import Journal
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


def make_waiting(begun: asyncio.Event, ends: threading.Event | None = None) -> Tool:
    """A tool that waits until it is cancelled, or, whatever happens, until `ends` is set."""

    @tool
    async def wait() -> str:
        """Wait."""
        begun.set()
        if ends is None:
            await asyncio.Event().wait()
        while ends and not ends.is_set():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.1)
        return ""

    return wait


@pytest.mark.parametrize("asked", ["ask", "stream", "batch"])
async def test_aclose_ends_the_questions_in_progress_and_records_their_end(asked: str, tmp_path: Path) -> None:
    async def ask() -> object:
        if asked == "ask":
            return await hira.ask("What is it?")
        if asked == "batch":
            return [answer async for answer in hira.batch(["What is it?"])]
        return [event async for event in hira.stream("What is it?")]

    begun, journal = asyncio.Event(), tmp_path / "runs.sqlite"
    hira = Hira(
        policies={"*": ScriptedPolicy([calling("wait")])},
        workflow="react",
        tools=[make_waiting(begun)],
        settings=OFFLINE,
        journal=journal,
    )
    asking = asyncio.create_task(ask())
    await asyncio.wait_for(begun.wait(), BOUND)
    await hira.aclose()
    with closing(Journal(journal)) as record:
        (entry,) = record.runs()
        assert entry.state == "interrupted"
    with pytest.raises(UsageError, match="this Hira is closed"):
        await asyncio.wait_for(asking, BOUND)
    assert not asking.cancelling()


async def test_a_question_that_waits_for_the_session_of_a_hira_that_is_closed_is_not_asked(docs: Path) -> None:
    hira = Hira(docs=docs, settings=OFFLINE)
    asking = asyncio.create_task(hira.ask(QUESTION))
    await asyncio.sleep(0)
    await hira.aclose()
    with pytest.raises(UsageError, match="this Hira is closed"):
        await asyncio.wait_for(asking, BOUND)


@pytest.mark.heavy
@pytest.mark.parametrize("way", ["aclose", "close"])
async def test_a_tool_that_ignores_its_cancellation_delays_the_end_by_a_few_seconds(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    begun, ends = asyncio.Event(), threading.Event()
    policies = {"*": ScriptedPolicy([calling("wait")])}
    tools = [make_waiting(begun, ends)]
    hira = Hira(policies=policies, workflow="react", tools=tools, settings=OFFLINE)
    asking = asyncio.create_task(
        hira.ask("What is it?") if way == "aclose" else asyncio.to_thread(hira.ask_sync, "What is it?")
    )
    while not begun.is_set():
        await asyncio.sleep(0.01)
    before = time.monotonic()
    try:
        await (hira.aclose() if way == "aclose" else asyncio.to_thread(hira.close))
    finally:
        ends.set()
    assert 9 < time.monotonic() - before < 15
    (warning,) = [record.getMessage() for record in caplog.records if record.name == "hira"]
    assert "closed, though this has not ended" in warning
    assert "'wait'" in warning
    if way == "close":
        with pytest.raises(UsageError, match="this Hira is closed"):
            await asyncio.wait_for(asking, BOUND)
    else:
        await asyncio.wait([asking], timeout=BOUND)
        assert asking.done()


@pytest.mark.heavy
def test_close_after_an_interrupt_does_not_wait_for_a_tool_that_ignores_its_cancellation() -> None:
    begun, ends = asyncio.Event(), threading.Event()

    def interrupt(*_: object) -> None:
        if begun.is_set():
            raise KeyboardInterrupt
        signal.setitimer(signal.ITIMER_REAL, 0.1)

    policies = {"*": ScriptedPolicy([calling("wait")])}
    hira = Hira(policies=policies, workflow="react", tools=[make_waiting(begun, ends)], settings=OFFLINE)
    before, late = signal.signal(signal.SIGALRM, interrupt), threading.Timer(BOUND, ends.set)
    late.start()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            hira.ask_sync("What is it?")
        hira.close()
        assert not ends.is_set()
    finally:
        signal.signal(signal.SIGALRM, before)
        late.cancel()
        ends.set()


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
