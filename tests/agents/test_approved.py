"""A person decides on subtasks before they are handed out: in every workflow that hands any out, once, on record."""

import asyncio
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hira import Hira
from hira.agents.expert import Account, Task
from hira.agents.run_context import Approve, RunContext
from hira.agents.trajectory import Rejected, Subtask
from hira.core.budget import Budget
from hira.core.errors import Interrupted, UsageError
from hira.core.events import ApprovalAwaited, Event, SubtaskApproved, SubtaskDone, SubtaskRejected
from hira.journal import Journal
from hira.runtime.replay import replay
from hira.runtime.settings import Settings
from hira.testing import ScriptedPolicy
from hira.testing.script import make_context
from hira.workflows import WORKFLOWS, HiRA, rollout


class Desk:
    """An expert that keeps what it was given."""

    name, description, ability, cost = "desk", "looks a fact up", "search", 1
    needs: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.tasks: list[str] = []

    async def work(self, task: Task, context: RunContext) -> Account:
        self.tasks.append(task.text)
        return Account(f"{task.text}: 31 metres", f"{task.text}: 31 metres")


class Person:
    """Decides by what stands in the task, and keeps what it was asked."""

    def __init__(self, **decide: Any) -> None:
        self.decide, self.asked = decide, []

    async def __call__(self, subtasks: Sequence[Subtask]) -> Sequence[Subtask | Rejected]:
        self.asked.append([one.text for one in subtasks])
        return [self._one(subtask) for subtask in subtasks]

    def _one(self, subtask: Subtask) -> Subtask | Rejected:
        made = next((made for word, made in self.decide.items() if word in subtask.text), None)
        return made(subtask) if made else subtask


def reject(subtask: Subtask) -> Rejected:
    return Rejected(subtask, "we know it already")


def call(task: str) -> str:
    return f"<|begin_call_subtask|>{task}<|end_call_subtask|>"


def of(planner: list[Any], approve: Approve | None, desk: Desk, **context: Any) -> tuple[HiRA, RunContext, list[Event]]:
    policy = ScriptedPolicy(
        {"planner": planner, "coordinator": lambda _: '{"reasoning": "", "conclusion": "31 metres"}'}
    )
    made, heard = make_context(policy, approve=approve, **context), []
    made.events.readers.append(heard.append)
    return HiRA(experts=(desk,), parallel=2), made, heard


async def test_a_subtask_is_handed_out_only_as_the_person_lets_it() -> None:
    desk = Desk()
    person = Person(mill=reject, tower=lambda one: replace(one, text="Height of the tower in feet"))
    planner = [
        calls("Height of the tower", "Height of the mill"),
        call("Height of the bridge"),
        r"\boxed{It is 31 metres.}",
    ]
    workflow, context, heard = of(planner, person, desk)
    record = await rollout(workflow, "How high?", context)
    assert record.answer == "It is 31 metres."
    read = record.trajectories["planner"].turns[1].request.messages[-1].text
    assert "changed this subtask. It was delegated as: Height of the tower in feet" in read
    assert "rejected it. Reason: we know it already" in read
    assert [one.expert for one in heard if isinstance(one, SubtaskDone)] == ["desk", "person", "desk"]
    assert [finding.ok for finding in record.findings] == [True, False, True]
    assert desk.tasks == ["Height of the tower in feet", "Height of the bridge"]
    assert person.asked == [["Height of the tower", "Height of the mill"], ["Height of the bridge"]]
    told = [type(one).__name__ for one in heard if isinstance(one, ApprovalAwaited | SubtaskApproved | SubtaskRejected)]
    assert told == ["ApprovalAwaited", "SubtaskApproved", "SubtaskRejected", "ApprovalAwaited", "SubtaskApproved"]
    assert [one.changed for one in heard if isinstance(one, SubtaskApproved)] == [True, False]


def calls(*tasks: str) -> str:
    return "".join(map(call, tasks))


async def test_a_rejected_subtask_may_be_issued_again() -> None:
    desk, asked = Desk(), list[Subtask]()

    def first_rejects(subtasks: Sequence[Subtask]) -> Sequence[Subtask | Rejected]:
        asked.extend(subtasks)
        return subtasks if len(asked) > 1 else [reject(subtasks[0])]

    workflow, context, _ = of(
        [call("Height of the tower"), call("Height of the tower"), r"\boxed{31}"], first_rejects, desk
    )
    await rollout(workflow, "How high?", context)
    assert desk.tasks == ["Height of the tower"]


async def test_while_the_run_waits_it_can_be_stopped_and_answers_from_what_is_known() -> None:
    async def never(_: Sequence[Subtask]) -> Sequence[Subtask]:
        asyncio.get_running_loop().call_soon(context.stop, Interrupted("enough"))
        await asyncio.sleep(60)
        return []

    desk = Desk()
    workflow, context, _ = of([call("Height of the tower"), r"\boxed{Nothing is known yet.}"], never, desk)
    record = await rollout(workflow, "How high?", context)
    assert (record.status, record.answer) == ("interrupted", "Nothing is known yet.")
    assert not desk.tasks


