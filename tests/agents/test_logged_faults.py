"""Tracebacks of faults in tools and experts: without secrets, and where the person sees them."""

import io
import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hira.agents import faults
from hira.agents.calls import use
from hira.agents.coordinator import Coordinator
from hira.agents.expert import Account, Expert, Task
from hira.agents.run_context import RunContext
from hira.agents.trajectory import Subtask
from hira.cli import main
from hira.cli.shell import Shell
from hira.core.events import Events
from hira.testing.script import make_context
from hira.tools import tool

KEY = "sk-0123456789"
SECRETS = frozenset({KEY})


@tool
def tide(harbour: str) -> str:
    """When the tide comes in."""
    try:
        raise KeyError(KEY)
    except KeyError as error:
        raise RuntimeError(f"GET https://tides.example.org/{harbour}?key={KEY}") from error


class Eye(Expert):
    """An expert with a fault."""

    name, description, cost, ability, needs = "eye", "looks at pictures", 1, "sight", frozenset[str]()

    async def work(self, task: Task, context: RunContext) -> Account:
        raise RuntimeError(f"no picture for {KEY}")


async def of_a_tool(context: RunContext) -> str:
    return str((await use(context.conversation("planner"), tide, {"harbour": "Alta"})).text)


async def of_an_expert(context: RunContext) -> str:
    (finding,) = await Coordinator(context, [Eye()], transfer=False).delegate(
        [Subtask("1", "it")], context.rollout.memory
    )
    return finding.conclusion


@pytest.mark.parametrize(("made", "told"), [(of_a_tool, "tides.example.org/Alta"), (of_an_expert, "no picture for")])
async def test_the_traceback_of_a_fault_holds_no_key(
    made: Callable[[RunContext], Awaitable[str]], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    context = make_context([], events=Events(secrets=SECRETS))
    said = await made(context)
    assert "raise RuntimeError(" in caplog.text
    assert told in caplog.text
    assert told in said
    assert KEY not in caplog.text + said
    assert [(one.name, one.exc_info) for one in caplog.records] == [
        ("hira.agents", None)
    ]  # none that would hold the key


class Faulty(io.StringIO):
    """Standard output that has a fault of a tool logged whenever it is written to, so while a command runs."""

    def write(self, text: str) -> int:
        faults.log_fault("tool", "tide", RuntimeError("no table"), str)
        return super().write(text)


@pytest.mark.parametrize(("flags", "told"), [((), False), (("--debug",), True), (("--debug", "--events"), True)])
def test_debug_shows_the_faults_of_tools_and_without_it_none(
    tmp_path: Path, flags: tuple[str, ...], told: bool
) -> None:
    (tmp_path / "asean.txt").write_text("ASEAN was founded on 8 August 1967.\n", encoding="utf-8")
    err, before = io.StringIO(), list(logging.getLogger("hira.agents").handlers)
    shell = Shell(io.StringIO(), Faulty(), err, {"HIRA_MODEL": "offline"}, tmp_path, tmp_path)
    assert main(("ask", "When was ASEAN founded?", "--docs", "asean.txt", *flags), shell) == 0
    assert ("a fault in the tool 'tide'" in err.getvalue()) is told
    assert ("RuntimeError: no table" in err.getvalue()) is told
    assert "--events" not in flags or all(json.loads(line)["event"] for line in err.getvalue().splitlines())
    assert logging.getLogger("hira.agents").handlers == before


class Environ(dict[str, str]):
    """Variables that have a fault of a tool logged when they are read, so while a command runs."""

    def get(self, name: str, default: object = None) -> object:  # type: ignore[override]
        faults.log_fault("tool", "tide", RuntimeError("no table"), str)
        return super().get(name, default)


def test_the_server_shows_the_faults_of_tools(tmp_path: Path) -> None:
    err = io.StringIO()
    shell = Shell(io.StringIO(), io.StringIO(), err, Environ(HIRA_MODEL="offline"), tmp_path, tmp_path)
    assert main(("serve", "--port", "70000"), shell) == 2
    assert "RuntimeError: no table" in err.getvalue()
