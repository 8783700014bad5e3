"""The live tree."""

import io
import re

from rich.console import Console
from test_progress import RUN, shell_of

from hira.cli.live import CountTable, Drawing, RunTree
from hira.cli.progress import Counts
from hira.core.events import (
    DocumentsRead,
    RunStarted,
    SourceRead,
    SubtaskIssued,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    TurnText,
)
from hira.core.policy import Usage


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
        "│       ├── browse url 'a.txt', intent 'year' (failed, 0.1 s)\n"
        "│       └── It was 1967.\n"
        "├── note: all 10 calls are used\n"
        "└── insufficient evidence · 3 calls · 2,100 tokens · $0.0123"
    )


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
    counts = Counts(2, ["hira", "[bold]rag[/]"])
    counts.add("answered", 1_000, 0.5, cell="hira", correct=1.0)
    with CountTable(shell_of(io.StringIO()), counts) as view:
        text = drawn(view)
    assert re.search(r"hira +1/2 +100 % right +1,000 +\$0.5000", text)
    assert "[bold]rag[/]" in text
    assert "███░░░░░░░░░ 1 of 4 · 100 % right" in text
