"""Whoever cancels the task leaves no connection, no process and no half-written record; the run can go on later."""

import asyncio
import os
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hira import Hira, Settings
from hira.agents.run_context import RunContext
from hira.core.events import Event, Events, Notice, ToolStarted, TurnStarted
from hira.core.policy import Completion, Request, Watch
from hira.journal import Journal
from hira.policies.offline import OfflinePolicy
from hira.runtime.run import Run
from hira.testing import calling
from hira.testing.endpoint import Endpoint
from hira.testing.script import make_context
from hira.tools.python import refusal
from hira.workflows import WORKFLOWS, rollout

QUESTION = "When was ASEAN founded?"
ANSWER = "ASEAN was founded on 8 August 1967 [s1]."
DISTILLED = '{"reasoning": "", "conclusion": "ASEAN was founded on 8 August 1967 [s1]."}'
SUBTASK = calling("subtask", task=QUESTION)
SEARCH: list[Any] = [
    SUBTASK,
    '{"reason": "", "expert": "simple_search"}',
    '{"queries": ["ASEAN"]}',
    ANSWER,
    DISTILLED,
    ANSWER,
]
SLEEP = "import time; open('begun', 'w').close(); time.sleep(60)"
CODE: list[Any] = [SUBTASK, '{"reason": "", "expert": "code"}', calling("python", code=SLEEP)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "asean.txt").write_text("ASEAN was founded on 8 August 1967 in Bangkok.\n", encoding="utf-8")
    return tmp_path


def hira_at(endpoint: Endpoint, place: Path) -> Hira:
    settings = Settings(
        workflow="hira",
        model=endpoint.model,
        base_url=endpoint.base_url,
        docs=(place / "docs",),
        journal=place / "j.sqlite",
        workflows={"hira": {"faithful": True}},
    )
    return Hira(settings=settings)


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.01)


async def cancelled(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=10)
    assert done, "the task does not end"
    assert task.cancelled()


