"""The live tree."""

import io

from rich.console import Console
from test_progress import RUN

from hira.cli.live import Watching
from hira.events import RunStarted, SubtaskIssued, ToolStarted, TurnEnded, TurnStarted
from hira.policy import Usage


def drawn(view: Watching) -> str:
    out = io.StringIO()
    Console(file=out, width=100, color_system=None).print(view.tree())
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def watching(width: int = 100) -> Watching:
    view = Watching(io.StringIO())
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


def test_the_tree_shows_what_is_being_waited_for() -> None:
    view = watching()
    view(RunStarted("r1", "When?", "hira", {"*": "m"}))
    view(SubtaskIssued("1", "find it"))
    view(TurnStarted("1/code", "code"))
    view(ToolStarted("1/code", "python", {"code": "print(1)"}))
    text = drawn(view)
    assert "python print(1) …" in text
    assert "code · 0 s" in text


def test_a_meter_shows_what_was_spent_against_its_limits() -> None:
    view = watching()
    view(RunStarted("r1", "When?", "hira", {"*": "m"}, {"tokens": 9_000, "cost": 0.5, "seconds": 60}))
    view(TurnEnded("planner", "planner", "…", Usage(1, 4_000, 500, cost=0.0123)))
    assert "██████░░░░░░ · 4,500 of 9,000 tokens · $0.0123 of $0.5 · 0 of 60 s · 1 call" in drawn(view)


def test_what_was_read_is_shown_as_it_is_and_styles_nothing() -> None:
    view = watching()
    view(SubtaskIssued("1", "[bold red]loud[/] \x1b[31m[s1]"))
    assert "1. [bold red]loud[/] [s1]" in drawn(view)
