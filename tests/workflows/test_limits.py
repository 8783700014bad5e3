"""The limits of every workflow: the least that each option may be, and the most that each role can take."""

from dataclasses import fields
from typing import Any

import pytest

from hira.core.errors import UsageError
from hira.core.policy import Usage
from hira.workflows import WORKFLOWS
from hira.workflows.bound import Sizes, add_bounds

SIZES = Sizes(prompt=1_000, reply=10, result=100)
LOOP_OF_10 = (25, 47_500, 250)
"""25 turns: each of 10 calls and an unreadable one before it, 2 repeats, a cut reply, the closing turn and that cut.
Prompts: 25 · 1,000, the replies before each, 10 · 300, and the results, 100 · (45 + 15 · 10)."""
EXPERTS = {
    "coordinator": (80, 3_280_400, 800),
    "simple_search": (30, 58_300, 300),
    **dict.fromkeys(("code", "multimodal", "reader", "deep_search"), (250, 475_000, 2_500)),
    "look": (100, 100_000, 1_000),
}
"""Of ten subtasks, each of which two experts may work on, so that two works are distilled. Simple search: two plans, (2 · 1,000 + 10), and an answer, 2 · 1,000 + 2 · 10 + 3 · 6 · 100."""
MOST: dict[str, dict[str, tuple[int, int, int]]] = {
    "hira": {"planner": (25, 29_950, 250), **EXPERTS},
    "auto": {"planner": (25, 29_950, 250), **EXPERTS, "reasoner": (7, 10_110, 70)},
    "plan-and-solve": {"planner": (8, 8_610, 80), **EXPERTS},
    "mars": {"system2": (25, 29_950, 250), "system1": (10, 60_000, 100)},
    "marsrl": {"solver": (3, 4_800, 30), "verifier": (10, 16_100, 100), "corrector": (9, 14_580, 90)},
    "matpo": {"planner": (47, 65_370, 470), "worker": (940, 2_668_200, 9_400)},
    "mams": {"search": (77, 163_680, 770), "state": (200, 1_303_000, 2_000), "report": (200, 1_303_000, 2_000)},
    "direct": {"reasoner": (5, 5_100, 50)},
    "rag": {"reasoner": (5, 10_600, 50)},
    "search-o1": {"reasoner": (25, 29_950, 250), "reader": (10, 61_000, 100)},
    "webthinker": {"reasoner": (45, 61_800, 450), "deep_search": (500, 950_000, 5_000)},
    "codeact": {"reasoner": LOOP_OF_10},
    "multimodal": {"reasoner": LOOP_OF_10, "look": (10, 10_000, 100)},
    "react": {"reasoner": (45, 123_900, 450), "look": (20, 20_000, 200)},
    "react-report": {"report": (105, 557_100, 1_050)},
}


def read(usage: Usage) -> tuple[int, int, int]:
    return usage.calls, usage.prompt_tokens, usage.completion_tokens


def bound(name: str, **options: Any) -> dict[str, tuple[int, int, int]]:
    return {role: read(usage) for role, usage in WORKFLOWS[name](**options).bound(SIZES).items()}


@pytest.mark.parametrize("name", WORKFLOWS)
def test_the_most_that_each_role_can_take(name: str) -> None:
    assert bound(name) == MOST[name]


def test_bounds_by_hand() -> None:
    turns = 2 * 3 + 2 + 3
    replies = 10 * sum(range(turns))
    results = 100 * (0 + 1 + 2 + 3 * (turns - 3))
    assert read(SIZES.bound_loop(3, 100)) == (turns, turns * 1_000 + replies + results, turns * 10)
    assert read(Usage(1, 2, 3).times(4)) == (4, 8, 12)
    assert bound("matpo", planner=False) == {"worker": (47, 133_410, 470)}
    window = 2_000
    assert bound("matpo", planner=False, window=window, reply=1_000)["worker"] == (47, 47 * window, 470)


def test_of_alternatives_the_one_that_takes_most_is_added() -> None:
    rows = {"planner": Usage(1, 10, 1), "code": Usage(5, 20, 2), "multimodal": Usage(2, 25, 2), "look": Usage(1, 30, 3)}
    assert read(add_bounds(rows, [{"code"}, {"multimodal", "look"}])) == (1 + 5, 10 + 55, 1 + 5), (
        "calls of the one, tokens of the other"
    )
    assert read(add_bounds(rows)) == (9, 85, 8)
    priced = {"code": Usage(1, 100, 1, cost=1.0), "reader": Usage(1, 10, 1, cost=2.0)}
    most = add_bounds(priced, [{"code"}, {"reader"}])
    assert (*read(most), most.cost) == (1, 100, 1, 2.0), "the tokens of the one, the cost of the other"
    free = {"reader": Usage(1, 10, 1, cost=0.0), "code": Usage(1, 100, 1, cost=0.0)}
    assert read(add_bounds(free, [{"reader"}, {"code"}])) == (1, 100, 1), "a model that costs nothing takes tokens, too"


LEAST: dict[str, dict[str, int]] = {
    "mars": {"max_turns": 1, "queries": 1},
    "marsrl": {"passes": 1, "rounds": 1, "tries": 1},
    "matpo": {"max_subtasks": 1, "worker_calls": 1, "parallel": 1, "reply": 1, "window": 4_097},
    "mams": {"max_turns": 1, "several": 1, "window": 5_000},
    "react-report": {"max_turns": 2, "several": 1},
}


@pytest.mark.parametrize(("name", "option"), [(name, option) for name in LEAST for option in LEAST[name]])
def test_an_option_may_be_this_little_and_no_less(name: str, option: str) -> None:
    least = LEAST[name][option]
    assert getattr(WORKFLOWS[name](**{option: least}), option) == least
    with pytest.raises(UsageError):
        WORKFLOWS[name](**{option: least - 1})


def test_other_options_that_cannot_work_are_refused() -> None:
    for name, options in (
        ("matpo", {"results": "system"}),
        ("mars", {"without": "browse"}),
        ("mams", {"chunk": 24_001}),
        ("mams", {"chunk": 1}),
        ("mars", {"window": 1}),
    ):
        with pytest.raises(UsageError):
            WORKFLOWS[name](**options)
    assert WORKFLOWS["mams"](chunk=24_000)
    assert {option.name for option in fields(WORKFLOWS["mars"])} >= {"window", "without"}  # type: ignore[arg-type]
