"""The progress of a run, as lines and as a drawing on a terminal; and how a command looks after memory meanwhile."""

import asyncio
import gc
import io
import re
import sys
from pathlib import Path

from rich.console import Console

from hira.cli.live import CountTable, Drawing, RunTree
from hira.cli.many import short_pauses, tell_waiting
from hira.cli.progress import CellCounts, Lines, format_duration
from hira.cli.shell import Shell, brief
from hira.core.events import (
    DocumentsRead,
    Event,
    Notice,
    Remembered,
    RunEnded,
    RunStarted,
    SourceRead,
    SubtaskAssigned,
    SubtaskDone,
    SubtaskIssued,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    TurnText,
)
from hira.core.policy import Usage

RUN: list[Event] = [
    RunStarted("r1", "When?", "hira", {"*": "m"}, at=0.0),
    TurnStarted("planner", "planner", at=0.0),
    TurnText("planner", "I th", False, at=0.4),
    TurnEnded("planner", "planner", "I think", Usage(1, 900, 34, seconds=1.5), at=1.5),
    SubtaskIssued("1", "find the\nyear", at=1.5),
    SubtaskAssigned("1", "simple_search", "a page states it", 2, at=1.6),
    ToolStarted("1/simple_search", "search", {"query": "founding year"}, at=1.7),
    ToolEnded("1/simple_search", "search", True, "…", 0.2, at=1.9),
    ToolStarted("1/simple_search", "browse", {"url": "a.txt", "intent": "year"}, at=1.9),
    ToolEnded("1/simple_search", "browse", False, "browse failed: no such document", 0.1, at=2.0),
    SourceRead("s1", "file", "A history", "a.txt", at=2.0),
    SubtaskDone("1", "simple_search", "It was 1967.", True, at=3.0),
    Remembered("fact", "It was 1967.", "s1", at=3.0),
    Remembered("fact", "Ida founded it [s1, s2].", "s1, s2", at=3.0),
    Remembered("resource", "A list of years", "a.txt", at=3.0),
    Notice("all 10 calls are used", at=3.1),
    RunEnded("r1", "insufficient_evidence", "1967", Usage(3, 2000, 100, cost=0.0123), at=62.25),
]

GOLDEN = """\
   0.0 s  run r1 · workflow hira · model m
   1.5 s  planner wrote · 934 tokens, 1.5 s
   1.5 s  subtask 1: find the year
   1.6 s  subtask 1 → simple_search · 2 from memory: a page states it
   1.7 s  subtask 1 · simple_search calls search: founding year
   1.9 s  subtask 1 · simple_search calls browse: url 'a.txt', intent 'year'
   2.0 s  subtask 1 · simple_search browse failed, 0.1 s: no such document
   2.0 s  read [s1] A history — a.txt
   3.0 s  subtask 1 done: It was 1967.
   3.0 s  remembered fact: Ida founded it [s1, s2].
   3.0 s  remembered resource: A list of years (a.txt)
   3.1 s  note: all 10 calls are used
  62.2 s  insufficient evidence · 3 calls · 2,100 tokens · $0.0123"""


def shell_of(told: io.StringIO) -> Shell:
    return Shell(io.StringIO(), io.StringIO(), told, {}, Path(), Path())


def test_each_notable_event_is_one_line() -> None:
    told = io.StringIO()
    lines = Lines(shell_of(told))
    for event in RUN:
        lines(event)
    assert told.getvalue() == f"{GOLDEN}\n"


def test_the_sources_of_a_search_share_a_line_and_a_slow_call_has_one_at_its_end() -> None:
    told = io.StringIO()
    lines = Lines(shell_of(told))
    for event in (
        ToolStarted("reasoner", "search", {"query": "year"}, at=1.0),
        SourceRead("s1", "file", "A history of the town and of all its rivers", "a.txt", at=2.0),
        SourceRead("s2", "file", "", "b.txt", at=2.1),
        ToolEnded("reasoner", "search", True, "…", 1.2, at=2.2),
        TurnEnded("search-d4a65ac1/reasoner.2", "reasoner", "…", Usage(1, 30, 4, seconds=2), at=4.2),
        TurnEnded("3/verifier1/verifier", "verifier", "…", Usage(1, 30, 4, seconds=2), at=6.2),
    ):
        lines(event)
    assert told.getvalue().splitlines() == [
        "   1.0 s  reasoner calls search: year",
        "   2.1 s  read 2 sources: [s1] A history of the town and of all its ri…, [s2] b.txt",
        "   2.2 s  reasoner search done, 1.2 s",
        "   4.2 s  reasoner wrote · 34 tokens, 2.0 s",
        "   6.2 s  step 3 · verifier wrote · 34 tokens, 2.0 s",
    ]


class Heard(io.StringIO):
    """A stream that sets an event when its second line is written."""

    def __init__(self) -> None:
        super().__init__()
        self.second = asyncio.Event()

    def flush(self) -> None:
        if self.getvalue().count("\n") == 2:
            self.second.set()


