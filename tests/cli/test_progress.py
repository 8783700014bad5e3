"""What a person reads while a run goes on."""

import asyncio

from hira.cli import batch_progress
from hira.cli.progress import Lines, brief
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
from hira.evaluation.cells import Cell

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
   3.0 s  remembered fact: It was 1967. (s1)
   3.1 s  note: all 10 calls are used
  62.2 s  insufficient evidence · 3 calls · 2,100 tokens · $0.0123"""


def test_each_notable_event_is_one_line() -> None:
    told: list[str] = []
    lines = Lines(told.append)
    for event in RUN:
        lines(event)
    assert "\n".join(told) == GOLDEN


async def test_a_silence_is_told_with_what_is_waited_for() -> None:
    told: list[str] = []
    heard = asyncio.Event()

    def tell(text: str) -> None:
        told.append(text)
        heard.set()

    lines = Lines(tell, heartbeat=0.02)
    lines(TurnStarted("planner", "planner"))
    keeping = asyncio.create_task(lines.keep())
    await asyncio.wait_for(heard.wait(), 10)
    keeping.cancel()
    assert told[0] == "          … waiting for planner (0 s)"


async def test_many_questions_are_told_on_while_none_of_them_ends() -> None:
    told: list[str] = []
    heard = asyncio.Event()

    def tell(text: str) -> None:
        told.append(text)
        if len(told) == 2:
            heard.set()

    cells = [Cell("hira", "m")]
    for lines in (
        batch_progress.BatchLines(tell, 8, heartbeat=0.02),
        batch_progress.EvaluationLines(tell, batch_progress.Tally(cells, 8, ()), heartbeat=0.02),
    ):
        async with batch_progress.keep_shown(lines):
            await asyncio.wait_for(heard.wait(), 10)
        assert all(" s  0 of 8" in line for line in told)
        told.clear()
        heard.clear()
    quiet = batch_progress.EvaluationLines(tell, batch_progress.Tally(cells, 8, ()), None, heartbeat=0.02)
    async with batch_progress.keep_shown(quiet):
        await asyncio.sleep(0.1)
    assert not told


def test_a_line_is_short_and_holds_no_control_characters() -> None:
    assert brief("\x1b]0;title\x07\x1b[31mred\x1b[0m\nnext\tword") == "red next word"
    assert len(brief("x" * 500)) == 160
