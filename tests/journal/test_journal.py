"""The record of runs: written before use, read back the same, shared by processes, resumed without repeating."""

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hira.agents.calls import use
from hira.agents.trajectory import Rollout
from hira.core.errors import Interrupted, RateLimited, UsageError
from hira.core.events import Event, Events, Notice
from hira.core.messages import ToolCall, assistant, user
from hira.core.policy import Completion, Request, Sampling, Tokens, Usage
from hira.evidence import Source
from hira.journal import CallSpec, Journal, Log, NoJournal, NotRecorded, StillGoing
from hira.journal.encoding import Digests, pack
from hira.journal.store import VERSION
from hira.runtime.trace import read
from hira.testing import ScriptedPolicy
from hira.testing.script import make_context
from hira.tools import Observation, Passage, Toolbox, tool
from hira.workflows import HiRA, rollout


class Killed(GeneratorExit):
    """Ends a run the way nothing in hira expects."""


@pytest.fixture
def journal(tmp_path: Path) -> Any:
    made = Journal(tmp_path / "state" / "journal.sqlite")
    yield made
    made.close()


def begun(journal: Journal, run: str = "r1", question: str = "q") -> Log:
    return journal.begin(run, question, "hira", settings={"model": "m"}, files=(), versions={"hira": "0"})


COMPLETION = Completion(
    "text ⟨é⟩", "thought", (ToolCall("c1", "search", '{"q": "x"}'),), "calls", "</s>", Usage(1, 10, 5, 2, 0.1, 0.5), "m",
    Tokens((1, 2), (3,), (-0.5,)),
)  # fmt: skip


async def pay() -> Completion:
    return COMPLETION


async def bring() -> str:
    return "brought"


async def never() -> Any:
    raise AssertionError("asked again")


async def fail() -> Completion:
    raise RateLimited("too many", where="at x", fix="wait", status=429, retryable=True, retry_after=2.0)


async def test_a_completion_is_read_back_the_same_and_not_asked_for_again(journal: Journal) -> None:
    request = Request((user("hello"),), conversation="planner")
    assert await begun(journal).policy("m", request, pay) == COMPLETION
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
    await begun(journal).policy("m", Request((user("hello"),), conversation="planner"), pay)
    with pytest.raises(NotRecorded, match="the record ends before call 1"):
        await journal.replay("r1").policy("m", other, pay)


RECORDS_AND_DIES = """
import asyncio, os, sys
from pathlib import Path
from hira.core.events import Notice
from hira.journal import CallSpec, Journal
async def work():
    journal = Journal(Path(sys.argv[1]))
    log = journal.begin("r1", "q", "hira", settings={}, files=(), versions={})
    async def make(): return "paid for " + chr(0xd800)
    async def dies(): os.kill(os.getpid(), 9)
    for number in range(3):
        await log.call(CallSpec("tool", "c", f"d{number}", "t", dict), make, str, str)
    await log.call(CallSpec("tool", "c", "d3", "t", dict), dies, str, str)
asyncio.run(work())
"""


def died(journal: Journal) -> None:
    done = subprocess.run([sys.executable, "-c", RECORDS_AND_DIES, str(journal.path)], check=False)
    assert done.returncode == -9


async def test_results_are_recorded_before_another_call_is_made_of_them(journal: Journal) -> None:
    died(journal)

    log = journal.resume("r1")
    for number in range(3):
        asked = CallSpec("tool", "c", f"d{number}", "t", dict)
        assert await log.call(asked, never, str, str) == "paid for \ud800"


async def test_what_a_living_process_has_recorded_others_read_at_once(journal: Journal) -> None:
    log, other = begun(journal), Journal(journal.path)
    for number in range(20):
        log.event(Notice(str(number)))
        log.end("answered", f"answer {number}", "")
        await log.settle()
        entry = other.entry("r1")
        assert (entry.question, entry.answer) == ("q", f"answer {number}")
        assert [event["text"] for event in other.events("r1")] == [str(one) for one in range(number + 1)]
    other.close()


