"""The report as a page: it shows what the records say, loads nothing, and lets no answer become markup."""

import re
from pathlib import Path

import pytest
from browser import browser, missing

from hira.core.policy import Usage
from hira.evaluation import report
from hira.evaluation.cells import Cell, ablation, sweep
from hira.evaluation.page import draw_bars, draw_points, page
from hira.evaluation.record import Record, Score
from hira.evaluation.statistics import Interval
from hira.evaluation.summary import rows

TOLD = {"data": "made", "metric": "match", "questions": 2}


def record(cell: Cell, at: int, *, correct: bool | None, answer: str = "an answer") -> Record:
    score = Score(correct, None if correct is None else float(correct), "match")
    return Record(
        cell.name, str(at), f"kind {at % 2}", f"question {at}?", "gold", answer, "answered", score,
        roles={"planner": Usage(at + 1, 900 * (at + 1), 40)}, tools={"search": (2, 1)}, verdicts={"supported": 1},
    )  # fmt: skip


def shown(cells: list[Cell], records: list[Record]) -> str:
    return page(rows(records, cells), records, cells, TOLD)


def test_nothing_that_a_model_wrote_becomes_markup() -> None:
    cell = Cell("hira")
    attack = "<script>alert(1)</script><img src=x onerror=alert(1)></style>"
    made = shown([cell], [record(cell, 1, correct=False, answer=attack)])
    assert "<script>alert" not in made
    assert "<img" not in made
    assert "&lt;script&gt;alert(1)" in made
    assert not re.search(r"<[a-z][^<>]*\s(?:src|href)=", made)


def test_an_ablation_is_shown_as_differences_and_what_is_unscored_as_such() -> None:
    ablated = ablation("hira", [], 1)
    made = shown(ablated, [record(cell, 1, correct=not cell.variant) for cell in ablated])
    assert made.count("-100.0") == 5
    cell = Cell("hira")
    assert 'class="unscored"' in shown([cell], [record(cell, 1, correct=None)])


def test_a_sweep_is_shown_as_one_line_for_each_variant() -> None:
    swept = sweep([1, 2, 4], "hira", [], 1)
    made = shown(swept, [record(cell, at, correct=at < 2) for cell in swept for at in range(3)])
    plot = made.partition("Accuracy against the limit of subtasks")[2].partition("</section>")[0]
    assert (plot.count('class="line"'), plot.count("<circle")) == (2, 6)
    assert "experts described" in plot
    assert "not described" in plot


def test_accuracy_is_shown_against_tokens_where_ways_can_be_compared() -> None:
    cells = [Cell("hira"), Cell("mars")]
    records = [record(cell, 1, correct=cell.workflow == "mars") for cell in cells]
    title = "Accuracy against tokens"
    plot = shown(cells, records).partition(title)[2].partition("</section>")[0]
    assert re.findall(r'class="label"[^>]*>(\w+)<', plot) == ["hira", "mars"]
    assert title not in shown(cells[:1], records[:1])


def test_plots_take_any_values() -> None:
    whole = Interval(1.0, 1.0, 1.0)
    assert draw_points([("a", [(1.0, whole)])], "limit").count("<circle") == 1
    powers = [(f"p{at}", [(10.0**at, whole)]) for at in range(8)]
    assert draw_points(powers, "tokens", logarithmic=True).count("<circle") == 8
    drawn = draw_bars([("a", None, None), ("b", 0.0, None), ("c", 1.0, whole)], "share", share=True)
    assert drawn.count("<rect") == 2
    assert "<svg" in draw_bars([], "tokens")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    cells = [Cell("hira"), Cell("mars")]
    records = [record(cell, at, correct=at != 3 or cell.workflow == "mars") for cell in cells for at in range(6)]
    made = shown(cells, records)
    (tmp_path / "report.html").write_text(made, encoding="utf-8")
    return tmp_path


@pytest.mark.heavy
@pytest.mark.skipif(bool(missing()), reason=missing())
def test_in_a_browser_questions_can_be_searched_and_opened(folder: Path) -> None:
    with browser(folder / "profile") as driven:
        driven.open(folder / "report.html")
        count = "return document.getElementById('count').textContent"
        assert driven.run(count) == "6 of 6"
        driven.run("document.querySelector('[data-kind=some]').click()")
        assert driven.run(count) == "1 of 6"
        driven.run("const one = document.querySelector('details:not([hidden])'); one.open = true")
        assert driven.run("return document.querySelectorAll('details[open] li.wrong').length") == 1
        assert driven.run("return document.querySelector('details[open] li.right h4').textContent").startswith("mars")
        driven.run(
            "const s = document.getElementById('wanted'); s.value = 'nowhere'; s.dispatchEvent(new Event('input'))"
        )
        assert driven.run(count) == "0 of 6"
        driven.size(400, 800)
        assert driven.run("return document.documentElement.scrollWidth") <= 400
        assert driven.run("return document.querySelectorAll('svg').length") >= 4


def test_the_table_for_people_escapes_what_would_break_it() -> None:
    assert report.format_table(["a|b"], [["1"]])[0] == "| a\\|b |"
