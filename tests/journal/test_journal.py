"""The record of runs: written before use, read back the same, shared by processes, resumed without repeating."""

import json
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hira.agents.loop import use
from hira.errors import UsageError
from hira.evidence import Source
from hira.journal import Asked, Journal, Log, NotRecorded
from hira.messages import ToolCall, assistant, user
from hira.policy import Completion, Request, Sampling, Tokens, Usage
from hira.testing import ScriptedPolicy
from hira.testing.team import team_of
from hira.tools import Observation, Passage, Toolbox, tool
from hira.trajectory import Rollout
from hira.workflows import HiRA, rollout


class Killed(Exception):
    """Ends a run the way nothing in hira expects."""


@pytest.fixture
def journal(tmp_path: Path) -> Any:
    made = Journal(tmp_path / "state" / "journal.sqlite")
    yield made
    made.close()


def begun(journal: Journal, run: str = "r1") -> Log:
    return journal.begin(run, settings={"model": "m"}, files=(), versions={"hira": "0"})


COMPLETION = Completion(
    "text ⟨é⟩", "thought", (ToolCall("c1", "search", '{"q": "x"}'),), "calls", "</s>", Usage(1, 10, 5, 2, 0.1, 0.5), "m",
    Tokens((1, 2), (3,), (-0.5,)),
)  # fmt: skip


async def test_a_completion_is_read_back_the_same_and_not_asked_for_again(journal: Journal) -> None:
    request = Request((user("hello"),), conversation="planner")

    async def ask() -> Completion:
        return COMPLETION

    async def never() -> Completion:
        raise AssertionError("asked again")

    assert await begun(journal).policy("m", request, ask) == COMPLETION
    assert await journal.resume("r1").policy("m", request, never) == COMPLETION


@pytest.mark.parametrize(
    "other",
    [
        Request((user("other"),), conversation="planner"),
        Request((user("hello"),), Sampling(seed=1), conversation="planner"),
        Request((user("hello"),), stop=("x",), conversation="planner"),
        Request((user("hello"),), conversation="2/planner"),
        Request((user("hello"), assistant("x")), conversation="planner", continues=True),
    ],
)
async def test_another_request_is_another_call(journal: Journal, other: Request) -> None:
    async def ask() -> Completion:
        return COMPLETION

    await begun(journal).policy("m", Request((user("hello"),), conversation="planner"), ask)
    with pytest.raises(NotRecorded, match="the record ends before call 1"):
        await journal.replay("r1").policy("m", other, ask)


async def test_a_result_is_on_disk_before_it_is_used(journal: Journal) -> None:
    async def ask() -> Completion:
        return COMPLETION

    await begun(journal).policy("m", Request((user("hello"),), conversation="planner"), ask)
    with sqlite3.connect(journal.path) as other:
        (count,) = other.execute("select count(*) from calls where result is not null").fetchone()
    other.close()
    assert count == 1


async def test_a_request_is_stored_by_what_is_new_in_it(journal: Journal) -> None:
    async def ask() -> Completion:
        return COMPLETION

    log, first = begun(journal), user("hello")
    await log.policy("m", Request((first,), conversation="p"), ask)
    await log.policy("m", Request((first, assistant("a"), user("b")), conversation="p"), ask)
    requests = [call.request for call in journal.calls("r1")]
    assert [(one["kept"], [message["content"] for message in one["added"]]) for one in requests] == [
        (0, ["hello"]),
        (1, ["a", "b"]),
    ]


async def test_a_call_with_an_effect_that_was_only_started_is_reported(journal: Journal) -> None:
    asked = Asked("tool", "1/code", "d", "send_mail", dict, effect=True)

    async def dies() -> str:
        raise Killed

    async def works() -> str:
        return "sent"

    with pytest.raises(Killed):
        await begun(journal).call(asked, dies, str, str)
    again = journal.resume("r1")
    assert await again.call(asked, works, str, str) == "sent"
    assert [call.name for call in again.unfinished] == ["send_mail"]


def test_runs_are_listed_newest_first_and_found_by_the_beginning_of_their_id(journal: Journal) -> None:
    for run in ("2026-a", "2026-b", "2027-c"):
        begun(journal, run).describe(f"question {run}", "hira")
    assert [entry.id for entry in journal.runs()] == ["2027-c", "2026-b", "2026-a"]
    assert journal.entry("2027").question == "question 2027-c"
    assert journal.entry("last").id == "2027-c"
    with pytest.raises(UsageError, match="several runs begin with '2026'"):
        journal.entry("2026")
    with pytest.raises(UsageError, match="no run 'x'"):
        journal.entry("x")