async def test_calls_wait_for_a_journal_that_another_process_holds_and_are_recorded(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    log = begun(journal)
    await log.settle()
    holding = held(journal.path)

    calls = [log.call(CallSpec("tool", "c", f"d{at}", "t", dict), bring, str, str) for at in range(6)]
    waiting = asyncio.gather(*calls)
    await asyncio.sleep(0.2)
    assert not waiting.done(), "nothing is used before it is recorded"
    holding.execute("rollback")
    holding.close()
    assert await waiting == ["brought"] * 6
    assert (log.trouble, len(journal.calls("r1"))) == ("", 6)
    journal.close()


async def test_a_journal_that_is_held_for_too_long_ends_the_record_and_not_the_run(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite", patience=0.2)
    log = begun(journal)
    await log.settle()

    with closing(held(journal.path)):
        assert await log.call(CallSpec("tool", "c", "d", "t", dict), bring, str, str) == "brought"
        await log.settle()
        assert log.trouble == f"the journal {journal.path} can no longer be written: another process holds it"
    journal.close()


def held(path: Path) -> sqlite3.Connection:
    """Another program's hold on the file, which lets nobody else write."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin exclusive")
    return other


def test_runs_that_could_not_be_deleted_because_somebody_holds_the_file_are_not_told_as_deleted(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite", patience=0.01)
    begun(journal).end("answered", "a", "")
    journal.entry("r1")
    with closing(held(journal.path)) as holding:
        with pytest.raises(UsageError, match="not deleted: another process holds"):
            journal.delete(["r1"])
        holding.execute("rollback")
    journal.delete(["r1"])
    assert journal.runs() == []
    journal.close()


def test_a_run_is_not_gone_on_with_while_it_cannot_be_claimed(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite", patience=0.01)
    begun(journal).end("partial", "", "")
    entry = journal.entry("r1")
    with closing(held(journal.path)) as holding:
        with pytest.raises(NoJournal, match="another process holds the journal") as caught:
            journal.resume(entry)
        holding.execute("rollback")
    assert caught.value.fix == "try again later"
    assert journal.resume(entry).trouble == ""
    journal.close()


def test_a_file_in_the_older_mode_that_somebody_holds_is_told_as_held(tmp_path: Path) -> None:
    """Where files cannot be written ahead, who writes keeps those who read out as well."""
    journal = Journal(tmp_path / "journal.sqlite", patience=0.01)
    begun(journal).end("partial", "", "")
    entry = journal.entry("r1")
    journal.close()
    with closing(sqlite3.connect(journal.path, isolation_level=None)) as holding:
        assert holding.execute("pragma journal_mode = delete").fetchone() == ("delete",)
        holding.execute("begin")
        holding.execute("select * from runs").fetchall()  # while somebody reads, the mode stays
        journal = Journal(tmp_path / "journal.sqlite", patience=0.01)
        assert journal.entry("r1") == entry
        holding.execute("rollback")
        holding.execute("begin exclusive")
        for read in (journal.runs, partial(journal.entry, "r1"), partial(journal.resume, entry)):
            with pytest.raises(NoJournal, match="another process holds") as caught:
                read()
            assert caught.value.fix.startswith("try again")
        holding.execute("rollback")
    assert journal.entry("r1").status == "partial"
    journal.close()


async def test_a_run_is_gone_on_with_when_the_process_that_ended_it_has_written_all_of_it(tmp_path: Path) -> None:
    """It lives, and would write the end once more, over the claim of the one that goes on."""
    journal = Journal(tmp_path / "journal.sqlite")
    log = begun(journal)
    log.event(Notice("earlier"))
    log.end("partial", "", "")
    code = f"""
from pathlib import Path
from hira.journal import Journal
journal = Journal(Path({str(journal.path)!r}))
journal.resume("r1")
input()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as other:
        try:
            await log.settle()
            async with asyncio.timeout(60):
                while journal.entry("r1").status != "running":
                    assert other.poll() is None, "it ended before it went on with the run"
                    await asyncio.sleep(0.05)
            await log.settle()
            entry = journal.entry("r1")
            assert (entry.status, entry.pid, journal.events("r1")) == ("running", other.pid, [])
        finally:
            other.kill()
    journal.close()


async def test_a_run_is_claimed_and_loses_its_earlier_events_at_one_moment(tmp_path: Path) -> None:
    """Whoever reads it between, or ends there, must not find it gone on with and its earlier events still there."""
    journal = Journal(tmp_path / "journal.sqlite")
    log = begun(journal)
    log.event(Notice("earlier"))
    log.end("partial", "", "")
    await log.settle()
    with closing(sqlite3.connect(journal.path)) as file:
        file.execute("create trigger kept before delete on events begin select raise(abort, 'kept'); end")
        with pytest.raises(NoJournal, match="kept"):
            journal.resume("r1")
        held = file.execute("select status, count(*) from runs join events on run = id").fetchone()
        assert held == ("partial", 1)
        file.execute("drop trigger kept")
    assert (journal.entry("r1").status, len(journal.events("r1"))) == ("partial", 1)
    journal.close()


GCC = shutil.which("gcc") or ""
NO_LOCKS = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <dlfcn.h>
#include <stdarg.h>
static int passed(const char *name, int file, int what, void *more) {
    if (what == F_SETLK || what == F_SETLKW) { errno = ENOLCK; return -1; }
    return ((int (*)(int, int, void *))dlsym(RTLD_NEXT, name))(file, what, more);
}
#define STANDS_FOR(name) int name(int file, int what, ...) { \
    va_list list; va_start(list, what); void *more = va_arg(list, void *); va_end(list); \
    return passed(#name, file, what, more); }
STANDS_FOR(fcntl)
STANDS_FOR(fcntl64)
int flock(int file, int what) { errno = ENOLCK; return -1; }
"""


@pytest.mark.heavy
@pytest.mark.skipif(sys.platform != "linux" or not GCC, reason="made by gcc, for Linux")
def test_where_no_file_can_be_locked_a_run_is_told_so_at_once_and_goes_on_without_a_record(tmp_path: Path) -> None:
    """SQLite takes a lock that cannot be had for one that somebody else has, and would wait for it."""
    source, library = tmp_path / "locks.c", tmp_path / "locks.so"
    source.write_text(NO_LOCKS)
    subprocess.run([GCC, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    code = """
import sys
from hira import Hira, Settings
from pathlib import Path
hira = Hira(settings=Settings(model="offline", docs=(Path(sys.argv[1]),), journal=Path(sys.argv[2])))
run = hira.stream("How high is the tower?")
import asyncio
from hira.core.events import Notice
async def main():
    await run.work(lambda event: print(event.text) if isinstance(event, Notice) else None)
    print(run.answer.text)
    await hira.aclose()
asyncio.run(main())
"""
    (tmp_path / "tower.txt").write_text("The tower is 31 m high.\n")
    command = [sys.executable, "-c", code, str(tmp_path / "tower.txt"), str(tmp_path / "journal.sqlite")]
    environ = {**os.environ, "LD_PRELOAD": str(library)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if "files cannot be locked" not in line] == []
    assert "files cannot be locked in" in done.stdout
    assert "this run is not recorded and cannot be resumed" in done.stdout
    assert "31 m" in done.stdout


async def test_a_journal_that_was_closed_takes_nothing_and_says_so(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    log = begun(journal)
    journal.close()
    log.end("answered", "", "")
    assert "was closed" in log.trouble


WRITES_RUNS = """
import asyncio, sys
from pathlib import Path
from hira.core.events import Notice
from hira.journal import CallSpec, Journal
async def run(journal, name):
    log = journal.begin(name, "q", "hira", settings={}, files=(), versions={})
    async def make():
        await asyncio.sleep(0.001)
        return "x" * 300
    for at in range(10):
        log.event(Notice(str(at)))
        await log.call(CallSpec("tool", "c", f"d{at}", "t", dict), make, str, str)
    log.end("answered", name, "")
    await log.settle()
    return log.trouble
async def work():
    journal = Journal(Path(sys.argv[1]))
    troubles = await asyncio.gather(*(run(journal, f"{sys.argv[2]}-{at}") for at in range(16)))
    journal.close()
    sys.exit("".join(troubles) or None)
asyncio.run(work())
"""


WITHOUT_SHARED_MEMORY = """
import _sqlite3, ctypes
library = ctypes.CDLL(_sqlite3.__file__)
try:
    library.sqlite3_vfs_find.restype = ctypes.c_void_p
except AttributeError:
    sys.exit("no such library")
# locks as files, no shared memory: what a network's file system may come to
library.sqlite3_vfs_register(ctypes.c_void_p(library.sqlite3_vfs_find(b"unix-dotfile")), 1)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the way to another file system is one of Unix")
def test_where_files_cannot_be_written_ahead_several_processes_record_in_the_older_mode(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    program = WRITES_RUNS.replace("asyncio.run(", f"{WITHOUT_SHARED_MEMORY}\nasyncio.run(")
    command = [sys.executable, "-c", program.replace("range(16)", "range(4)"), str(path)]
    running = [subprocess.Popen([*command, str(at)], stderr=subprocess.PIPE, text=True) for at in range(2)]
    told = [(one.communicate(timeout=120)[1], one.returncode) for one in running]
    if "no such library" in told[0][0]:
        pytest.skip("Python's SQLite is no library of its own here")
    assert told == [("", 0)] * 2
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("pragma journal_mode").fetchone() == ("delete",)
    journal = Journal(path)
    assert {entry.id for entry in journal.runs(100)} == {f"{at}-{number}" for at in range(2) for number in range(4)}
    assert all(len(journal.calls(entry.id)) == 10 for entry in journal.runs(100))
    journal.close()


def test_64_runs_of_several_processes_write_into_one_new_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    command = [sys.executable, "-c", WRITES_RUNS, str(path)]
    running = [subprocess.Popen([*command, str(at)], stderr=subprocess.PIPE, text=True) for at in range(4)]
    assert [(one.communicate(timeout=120)[1], one.returncode) for one in running] == [("", 0)] * 4
    journal = Journal(path)
    runs = journal.runs(100)
    assert {entry.id for entry in runs} == {f"{at}-{number}" for at in range(4) for number in range(16)}
    for entry in runs:
        assert (entry.status, entry.answer) == ("answered", entry.id)
        assert [call.digest for call in journal.calls(entry.id)] == [f"d{at}" for at in range(10)]
        assert [event["text"] for event in journal.events(entry.id)] == [str(at) for at in range(10)]
    journal.close()
    assert [one.name for one in tmp_path.iterdir()] == ["journal.sqlite"]


async def test_a_request_is_stored_by_what_is_new_in_it(journal: Journal) -> None:
    log, first = begun(journal), user("hello")
    await log.policy("m", Request((first,), conversation="p"), pay)
    await log.policy("m", Request((first, assistant("a"), user("b")), conversation="p"), pay)
    requests = [call.request for call in journal.calls("r1")]
    assert [(one["kept"], [message["content"] for message in one["added"]]) for one in requests] == [
        (0, ["hello"]),
        (1, ["a", "b"]),
    ]


async def test_a_call_with_an_effect_that_was_only_started_is_reported(journal: Journal) -> None:
    asked = CallSpec("tool", "1/code", "d", "send_mail", dict, effect=True)

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
        begun(journal, run, f"question {run}")
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


FORM_1 = """
create table runs (
  id text primary key, question text not null, workflow text not null, status text not null, answer text not null,
  error text not null, settings text not null, files text not null, versions text not null,
  began real not null, ended real, pid integer not null, host text not null
);
create table calls (
  run text not null, kind text not null, conversation text not null, position integer not null, digest text not null,
  name text not null, request blob not null, result blob, began real not null, seconds real,
  primary key (run, kind, conversation, position, digest)
) without rowid;
create index calls_by_digest on calls (digest);
create table sources (run text not null, location text not null, id text not null, primary key (run, location));
create table events (run text not null, number integer not null, event blob not null, primary key (run, number));
pragma user_version = 1;
"""
FORM_2 = """
alter table runs add column tools text not null default '{}';
alter table runs add column usage text not null default '{}';
alter table runs add column scope text not null default '';
alter table runs add column heard real;
pragma user_version = 2;
"""
"""What makes the first form the second as it was at first: with an index, and tables laid out otherwise than today."""


@pytest.mark.parametrize("form", [FORM_1, FORM_1 + FORM_2])
async def test_a_file_of_an_older_form_is_brought_to_todays_and_its_runs_resume(tmp_path: Path, form: str) -> None:
    path = tmp_path / "journal.sqlite"
    request = Request((user("hello"),), conversation="planner")
    with sqlite3.connect(path) as old:
        old.executescript(FORM_1)
        old.execute(
            "insert into runs values ('r1', 'q', 'hira', 'running', '', '', '{}', '[]', '{}', 1.0, null, 1, 'x')"
        )
        old.executescript(form.removeprefix(FORM_1))
        call = ("r1", "policy", "planner", 1, Digests().of("m", request)[0], "m", pack({}), pack(COMPLETION))
        old.execute("insert into calls values (?, ?, ?, ?, ?, ?, ?, ?, 1.0, 0.5)", call)
        old.execute("insert into events values ('r1', 1, ?)", (pack({"event": "Notice", "at": 0.0, "text": "x"}),))
    old.close()

    journal = Journal(path)
    entry = journal.entry("r1")
    assert (entry.question, entry.state, entry.tools, entry.usage) == ("q", "interrupted", {}, None)
    assert [event["text"] for event in journal.events("r1")] == ["x"]
    log = journal.resume("r1")
    assert await log.policy("m", request, never) == COMPLETION
    log.end("answered", "a", "")
    assert (journal.entry("r1").status, log.trouble) == ("answered", "")
    journal.close()
    with sqlite3.connect(path) as new:
        assert new.execute("pragma user_version").fetchone() == (VERSION,)
    new.close()


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as made:
        made.execute("create table bookmarks (url text)")
    made.close()
    with pytest.raises(UsageError, match="the database of another program"):
        Journal(path)
    with sqlite3.connect(path) as other:
        assert other.execute("select name from sqlite_master").fetchall() == [("bookmarks",)]
    other.close()


async def test_a_failure_that_the_run_went_on_after_is_kept_and_the_one_that_ended_it_is_tried_again(
    journal: Journal,
) -> None:
    first, second, third = (Request((user(text),), conversation=text) for text in ("assign", "expert", "planner"))

    log = begun(journal)
    with pytest.raises(RateLimited):
        await log.policy("m", first, fail)
    await log.policy("m", second, pay)
    with pytest.raises(RateLimited):
        await log.policy("m", third, fail)
    log.end("failed", "", "too many")
    again = journal.resume("r1")
    with pytest.raises(RateLimited) as caught:
        await again.policy("m", first, never)
    assert (caught.value.where, caught.value.status, caught.value.retry_after) == ("at x", 429, 2.0)
    assert await again.policy("m", third, pay) == COMPLETION


async def test_a_resumed_run_that_was_killed_names_the_cost_of_all_replies(journal: Journal) -> None:
    request, cut = Request((user("hello"),), conversation="planner"), replace(COMPLETION, finish="length")

    async def pay_cut() -> Completion:
        return cut

    log = journal.begin("r1", "why?", "react", settings={"model": "m"}, files=(), versions={"hira": "0"})
    await log.policy("m", request, pay_cut)
    log.end("partial", "text", "the budget is used up", cut.usage)
    again = journal.resume("r1")
    with pytest.raises(RateLimited):
        await again.policy("m", request, fail)
    assert read(journal, "r1").usage == cut.usage, "what was replaced by a failure was paid for, too"
    assert await journal.resume("r1").policy("m", request, pay_cut) == cut
    assert read(journal, "r1").usage == cut.usage + cut.usage
    assert [turn.completion for turn in read(journal, "r1").turns] == [cut]


async def test_a_clock_that_was_set_back_does_not_make_the_failure_that_ended_a_run_stay(journal: Journal) -> None:
    """What came last is told by the times of calls, which go on from those of the record."""
    first, second = (Request((user(text),), conversation=text) for text in ("expert", "planner"))
    log = begun(journal)
    await log.policy("m", first, pay)
    log.end("partial", "", "")
    journal.calls("r1")
    with closing(sqlite3.connect(journal.path)) as file, file:
        file.execute("update calls set began = began + 3600")  # as if the clock had been set back by an hour since
    log = journal.resume("r1")
    await log.policy("m", first, fail)
    with pytest.raises(RateLimited):
        await log.policy("m", second, fail)
    log.end("failed", "", "too many")
    assert await journal.resume("r1").policy("m", second, pay) == COMPLETION
    times = [call.began for call in journal.calls("r1")]
    assert times == sorted(times)


def test_of_two_who_go_on_with_a_run_at_once_the_second_is_told_so(journal: Journal) -> None:
    """Both have read the same record before either says that it goes on."""
    begun(journal).end("partial", "", "")
    other = Journal(journal.path)
    one, two = journal.entry("r1"), other.entry("r1")
    journal.resume(one)
    with pytest.raises(StillGoing, match="another process is resuming"):
        other.resume(two)
    assert other.entry("r1").alive
    other.close()


async def test_a_resumed_run_that_goes_another_way_than_its_record_says_so_once(journal: Journal) -> None:
    """With another model, nothing that was paid for can be used; the end of a conversation alone may always differ."""

    async def told(model: str, log: Log, last: str) -> list[str]:
        heard: list[Event] = []
        policy = ScriptedPolicy(lambda request: f"to {request.messages[-1].text}", model=model)
        talk = make_context(policy, log=log, events=Events(heard.append)).conversation("planner")
        for text in ("first", "second", last):
            await talk.reply(user(text))
        log.end("partial", "", "")
        return [one.text for one in heard if isinstance(one, Notice) and "differs from its record" in one.text]

    assert await told("m", begun(journal), "in time") == []
    assert await told("m", journal.resume("r1"), "cut short") == []
    assert len(await told("other", journal.resume("r1"), "cut short")) == 1


async def test_a_call_that_is_made_again_on_purpose_is_no_departure_from_the_record(journal: Journal) -> None:
    async def shown(log: Log) -> str:
        async def make() -> str:
            return "a picture"

        for file in ("one.png", "two.png"):
            await log.call(CallSpec("tool", "1/multimodal", file, "look", dict, rerun=True), make, str, str)
        log.end("partial", "", "")
        return log.departed

    assert await shown(begun(journal)) == ""
    assert await shown(journal.resume("r1")) == ""


async def test_a_stopped_call_leaves_no_gap_in_its_conversation(journal: Journal) -> None:
    async def stops() -> Completion:
        raise Interrupted("stop")

    log, hello, more = begun(journal), user("hello"), user("more")
    await log.policy("m", Request((hello,), conversation="p"), pay)
    with pytest.raises(Interrupted):
        await log.policy("m", Request((hello, more), conversation="p"), stops)
    await log.policy("m", Request((hello, more, user("conclude")), conversation="p"), pay)
    last = read(journal, "r1").turns[-1]
    assert [message.text for message in last.request.messages] == ["hello", "more", "conclude"]
    assert last.position == 2


def test_a_run_without_a_sign_of_life_is_gone_though_its_number_is_in_use(journal: Journal) -> None:
    begun(journal)
    assert journal.entry("r1").alive
    with sqlite3.connect(journal.path) as other:
        other.execute("update runs set heard = heard - 3600")
    other.close()
    entry = journal.entry("r1")
    assert (entry.alive, entry.state) == (False, "interrupted")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells a zombie")
def test_a_run_whose_process_has_ended_unnoticed_by_its_parent_is_gone(journal: Journal) -> None:
    begun(journal)
    with subprocess.Popen([sys.executable, "-c", "pass"], stdout=subprocess.PIPE) as ended:
        assert ended.stdout
        ended.stdout.read()  # until it ends; nobody waits for it yet
        entry = replace(journal.entry("r1"), pid=ended.pid)
        while Path(f"/proc/{ended.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            pass
        assert (entry.alive, entry.state) == (False, "interrupted")


async def test_what_another_run_asked_is_reused_and_costs_nothing(journal: Journal) -> None:
    request = Request((user("hello"),), conversation="planner")
    await begun(journal).policy("m", request, pay)
    log = journal.begin("r2", settings={}, files=(), versions={}, reuse=60)
    assert await log.policy("m", request, never) == replace(COMPLETION, usage=Usage())
    assert await journal.replay("r2").policy("m", request, never) == replace(COMPLETION, usage=Usage())


async def test_results_of_tools_are_reused_within_their_age_where_tools_see_the_same(journal: Journal) -> None:
    asked = CallSpec("tool", "*", "d", "search", dict, shared=True)

    async def found() -> dict[str, Any]:
        return {"text": "old", "ok": True}

    async def anew() -> dict[str, Any]:
        return {"text": "new", "ok": True}

    async def said(run: str, scope: str, reuse: float) -> str:
        log = journal.begin(run, settings={}, files=(), versions={}, scope=scope, reuse=reuse)
        return (await log.call(asked, anew, dict, dict))["text"]

    first = journal.begin("r1", settings={}, files=(), versions={}, scope="web")
    await first.call(asked, found, dict, dict)
    assert await said("r2", "web", 60) == "old"
    assert await said("r3", "documents", 60) == "new"
    assert await said("r4", "", 60) == "new"


async def test_names_of_files_that_are_no_text_do_not_end_recording(journal: Journal) -> None:
    log = begun(journal, question="what is in caf\udce9?")
    log.read("caf\udce9.txt", "s1")
    log.end("answered", "caf\udce9", "")
    await log.settle()
    assert (log.trouble, journal.entry("r1").status) == ("", "answered")


def test_only_the_user_may_read_the_file(journal: Journal) -> None:
    begun(journal)
    assert journal.path.stat().st_mode & 0o077 == 0


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
    context = make_context(policy, tools=Toolbox(search=search), log=log, rollout=record)
    return await rollout(HiRA(faithful=True), "How high is the tower?", context)


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
            return rest.reply(request)

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
    conversation = make_context([], log=begun(journal)).conversation("code")
    assert "sum 1" in (await use(conversation, first, {"n": 1})).text
    assert "sum 3" in (await use(conversation, first, {"n": 2})).text
    again = make_context([], log=journal.resume("r1")).conversation("code")
    second = session()
    texts = [(await use(again, second, {"n": n})).text for n in (1, 2, 4)]
    assert [text.splitlines()[1] for text in texts] == ["sum 1", "sum 3", "sum 7"]


def test_a_run_that_is_resumed_or_replayed_tells_the_day_on_which_it_began(journal: Journal) -> None:
    began = begun(journal, "r").began
    assert journal.resume("r").began == journal.replay("r").began == journal.entry("r").began == began
