"""The progress of a run, as a person reads it."""

import asyncio
import io
import re
from pathlib import Path

from hira.cli.progress import Counts, Lines, brief, format_seconds
from hira.cli.shell import Shell
from hira.core.events import (
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
    Remembered("fact", "It was 1967 [s1, s2].", "s1, s2", at=3.0),
    Remembered("resource", "A list of years", "a.txt", at=3.0),
    Notice("all 10 calls are used", at=3.1),
    RunEnded("r1", "insufficient_evidence", "1967", Usage(3, 2000, 100, cost=0.0123), at=62.25),
]

GOLDEN = """\
   0.0 s  run r1 · workflow hira · model m
   1.5 s  planner wrote · 934 tokens, 1.5 s
   1.5 s  subtask 1: find the year
   1.6 s  subtask 1 → simple_search · 2 from memory: a page states it
   1.7 s  1/simple_search calls search: founding year
   1.9 s  1/simple_search search done, 0.2 s
   1.9 s  1/simple_search calls browse: url 'a.txt', intent 'year'
   2.0 s  1/simple_search browse failed, 0.1 s: browse failed: no such document
   2.0 s  read [s1] A history — a.txt
   3.0 s  subtask 1 done: It was 1967.
   3.0 s  remembered fact: It was 1967 [s1, s2].
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


class Heard(io.StringIO):
    """A stream that sets an event when its second line is written."""

    def __init__(self) -> None:
        super().__init__()
        self.second = asyncio.Event()

    def flush(self) -> None:
        if self.getvalue().count("\n") == 2:
            self.second.set()


async def test_a_silence_is_told_with_what_is_waited_for() -> None:
    for counts, told in ((None, r" +… waiting for planner \(0 s, 1 tokens\)\n"), (Counts(8), r" +0\.. s  0 of 8\n")):
        heard = Heard()
        view = Lines(shell_of(heard), counts, heartbeat=0.02)
        view(TurnStarted("planner", "planner"))
        view(TurnText("planner", "I th", reasoning=False))
        keeping = asyncio.create_task(view.keep())
        await asyncio.wait_for(heard.second.wait(), 10)
        keeping.cancel()
        assert re.match(told, heard.getvalue())


def test_counts_tell_failures_rate_cost_and_time_left() -> None:
    told, counts = io.StringIO(), Counts(4)
    lines = Lines(shell_of(told), counts, every=0.0)
    counts.began -= 10
    counts.add("failed", 10, 0.25)
    lines.update()
    assert told.getvalue() == "  10.0 s  1 of 4 · 1 failed · 6.0 a minute · $0.2500 · about 30 s left\n"
    assert [format_seconds(seconds) for seconds in (30, 600, 7200)] == ["30 s", "10 min", "2.0 h"]


def test_a_line_is_short_and_holds_no_control_characters() -> None:
    assert brief("\x1b]0;title\x07\x1b[31mred\x1b[0m\nnext\tword") == "red next word"
    assert len(brief("x" * 500)) == 160