def test_a_file_of_a_newer_hira_and_one_that_is_no_journal_are_refused_with_the_way_out(tmp_path: Path) -> None:
    newer, text = tmp_path / "newer.sqlite", tmp_path / "text.sqlite"
    with sqlite3.connect(newer) as made:
        made.execute("pragma user_version = 99")
    made.close()
    text.write_text("no database at all, but long enough to be looked at" * 50)
    for path in (newer, text):
        with pytest.raises(UsageError, match="the journal cannot be opened") as caught:
            Journal(path)
        assert str(path) in caught.value.where


def test_many_processes_write_into_one_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    code = f"""
import asyncio
from pathlib import Path
from hira.journal import Asked, Journal
async def work(n):
    journal = Journal(Path({str(path)!r}))
    async def make(): return "x" * 2000
    async def run(at):
        log = journal.begin(f"{{n}}-{{at}}", settings={{}}, files=(), versions={{}})
        for call in range(5):
            await log.call(Asked("tool", "c", str(call), "t", dict), make, str, str)
        log.end("answered", "a", "")
    await asyncio.gather(*(run(at) for at in range(16)))
    journal.close()
import sys
asyncio.run(work(sys.argv[1]))
"""
    processes = [subprocess.Popen([sys.executable, "-c", code, str(n)]) for n in range(4)]
    assert [process.wait(60) for process in processes] == [0] * 4
    journal = Journal(path)
    assert len(journal.runs(100)) == 64
    assert {entry.status for entry in journal.runs(100)} == {"answered"}
    assert len(journal.calls("0-3")) == 5
    journal.close()


async def test_a_full_disk_ends_recording_with_a_message_and_not_the_run(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    log = begun(journal)
    await log.settle()
    with sqlite3.connect(journal.path) as other:
        other.execute("drop table calls")
    other.close()

    async def ask() -> Completion:
        return COMPLETION

    assert await log.policy("m", Request((user("x"),), conversation="p"), ask) == COMPLETION
    assert "can no longer be written" in log.trouble
    journal.close()


@tool(pure=True)
async def search(query: str) -> Observation:
    "Search."
    return Observation(passages=(Passage(Source("t.md", "T", "The tower is 31 m high."), query),))


SUBTASK = "<|begin_call_subtask|>Height of the tower<|end_call_subtask|>"
DISTILLED = json.dumps({"reasoning": "Looked.", "conclusion": "The tower is 31 m high [s1]."})
SCRIPT: dict[str, Any] = {
    "planner": [SUBTASK, r"\boxed{The tower is 31 m high [s1].}"],
    "coordinator": ['{"reason": "r", "expert": "simple_search"}', DISTILLED],
    "simple_search": ['{"queries": ["tower"]}', "It is 31 m high [s1]."],
}


async def asked(policy: ScriptedPolicy, log: Log) -> Rollout:
    record = Rollout(log.run, "", "")
    record.sources.reserved.update(log.sources)
    team = team_of(policy, tools=Toolbox(search=search), log=log, rollout=record)
    return await rollout(HiRA(), "How high is the tower?", team)


async def test_a_run_cut_off_after_any_call_resumes_to_the_same_answer_and_repeats_none(journal: Journal) -> None:
    whole = await asked(ScriptedPolicy(SCRIPT), begun(journal, "whole"))
    assert whole.status == "answered"
    for cut in range(6):
        made = 0
        rest = ScriptedPolicy(SCRIPT)

        def limited(request: Request, rest: ScriptedPolicy = rest, cut: int = cut) -> Completion:
            nonlocal made
            made += 1
            if made == cut + 1:
                raise Killed
            return rest.script.reply(request)

        run = f"cut-{cut}"
        with pytest.raises(Killed):
            await asked(ScriptedPolicy({"*": limited}), begun(journal, run))
        resumed = await asked(rest, journal.resume(run))
        assert (resumed.answer, resumed.status) == (whole.answer, "answered")
        rest.assert_done()


async def test_a_replay_needs_no_policy_and_brings_the_same(journal: Journal) -> None:
    whole = await asked(ScriptedPolicy(SCRIPT), begun(journal))
    again = await asked(ScriptedPolicy([]), journal.replay("r1"))
    assert (again.answer, again.citations, again.usage) == (whole.answer, whole.citations, whole.usage)


async def test_a_session_with_state_is_brought_back_before_its_next_call(journal: Journal) -> None:
    def session() -> Any:
        state: list[int] = []

        @tool
        def add(n: int) -> str:
            "Add to the state."
            state.append(n)
            return f"sum {sum(state)}"

        return replace(add, stateful=True)

    first = session()
    conversation = team_of([], log=begun(journal)).conversation("code")
    assert (await use(conversation, first, {"n": 1})).text == "sum 1"
    assert (await use(conversation, first, {"n": 2})).text == "sum 3"
    again = team_of([], log=journal.resume("r1")).conversation("code")
    second = session()
    texts = [(await use(again, second, {"n": n})).text for n in (1, 2, 4)]
    assert texts == ["sum 1", "sum 3", "sum 7"]
