"""Code of the program's own that exits, or is cancelled from within, fails alone: neither the run nor the process."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hira import Answer, Hira, HiraError, Hooks, Settings, expert, tool
from hira.agents.expert import Task
from hira.agents.run_context import RunContext
from hira.core.errors import HookError
from hira.core.hooks import ToolUse
from hira.core.messages import Filled, user
from hira.core.policy import Completion, Usage
from hira.evidence import SourcedClaim
from hira.journal import Journal
from hira.testing import ScriptedPolicy, calling

QUESTION = "How high is the tower?"
OFFLINE = Settings(model="offline")
EXIT = "it raised SystemExit: 2"


def exit_now(*_: object) -> Any:
    raise SystemExit(2)


@tool
def report(flag: str) -> str:
    """Run the report."""
    exit_now()
    return flag


@tool
async def report_async(flag: str) -> str:
    """Run the report."""
    exit_now()
    return flag


@tool
async def ask_service() -> str:
    """Ask a service, whose task somebody else cancels."""
    task = asyncio.create_task(asyncio.sleep(60))
    task.cancel()
    await task
    return "31 m"


@tool
def measure() -> str:
    """Measure it."""
    return "The tower is 31 m high."


class Exits:
    name = "exits"

    async def run(self, question: str, context: RunContext) -> str:
        exit_now()
        return question

    async def verify(self, claims: list[SourcedClaim], question: str) -> Any:
        exit_now()


@expert
async def surveyor(task: Task, context: RunContext) -> str:
    """Measure towers."""
    exit_now()
    return task.text


def react(*replies: Any, **given: Any) -> tuple[Hira, ScriptedPolicy]:
    script = ScriptedPolicy([*replies, r"\boxed{31 m}"])
    return Hira(policies={"*": script}, workflow="react", settings=OFFLINE, **given), script


def ask(hira: Hira, how: str) -> Answer:
    if how == "ask":
        return asyncio.run(hira.ask(QUESTION))
    with hira:
        return hira.ask_sync(QUESTION)


@pytest.mark.parametrize("how", ["ask", "ask_sync"])
@pytest.mark.parametrize("made", [report, report_async])
def test_a_tool_that_exits_is_a_fault_of_the_tool(made: Any, how: str) -> None:
    hira, script = react(calling(made.name, flag="--x"), tools=[made])
    assert ask(hira, how).text == "31 m"
    assert EXIT in script.requests[1].messages[-1].text


def test_a_tool_whose_own_task_is_cancelled_is_a_fault_of_the_tool() -> None:
    hira, script = react(calling("ask_service"), tools=[ask_service])
    assert ask(hira, "ask").text == "31 m"
    assert "it raised CancelledError" in script.requests[1].messages[-1].text


async def test_a_run_that_is_cancelled_while_a_tool_waits_stays_cancelled() -> None:
    begun = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    hira, _ = react(calling("wait"), tools=[wait])
    async with hira:
        run = asyncio.create_task(hira.ask(QUESTION))
        await begun.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run


def test_a_retriever_that_exits_is_a_fault_of_the_tool() -> None:
    hira, script = react(calling("search", query="tower"), search=exit_now)
    assert ask(hira, "ask_sync").text == "31 m"
    assert EXIT in script.requests[1].messages[-1].text


@pytest.mark.parametrize("how", ["ask", "ask_sync"])
def test_a_hook_that_exits_ends_its_run(how: str) -> None:
    hira, _ = react(calling("measure"), tools=[measure], hooks=Hooks(before_tool=exit_now))
    with pytest.raises(HiraError, match=f"the hook before_tool failed: RuntimeError: {EXIT}"):
        ask(hira, how)


def test_a_function_that_approves_and_exits_ends_its_run() -> None:
    def approve(use: ToolUse) -> ToolUse:
        exit_now()
        return use

    @tool(needs_approval=True)
    def order() -> str:
        """Order it."""
        return "ordered"

    hira, _ = react(calling("order"), tools=[order], approve_tool=approve)
    with pytest.raises(HookError, match="the function that approves raised SystemExit: 2"):
        ask(hira, "ask_sync")


@pytest.mark.parametrize("how", ["ask", "ask_sync"])
def test_a_workflow_that_exits_raises_an_error(how: str) -> None:
    with pytest.raises(RuntimeError, match="the workflow 'exits' raised SystemExit: 2"):
        ask(Hira(workflow=Exits(), settings=OFFLINE), how)


def test_a_verifier_that_exits_leaves_the_claims_unchecked() -> None:
    hira, _ = react(calling("measure"), tools=[measure], verifier=Exits())
    answer = ask(hira, "ask_sync")
    assert (answer.text, answer.status) == ("31 m", "unverified")


def test_an_expert_that_exits_has_failed_its_subtask() -> None:
    script = ScriptedPolicy(
        {
            "planner": [calling("subtask", task=QUESTION), "I do not know."],
            "coordinator": ['{"reason": "it measures", "expert": "surveyor"}'],
        }
    )
    with Hira(policies={"*": script}, experts=[surveyor], settings=OFFLINE) as hira:
        assert hira.ask_sync(QUESTION).text == "I do not know."
    assert EXIT in script.requests[-1].messages[-1].text


def test_a_policy_that_exits_ends_its_question_alone() -> None:
    class Leaves(ScriptedPolicy):
        async def complete(self, *_: Any) -> Any:
            exit_now()

    with Hira(policies={"*": Leaves([])}, workflow="react", settings=OFFLINE) as hira:
        for _ in range(2):
            with pytest.raises(RuntimeError, match="raised SystemExit: 2"):
                hira.ask_sync(QUESTION)


class Breaks:
    name = "breaks"

    async def run(self, question: str, context: RunContext) -> str:
        await context.conversation("reader").reply(user(Filled(question)))
        raise KeyError("tower")


def test_a_run_that_a_fault_ends_keeps_the_cost_of_its_calls(tmp_path: Path) -> None:
    policy = ScriptedPolicy([Completion("31 m", usage=Usage(1, 200, 30))])
    settings = Settings(verify="off", journal=tmp_path / "journal.sqlite")
    with Hira(settings=settings, policies={"*": policy}, workflow=Breaks()) as hira, pytest.raises(KeyError):
        hira.ask_sync(QUESTION)
    journal = Journal(tmp_path / "journal.sqlite")
    (entry,) = journal.runs()
    journal.close()
    assert entry.status == "failed"
    assert entry.usage
    assert entry.usage.tokens == 230