async def test_the_time_a_person_takes_counts_in_no_budget() -> None:
    async def slow(subtasks: Sequence[Subtask]) -> Sequence[Subtask]:
        await asyncio.sleep(1.5)
        return subtasks

    workflow, context, _ = of([call("Height of the tower"), r"\boxed{31}"], slow, Desk(), budget=Budget(seconds=1.6))
    began = time.monotonic()
    record = await rollout(workflow, "How high?", context)
    assert time.monotonic() - began > 1.44  # all that it may use before its answer
    assert (record.status, record.failure) == ("unverified", None)


@pytest.mark.parametrize(
    "returned",
    [lambda _: [], lambda one: [*one, *one], lambda _: ["yes"], lambda one: [replace(one[0], text="  ")]],
    ids=["nothing", "too many", "no decision", "an empty text"],
)
async def test_an_approver_that_returns_something_else_is_told_what_to_return(returned: Any) -> None:
    async def wrong(subtasks: Sequence[Subtask]) -> Any:
        return returned(subtasks)

    workflow, context, _ = of([call("Height of the tower")], wrong, Desk())
    record = await rollout(workflow, "How high?", context)
    assert isinstance(record.failure, UsageError)
    assert "return one for each" in record.failure.fix


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "towers.txt").write_text(
        "The builder of the tower of Alta was Edda Brand.\n\nEdda Brand studied in Lund.\n", encoding="utf-8"
    )
    return Settings(model="offline", docs=(tmp_path / "towers.txt",), journal=tmp_path / "journal.sqlite")


QUESTION = "Where did the builder of the tower of Alta study?"


@pytest.mark.parametrize(
    "workflow", sorted(name for name, make in WORKFLOWS.items() if getattr(make, "approves", False))
)
async def test_every_workflow_asks_about_its_subtasks_and_hands_out_no_rejected_one(
    workflow: str, settings: Settings
) -> None:
    person = Person(**{"": reject})
    async with Hira(settings=settings, workflow=workflow, approve=person) as hira:
        answer = await hira.ask(QUESTION)
    assert person.asked
    assert all(subtask for asked in person.asked for subtask in asked)
    assert not answer.sources
    assert {finding.expert for finding in answer.rollout.findings} == {"person"}


async def test_a_workflow_that_hands_out_no_subtasks_says_so(settings: Settings) -> None:
    with pytest.raises(UsageError, match="has no subtasks to approve"):
        await Hira(settings=settings, workflow="rag", approve=Person()).ask(QUESTION)


async def test_a_run_that_goes_on_asks_only_about_what_was_not_decided(settings: Settings) -> None:
    waiting = asyncio.Event()

    async def first(subtasks: Sequence[Subtask]) -> Sequence[Subtask]:
        if waited:
            waiting.set()
            await asyncio.sleep(60)
        waited.append([one.text for one in subtasks])
        return subtasks

    waited: list[list[str]] = []
    questions = "Who was the builder of the tower of Alta? Where did Edda Brand study?"
    async with Hira(settings=settings, approve=first) as hira:
        run = hira.stream(questions)
        task = asyncio.create_task(run.work())
        await asyncio.wait_for(waiting.wait(), 30)
        task.cancel()  # its process has gone while the second subtask waited
        with pytest.raises(asyncio.CancelledError):
            await task
    second = Person()
    async with Hira(settings=settings) as hira:
        with pytest.raises(UsageError, match="approval"):
            await hira.resume(run.id)
    async with Hira(settings=settings, approve=second) as hira:
        resumed = await hira.resume(run.id)
        await resumed.work()
    assert "Lund" in resumed.answer.text
    whole = Person()
    async with Hira(settings=settings.with_values({"journal": None}, "test"), approve=whole) as hira:
        await hira.ask(questions)
    assert [*waited, *second.asked] == whole.asked
    assert (len(waited), len(second.asked)) == (1, 1)


@pytest.mark.parametrize("earlier", [False, True], ids=["as now", "as 0.2 wrote it"])
async def test_a_replay_asks_nobody_and_takes_the_decisions_of_the_record(settings: Settings, *, earlier: bool) -> None:
    person = Person(
        builder=lambda one: replace(one, text="Who was the builder of the tower of Alta?"), studied=reject, study=reject
    )
    async with Hira(settings=settings, approve=person) as hira:
        answer = await hira.ask(QUESTION)
    assert settings.journal
    if earlier:
        with closing(sqlite3.connect(settings.journal)) as file, file:
            old = '"decisions":[{"id":"2","text":"a task","expert":"","rejected":'
            file.execute(
                'update calls set result = replace(cast(result as text), \'"decisions":[{"refused":\', ?)', (old,)
            )
            assert file.execute("select count(*) from calls where result like '%rejected%'").fetchone() > (0,)
    journal = Journal(settings.journal)
    again = await replay(journal, answer.rollout.run)
    journal.close()
    assert again.same
    assert [one.subtask.text for one in again.answer.rollout.findings] == [
        one.subtask.text for one in answer.rollout.findings
    ]
    assert [one.ok for one in again.answer.rollout.findings] == [one.ok for one in answer.rollout.findings]


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(UsageError, match="`approve` must be a function"):
        Hira("offline", approve="yes")  # type: ignore[arg-type]