def rows(place: Path, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(place / "j.sqlite")
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def record(place: Path) -> tuple[list[tuple[Any, ...]], int, int]:
    """How the runs ended, how many calls are recorded whole, and how many that are not."""
    runs = rows(place, "select status from runs")
    ((whole, all_),) = rows(place, "select count(result), count(*) from calls")
    return runs, whole, all_ - whole


def children() -> set[int]:
    """All processes that descend from this one."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            _, _, rest = stat.read_text(encoding="utf-8", errors="replace").rpartition(") ")
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(rest.split()[1])
    found = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {os.getpid()}


def work_folder(run: Run) -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob(f"hira-{run.id}-*"))


def begun(run: Run) -> bool:
    """Whether the Python code is running."""
    return any(found for folder in work_folder(run) for found in folder.rglob("begun"))


@pytest.mark.parametrize("calls", [1, 2, 4, 6])
async def test_a_call_in_flight_is_dropped_with_its_connection_and_no_call_is_paid_for_twice(
    place: Path, calls: int
) -> None:
    with Endpoint(SEARCH, faults=lambda number: "silent" if number == calls else "") as endpoint:
        async with hira_at(endpoint, place) as hira:
            run = hira.stream(QUESTION)
            working = asyncio.create_task(run.work())
            await until(lambda: len(endpoint.calls) == calls and endpoint.in_flight)
            await cancelled(working)
            await until(lambda: not endpoint.in_flight)
        await until(lambda: not endpoint.connections)
        runs, whole, half = record(place)
        assert (runs, half) == ([("interrupted",)], 0)
        assert whole >= calls - 1
        async with hira_at(endpoint, place) as hira:
            again = await hira.resume(run.id)
            await again.work()
    assert again.answer.text == ANSWER
    assert len(endpoint.calls) == len(SEARCH) + 1
    assert record(place)[0] == [("answered",)]


async def left_at(run: Run, kind: type[Any]) -> None:
    async for event in run:
        if isinstance(event, kind):
            break


async def test_a_stream_that_is_left_just_before_all_is_closed_is_recorded_to_its_end(place: Path) -> None:
    with Endpoint(SEARCH, faults=lambda number: "s-stall" if number == 2 else "") as endpoint:
        for _ in range(5):
            async with hira_at(endpoint, place) as hira:
                await left_at(hira.stream(QUESTION), TurnStarted)
        await until(lambda: not endpoint.connections)
    assert record(place)[0] == [("interrupted",)] * 5


@pytest.mark.skipif(bool(refusal()), reason="nothing would hold Python code back here")
@pytest.mark.parametrize("way", ["cancel", "leave", "stop"])
async def test_a_python_call_under_way_ends_with_its_processes_and_its_folder(place: Path, way: str) -> None:
    with Endpoint([*CODE, "Nothing is known."]) as endpoint:  # the last is asked for where the run is only stopped
        async with hira_at(endpoint, place) as hira:
            run, before = hira.stream(QUESTION), children()
            running = asyncio.Event()

            async def work() -> None:
                async for event in run:
                    if isinstance(event, ToolStarted):
                        # only here: who leaves ends the code at once, and nobody else would see it
                        await until(lambda: begun(run))
                        assert children() - before
                        running.set()
                        if way == "leave":
                            return

            working = asyncio.create_task(work())
            await asyncio.wait([working, asyncio.ensure_future(running.wait())], return_when=asyncio.FIRST_COMPLETED)
            assert running.is_set()
            if way == "cancel":
                await cancelled(working)
            else:
                if way == "stop":
                    run.stop()
                await asyncio.wait_for(working, 20)
            await until(lambda: not children() - before)
            await until(lambda: not work_folder(run))  # who leaves does not wait for the end
        await until(lambda: not endpoint.connections)
    runs, _, _ = record(place)
    assert runs == [("interrupted",)]


async def test_a_cancelled_batch_leaves_nothing_and_records_every_run(place: Path) -> None:
    with Endpoint(SEARCH, faults=lambda _: "silent") as endpoint:
        async with hira_at(endpoint, place) as hira:

            async def ask() -> None:
                async for _ in hira.batch([f"{QUESTION} {at}" for at in range(40)], concurrency=16):
                    pass

            asked = asyncio.create_task(ask())
            await until(lambda: endpoint.in_flight == 16)
            await cancelled(asked)
            await until(lambda: not endpoint.in_flight)
        await until(lambda: not endpoint.connections)
    runs, whole, half = record(place)
    assert (runs, whole, half) == ([("interrupted",)] * 16, 0, 0)
    journal = Journal(place / "j.sqlite")
    for entry in journal.runs():
        assert [event["event"] for event in journal.events(entry.id)][-1] == "TurnStarted"
    journal.close()


async def test_a_run_that_is_cancelled_before_its_record_is_written_is_not_left_running(place: Path) -> None:
    path = place / "j.sqlite"
    with Endpoint([ANSWER]) as endpoint:
        settings = Settings(workflow="direct", model=endpoint.model, base_url=endpoint.base_url, journal=path)
        async with Hira(settings=settings) as hira:
            await hira.open_session()
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("begin immediate")  # another process writes
                asking = asyncio.create_task(hira.ask(QUESTION))
                await asyncio.sleep(0.3)
                asking.cancel()
                other.execute("rollback")
                await asyncio.wait([asking])
    with closing(sqlite3.connect(path)) as journal:
        assert [*journal.execute("select status from runs")] == [("interrupted",)]
    assert not endpoint.calls


async def test_a_cancel_while_the_answer_is_checked_leaves_an_interrupted_run(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    log = journal.begin("r1", settings={}, files=(), versions={})

    class CitesNothing:
        name = "cites_nothing"

        async def run(self, question: str, context: RunContext) -> str:
            return "It was in 1967 [s9]."

    def cancels(event: Event) -> None:
        if isinstance(event, Notice) and "dropped citations" in event.text:
            task = asyncio.current_task()
            assert task
            task.cancel()

    context = make_context([], log=log, events=Events(cancels))
    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(rollout(CitesNothing(), QUESTION, context))
    assert journal.entry("r1").state == "interrupted"
    journal.close()


LIBRARY = Path(__file__).parent / "data" / "library"
QUESTIONS = {"mams": "A report about the lighthouse at Skerry Point", "marsrl": "What is 17 * 23 + 4?"}
ABOUT = "When was the lighthouse at Skerry Point built, and how high is it?"


class Hanging:
    """The offline policy, which never answers from its call number `at` on."""

    model = "offline"

    def __init__(self, at: int) -> None:
        self.offline, self.at, self.asked, self.hanging = OfflinePolicy(), at, 0, 0

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        self.asked += 1
        if self.asked < self.at:
            return await self.offline.complete(request, watch)
        self.hanging += 1
        try:
            await asyncio.sleep(3600)
        finally:
            self.hanging -= 1
        raise AssertionError("unreachable")

    async def aclose(self) -> None: ...


@pytest.mark.heavy
@pytest.mark.parametrize("workflow", WORKFLOWS)
async def test_each_workflow_that_is_cancelled_in_any_of_its_calls_leaves_nothing_behind(
    workflow: str, tmp_path: Path
) -> None:
    question = QUESTIONS.get(workflow, ABOUT)
    tasks, processes = asyncio.all_tasks(), children()
    at, ends = 1, False
    while not ends and at <= 8:
        journal = tmp_path / f"{at}.sqlite"
        policy = Hanging(at)
        settings = Settings(model="offline", docs=(LIBRARY,), journal=journal, cache=None, workflow=workflow)
        async with Hira(settings=settings, policies={"*": policy}) as hira:
            run = hira.stream(question, files=[LIBRARY / "lighthouses.md"] if workflow == "multimodal" else [])
            working = asyncio.create_task(run.work())
            await until(lambda policy=policy, working=working: policy.hanging or working.done())
            ends = working.done()  # it has no call with this number
            if not ends:
                await cancelled(working)
            assert policy.hanging == 0
            assert work_folder(run) == []
            await until(lambda: asyncio.all_tasks() == tasks)
        assert children() <= processes
        with closing(Journal(journal)) as left:
            (entry,) = left.runs()
            whole = [call for call in left.calls(entry.id) if call.kind == "policy"]
            assert all(call.result is not None for call in left.calls(entry.id))
        assert (entry.state == "interrupted", len(whole) >= at - 1) == (not ends, True)
        assert sorted(one.name for one in tmp_path.iterdir() if one.name.startswith(f"{at}.")) == [journal.name]
        at += 1
    assert at > 1