async def test_a_silence_is_told_with_what_is_waited_for() -> None:
    for counts, told in (
        (None, r" +… waiting for planner \(0 s, 1 tokens\)\n"),
        (CellCounts(8), r" +0\.. s  0 of 8\n"),
    ):
        heard = Heard()
        view = Lines(shell_of(heard), counts, heartbeat=0.02)
        view(TurnStarted("planner", "planner"))
        view(TurnText("planner", "I th", reasoning=False))
        keeping = asyncio.create_task(view.keep())
        await asyncio.wait_for(heard.second.wait(), 10)
        keeping.cancel()
        assert re.match(told, heard.getvalue())


async def test_a_role_that_only_reads_so_far_says_how_much_and_an_interrupted_subtask_is_not_waited_for() -> None:
    heard = Heard()
    view = Lines(shell_of(heard), heartbeat=0.02)
    view(SubtaskIssued("1", "compute it"))
    view(TurnStarted("1/code", "code", prompt=900))
    view(TurnStarted("planner", "planner", prompt=2700))
    keeping = asyncio.create_task(view.keep())
    await asyncio.wait_for(heard.second.wait(), 10)
    assert (
        "waiting for subtask 1 · code (0 s, reads about 900 tokens), planner (0 s, reads about 2,700 tokens)"
        in heard.getvalue()
    )
    heard.second.clear()
    heard.truncate(heard.seek(0))
    view(SubtaskDone("1", "code", "Nothing.", ok=False))
    await asyncio.wait_for(heard.second.wait(), 10)
    keeping.cancel()
    assert heard.getvalue().splitlines()[1].endswith("waiting for planner (0 s, reads about 2,700 tokens)")


def test_a_turn_that_broke_off_is_not_waited_for_when_the_next_role_begins() -> None:
    view, tree = Lines(shell_of(io.StringIO())), watching()
    for event in (TurnStarted("verifier", "verifier"), TurnStarted("verifier.2", "verifier")):
        view(event)
        tree(event)
    assert len(view.waiting) == len(tree.planner.busy) == 2
    for event in (TurnStarted("1/code", "code"), TurnStarted("planner", "planner")):
        view(event)
        tree(event)
    assert [name for name, _ in view.waiting] == list(tree.planner.busy) == ["1/code", "planner"]


def test_counts_tell_failures_rate_cost_and_time_left() -> None:
    told, counts = io.StringIO(), CellCounts(4)
    lines = Lines(shell_of(told), counts, every=0.0)
    counts.began -= 10
    counts.add("failed", 10, 0.25)
    lines.update()
    assert told.getvalue() == "  10.0 s  1 of 4 · 1 failed · 6.0 a minute · $0.2500 · about 30 s left\n"
    assert [format_duration(seconds) for seconds in (0.42, 30, 620, 7500)] == [
        "0.4 s",
        "30 s",
        "10 min 20 s",
        "2 h 5 min",
    ]


def test_a_line_is_short_and_holds_no_control_characters() -> None:
    assert brief("\x1b]0;title\x07\x1b[31mred\x1b[0m\nnext\tword") == "red next word"
    assert len(brief("x" * 500)) == 160


def drawn(view: Drawing) -> str:
    out = io.StringIO()
    Console(file=out, width=100, color_system=None).print(view.draw())
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def watching(width: int = 100) -> RunTree:
    view = RunTree(shell_of(io.StringIO()))
    view.console.width = width
    return view


def test_the_tree_shows_planner_subtasks_experts_and_tools() -> None:
    view = watching()
    for event in RUN:
        view(event)
    assert drawn(view) == (
        "When? (m)\n"
        "├── 1. find the year\n"
        "│   └── simple_search: a page states it\n"
        "│       ├── search founding year (0.2 s)\n"
        "│       ├── browse url 'a.txt', intent 'year': no such document (failed, 0.1 s)\n"
        "│       └── It was 1967.\n"
        "├── note: all 10 calls are used\n"
        "└── insufficient evidence · 3 calls · 2,100 tokens · $0.0123"
    )


TRACEBACK = 'File "<call 1>", line 2\n    sqrt(100) = 10\n    ^^^^^^^^^\nSyntaxError: cannot assign to function call\n'


def test_a_program_that_failed_shows_its_error_and_not_the_beginning_of_its_traceback() -> None:
    failed = ToolEnded("planner", "python", False, TRACEBACK, 0.1)
    told = io.StringIO()
    Lines(shell_of(told))(failed)
    view = watching()
    view(RunStarted("r1", "When?", "hira", {"*": "m"}))
    view(ToolStarted("planner", "python", {"code": "sqrt(100) = 10"}))
    view(failed)
    assert view.planner.tools == [("python sqrt(100) = 10: SyntaxError: cannot assign to function call", 0.1, False)]
    assert told.getvalue().endswith("planner python failed, 0.1 s: SyntaxError: cannot assign to function call\n")


