"""Every field of a summary, worked out by hand, and every table that is made of it."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import hira
from hira.core.policy import Usage
from hira.evaluation.cells import Cell
from hira.evaluation.record import Record, Score
from hira.evaluation.report import markdown, prompts
from hira.evaluation.statistics import wilson
from hira.evaluation.summary import Category, SummaryRow, as_json, rows

CELLS = [Cell("mams", "m", seed, variant="short") for seed in range(2)]


def record(seed: int, name: str, correct: bool | None, value: float | None = None, **fields: Any) -> Record:
    score = Score(correct, value, "race", parts=fields.pop("parts", {}), extracted=fields.pop("extracted", ""))
    known = {"category": "", "question": f"{name}?", "gold": "g", "answer": "a", "status": "answered"}
    return Record(cell=CELLS[seed].name, id=name, score=score, **{**known, **fields})


RECORDS = [
    record(
        0,
        "q1",
        True,
        0.75,
        category="easy | en",
        cost=0.25,
        subtasks=3,
        roles={"search": Usage(4, 100, 20), "report": Usage(1, 50, 30)},
        tools={"search": (3, 2), "browse": (2, 1), "python": (1, 0)},
        verdicts={"supported": 2, "unsupported": 1},
        parts={"depth": 0.5, "readability": 1.0},
        extracted="Alta",
    ),
    record(
        1,
        "q1",
        False,
        0.25,
        category="easy | en",
        cost=0.5,
        subtasks=1,
        roles={"search": Usage(2, 60, 10)},
        tools={"search": (1, 1), "paper": (2, 2)},
        verdicts={"supported": 1},
        parts={"depth": 0.25},
        extracted="Brava",
    ),
    record(0, "q2", None, category="hard", status="failed", error="RateLimited: too many", answer=""),
    record(
        1, "q2", False, 0.0, category="hard", status="unverified", roles={"search": Usage(2, 30, 20)}, extracted="X"
    ),
]


def summarise() -> SummaryRow:
    (row,) = rows(RECORDS, CELLS)
    return row


def test_every_field_of_a_row() -> None:
    row = summarise()
    assert (row.workflow, row.model, row.variant, row.seeds, row.asked, row.scored) == ("mams", "m", "short", 2, 4, 3)
    assert row.accuracy
    assert row.accuracy.value == pytest.approx((0.5 + 0.0) / 2), "each question counts once"
    assert (row.pass_at_k, row.majority, row.value) == (0.25, 0.5, pytest.approx(1 / 3))
    assert (row.calls, row.tokens, row.completion_tokens) == (9 / 4, 320 / 4, 80 / 4)
    assert row.calls_by_role == {"report": 1 / 4, "search": 8 / 4}
    assert (row.tool_calls, row.subtasks, row.cost) == (9 / 4, 1.0, 0.75)
    assert row.statuses == {"answered": 2, "failed": 1, "unverified": 1}
    assert (row.failures, row.reasons) == ({"RateLimited": 1}, {"RateLimited": "too many"})
    assert row.citations == {"supported": 3, "unsupported": 1}
    assert row.tools == {"browse": (2, 1), "paper": (2, 2), "python": (1, 0), "search": (4, 3)}
    assert row.parts == {"depth": 0.375, "readability": 1.0}
    easy, hard = Category(2, 1, 30.0, 4.5), Category(1, 0, 10.0, 0.0)
    assert row.categories == {"easy": easy, "en": easy, "hard": hard}
    assert (easy.accuracy, Category(0, 0, 1.0, 1.0).accuracy) == (0.5, None)
    assert (row.success_rate(["search"]), row.success_rate(["browse", "paper"])) == (3 / 4, 3 / 4)
    assert row.success_rate(["none"]) is None


def test_the_same_records_in_another_order_and_of_other_cells_change_nothing() -> None:
    other = Cell("rag", "m")
    assert rows(RECORDS[::-1], CELLS) == rows(RECORDS, [other, *CELLS]) == [summarise()]


def test_what_nothing_was_scored_or_paid_for_has_no_figure() -> None:
    (row,) = rows([record(seed, "q", None) for seed in range(2)], CELLS)
    assert (row.asked, row.scored) == (2, 0)
    nothing = (row.accuracy, row.pass_at_k, row.majority, row.value, row.cost)
    assert nothing == (None, None, None, None, None)
    assert (row.parts, row.failures, row.categories, row.tools) == ({}, {}, {}, {})
    (alone,) = rows([record(0, "q", True, 1.0)], CELLS[:1])
    assert (alone.seeds, alone.pass_at_k, alone.majority) == (1, None, None), "one seed has neither"
    assert alone.accuracy == wilson(1, 1)
    (two,) = rows([record(0, "q1", True), record(0, "q2", False)], CELLS[:1])
    assert two.accuracy == wilson(1, 2)


def test_a_report_that_has_a_score_and_no_accuracy_is_not_unscored() -> None:
    (row,) = rows([record(0, "q", None, 0.75, parts={"depth": 0.5})], CELLS[:1])
    assert (row.asked, row.scored, row.accuracy, row.value) == (1, 1, None, 0.75)
    cells = read_tables(markdown([row], "made", "race"))["# made, scored by race"]
    assert (cells["questions"], cells["unscored"], cells["accuracy"], cells["score"]) == ("1", "0", "–", "0.750")


def test_questions_that_differ_between_tries_have_the_interval_of_the_bootstrap() -> None:
    (row,) = rows([record(seed, f"q{at}", at > 0 and seed == 0) for at in range(2) for seed in range(2)], CELLS)
    assert row.accuracy
    assert (row.accuracy.value, row.accuracy.low, row.accuracy.high) == (0.25, 0.0, 0.5)


def test_pass_at_k_takes_the_fewest_tries_of_a_question() -> None:
    three = [Cell("mams", "m", seed) for seed in range(3)]
    tries = {"q1": (True, False, False), "q2": (False, None, None)}
    kept = [
        Record(three[seed].name, name, "", name, "g", "a", "answered", Score(right, None, "em"))
        for name, marks in tries.items()
        for seed, right in enumerate(marks)
    ]
    (row,) = rows(kept, three)
    assert row.pass_at_k == pytest.approx((1 / 3 + 0) / 2), "k = 1, since only one try of q2 was scored"


def test_the_majority_ignores_case_and_space_and_of_a_draw_takes_the_first() -> None:
    kept = [
        record(0, "q1", True, extracted="Rui  Lobo"),
        record(1, "q1", True, extracted="rui lobo"),
        record(0, "q2", True, answer="The answer is \\boxed{5}"),
        record(1, "q2", False, answer="The answer is \\boxed{6}"),
        record(0, "q3", True, answer=""),
        record(1, "q3", True, answer=""),
    ]
    (row,) = rows(kept, CELLS)
    assert row.majority == pytest.approx(2 / 3), "no answer is no majority"


def test_the_summary_as_json() -> None:
    written = as_json(summarise())
    assert written["accuracy"] == 0.25
    assert written["accuracy_95"] == [0.0, 0.5]
    assert written["value"] == 0.333
    assert written["tools"]["search"] == {"made": 4, "ok": 3}
    assert (written["search_success"], written["fetch_success"]) == (0.75, 0.75)
    easy = {"scored": 2, "right": 1, "completion_tokens": 30.0, "tool_calls": 4.5, "accuracy": 0.5}
    assert written["categories"]["en"] == easy
    assert written["calls_by_role"] == {"report": 0.25, "search": 2.0}
    (nothing,) = rows([record(0, "q", None)], CELLS[:1])
    assert (as_json(nothing)["accuracy"], as_json(nothing)["accuracy_95"]) == (None, None)


def read_tables(text: str) -> dict[str, dict[str, str]]:
    """The one row of each table by its heading, as a cell for each column."""
    tables = {}
    for part in text.split("\n## "):
        lines = [line for line in part.splitlines() if line.startswith("|")]
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in (lines[0], lines[2])]
        tables[part.partition("\n")[0]] = dict(zip(*cells, strict=True))
    return tables


def test_every_table_of_the_report() -> None:
    tables = read_tables(markdown([summarise()], "made", "race"))
    name = summarise().name
    assert tables.pop("# made, scored by race") == {
        "": name,
        "questions": "4",
        "unscored": "1",
        "accuracy": "25.0",
        "95 %": "0.0–50.0",
        "score": "0.333",
        "calls": "2.2",
        "tokens": "80",
        "completion tokens": "20",
        "tool calls": "2.2",
        "citations supported": "75.0",
        "search ok": "75.0",
        "fetch ok": "75.0",
        "cost": "$0.75",
    }
    right = {"easy": "50.0 (1 of 2)", "en": "50.0 (1 of 2)", "hard": "0.0 (0 of 1)"}
    assert tables.pop("By category") == {"": name, **right}
    spent = tables.pop("Completion tokens and tool calls of a question")
    assert spent.keys() == {"", *right}
    assert ("30" in spent["easy"], "4.5" in spent["easy"]) == (True, True)
    assert tables.pop("Parts of the score") == {"": name, "depth": "37.5", "readability": "100.0", "overall": "33.3"}
    assert tables.pop("Calls of each role") == {"": name, "calls of a question": "report 0.25, search 2.00"}
    tools = {"browse": "0.5", "paper": "0.5", "python": "0.25", "search": "1"}
    assert tables.pop("Calls of each tool") == {"of a question": name, **tools}
    assert tables.pop("Several seeds") == {"": name, "k": "2", "pass@k": "25.0", "majority": "50.0"}
    assert tables.pop("What ended a run early") == {
        "": name,
        "kind": "RateLimited",
        "runs": "1",
        "first reason": "too many",
    }
    assert not tables


def test_tables_without_content_are_left_out_and_what_is_unknown_is_a_dash() -> None:
    (row,) = rows([record(0, "q", None, roles={"planner": Usage(1, 1, 1)})], CELLS[:1])
    (cells,) = read_tables(markdown([row], "made", "race")).values()
    unknown = [name for name, cell in cells.items() if cell == "–"]
    assert unknown == ["accuracy", "95 %", "score", "citations supported", "search ok", "fetch ok", "cost"]


def test_the_average_of_a_papers_table_is_the_mean_of_its_columns() -> None:
    """HiRA, Table 2: five columns, each of which counts once, however many questions it has."""
    labels = ("gaia | gaia without file", "gaia | gaia file understanding", "webwalkerqa", "hle", "simpleqa")
    right = (True, False, True, True, True)
    kept = [record(0, f"q{at}", right[at], category=label) for at, label in enumerate(labels)]
    more = [record(0, f"more{at}", False, category="hle") for at in range(3)]

    def read_average(records: list[Record], data: str = "hira-table1") -> str | None:
        return read_tables(markdown(rows(records, CELLS[:1]), data, "hira"))["By category"].get("average")

    assert read_average(kept) == "80.0"
    assert read_average([*kept, *more]) == "65.0", "a quarter of hle"
    assert read_average(kept[:4]) == "–", "a column is missing"
    assert read_average([*kept[:4], record(0, "open", None, category="simpleqa")]) == "–"
    assert read_average(kept, "mini") is None
    assert read_average(kept, "mars-table1") is None, "its average is that of all questions"


def test_the_digest_of_every_prompt_is_in_the_manifest_and_of_no_other_text() -> None:
    home = Path(hira.__file__).parent
    each = prompts()["each"]
    planner = sha256((home / "agents" / "planner.md").read_bytes()).hexdigest()
    assert each["agents/planner.md"] == planner[: len(each["agents/planner.md"])]
    sent = {path.relative_to(home).as_posix() for path in home.rglob("*.md")}
    assert set(each) == {name for name in sent if not name.startswith("evaluation/mini/")}
    assert set(each) < sent, "the documents of the small set are not sent as prompts"
    assert {(len(digest), digest.isalnum()) for digest in each.values()} == {(12, True)}
    assert len(prompts()["all"]) == 16