def test_a_notice_of_a_model_that_loads_goes_when_it_writes() -> None:
    view = watching()
    view(RunStarted("r1", "When?", "hira", {"*": "m"}))
    view(Notice("planner: llama.cpp is loading m (0.5 GB), 1 s so far", endpoint="m"))
    view(Notice("planner: interrupted; answering from the results so far"))
    view(TurnText("planner", "I", reasoning=False))
    assert [notice.text for notice in view.notices] == ["planner: interrupted; answering from the results so far"]


def test_the_tree_shows_how_far_the_documents_are_read_until_the_run_begins() -> None:
    view = watching()
    view(DocumentsRead(2_500, 10_000))
    assert "███░░░░░░░░░ reading documents: 2,500 of 10,000" in drawn(view)
    view(RunStarted("r1", "When?", "hira", {"*": "m"}))
    assert "reading documents" not in drawn(view)


def test_the_tree_shows_what_is_being_waited_for() -> None:
    view = watching()
    view(RunStarted("r1", "When?", "hira", {"*": "m"}))
    view(SubtaskIssued("1", "find it"))
    view(TurnStarted("1/code", "code"))
    view(ToolStarted("1/code", "python", {"code": "print(1)"}))
    text = drawn(view)
    assert "python print(1) …" in text
    assert "code · 0 s · reads" in text


def test_the_tree_shows_what_the_role_at_work_writes_how_fast_and_what_was_read() -> None:
    view = watching()
    view(RunStarted("r1", "When?", "rag", {"*": "m"}))
    for at in range(1, 6):
        view(SourceRead(f"s{at}", "document", f"page {at}", f"{at}.txt"))
    view(TurnStarted("reasoner", "reasoner"))
    for word in ["It ", "was ", *(f"{year}, " for year in range(1000, 1100)), "\x1b[31mthen", "\n", "[bold]1967"]:
        view(TurnText("reasoner", word, reasoning=False))
    text = drawn(view)
    assert "read 2 more, [s3] page 3, [s4] page 4, [s5] page 5" in text
    assert "reasoner · 0 s · 105 tokens" in text
    lines = text.splitlines()
    at = next(at for at, line in enumerate(lines) if "reasoner · " in line)
    shown = lines[at + 1 : at + 4]
    assert shown[-1].endswith("then [bold]1967"), "as it is, without what would style it"
    assert all("10" in line and len(line) < 100 for line in shown)
    view(TurnEnded("reasoner", "reasoner", "…", Usage(1, 10, 105)))
    assert "1967" not in drawn(view), "what was written is shown while it is written"


def test_a_meter_shows_what_was_spent_against_its_limits() -> None:
    view = watching()
    view(RunStarted("r1", "When?", "hira", {"*": "m"}, {"tokens": 9_000, "cost": 0.5, "seconds": 60}))
    view(TurnEnded("planner", "planner", "…", Usage(1, 4_000, 500, cost=0.0123)))
    assert "██████░░░░░░ · 4,500 of 9,000 tokens · $0.0123 of $0.5 · 0 of 60 s · 1 call" in drawn(view)


def test_the_table_has_a_row_for_each_cell_and_a_bar() -> None:
    counts = CellCounts(2, ["hira", "[bold]rag[/]"])
    counts.add("answered", 1_000, 0.5, cell="hira", correct=1.0)
    with CountTable(shell_of(io.StringIO()), counts) as view:
        text = drawn(view)
    assert re.search(r"hira +1/2 +100 % right +1,000 +\$0.5000", text)
    assert "[bold]rag[/]" in text
    assert "███░░░░░░░░░ 1 of 4 · 100 % right" in text


def seen(one: object) -> bool:
    """Return whether garbage collections visit the object."""
    return any(other is one for other in gc.get_objects())


def test_what_is_loaded_is_left_out_of_collections_and_threads_switch_often_as_long_as_it_lasts() -> None:
    often, usual = gc.get_threshold(), sys.getswitchinterval()
    loaded: list[object] = []
    with short_pauses():
        assert not seen(loaded)
        assert gc.get_threshold()[2] > often[2]
        assert sys.getswitchinterval() < usual / 5
    assert seen(loaded)
    assert (gc.get_threshold(), sys.getswitchinterval()) == (often, usual)


def test_of_many_runs_an_endpoint_is_named_once_when_it_is_asked_again_and_once_when_calls_pause() -> None:
    printed: list[str] = []
    read = tell_waiting(printed.append)
    for endpoint in ("http://a/v1", "http://a/v1", "http://b/v1"):
        for role, wait in (("planner", 1), ("reasoner", 2)):
            read(Notice(f"{role}: status 503; trying again in {wait} s ({wait + 1} of 5)", endpoint=endpoint))
            read(Notice(f"{role}: it has failed 5 times; continuing in {wait} s", endpoint=endpoint))
            read(Notice(f"{role}: the oldest parts are removed"))
    once = ["planner: status 503; trying again in 1 s (2 of 5)", "planner: it has failed 5 times; continuing in 1 s"]
    assert printed == once * 2
