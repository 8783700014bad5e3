"""Evaluations end as they would have, whatever happened on the way."""

import json
import os
import sqlite3
import time
from contextlib import aclosing, closing
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from hira.core.errors import AccessDenied, UsageError
from hira.core.events import ToolEnded, ToolStarted
from hira.core.policy import Usage
from hira.evaluation import report
from hira.evaluation.cells import Cell, ablation, grid, sweep
from hira.evaluation.data import Selection, load
from hira.evaluation.difference import compare_folders
from hira.evaluation.files import Item
from hira.evaluation.mini import DOCS
from hira.evaluation.record import Record, Score, read
from hira.evaluation.rewards.answers import Gated
from hira.evaluation.rewards.rubrics import RewardWeights
from hira.evaluation.run import JOURNAL, RECORDS, Evaluation, EvaluationPlan, EvaluationTask, ToolCounts, digest
from hira.evaluation.scorers import match
from hira.evaluation.summary import rows
from hira.journal.lines import encode_line
from hira.runtime.settings import Settings
from hira.testing import Endpoint, ScriptedPolicy
from hira.workflows import WORKFLOWS

EVERY = Selection()


def plan_of(
    tmp_path: Path, cells: list[Cell] | None = None, wanted: Selection = EVERY, **settings: object
) -> EvaluationPlan:
    general = Settings(model="offline", docs=(DOCS,), cache=tmp_path / "cache", **settings)  # type: ignore[arg-type]
    data = load("mini", wanted, tmp_path)
    return EvaluationPlan("mini", data.items, tuple(cells or grid(["hira"], [], 1)), general)


async def evaluated(plan: EvaluationPlan, folder: Path, most: int | None = None) -> Evaluation:
    evaluation = Evaluation(plan, folder, match)
    async with aclosing(evaluation.each()) as records:  # what is in flight ends before another evaluation begins
        async for _ in records:
            if most is not None and len(evaluation.records) >= most:
                break
    return evaluation


async def test_the_summary_is_the_same_whichever_came_first_and_wherever_it_was_broken_off(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, wanted=Selection(limit=12))
    whole = await evaluated(plan, tmp_path / "whole")
    report.write(whole)
    folder = tmp_path / "broken"
    begun = await evaluated(plan, folder, most=5)
    assert len(begun.left) == 7
    with (folder / RECORDS).open("a", encoding="utf-8") as file:
        file.write('{"cell": "hira/seed-0", "id": "si')  # the machine went down in the middle of a line
    finished = await evaluated(plan, folder)
    assert not finished.left
    report.write(finished)
    assert (folder / "summary.json").read_bytes() == (tmp_path / "whole" / "summary.json").read_bytes()
    assert len(read(folder / RECORDS)) == 12


async def test_a_folder_of_another_evaluation_is_not_mixed_up(tmp_path: Path) -> None:
    await evaluated(plan_of(tmp_path, wanted=Selection(limit=1)), tmp_path / "out")
    with pytest.raises(UsageError, match="another evaluation") as failed:
        Evaluation(plan_of(tmp_path, wanted=Selection(limit=2)), tmp_path / "out", match)
    assert "--output" in failed.value.fix


async def test_a_refused_key_ends_the_evaluation_and_leaves_the_questions_for_another_time(tmp_path: Path) -> None:
    with Endpoint(faults=lambda _: "401") as endpoint:
        plan = plan_of(tmp_path, [Cell("hira", "m")], Selection(limit=20), base_url=endpoint.base_url, api_key="wrong")
        evaluation = await evaluated(plan, tmp_path / "out")
        assert isinstance(evaluation.failure, AccessDenied)
        assert len(evaluation.left) == 20
        assert len(endpoint.requests) < 20


async def finished_but_unrecorded(plan: EvaluationPlan, folder: Path) -> None:
    """As after a crash between the last answer and its record: the journal holds the runs, the records are gone."""
    await evaluated(plan, folder)
    (folder / RECORDS).unlink()


async def test_a_question_that_somebody_else_is_at_is_left_and_not_recorded_as_wrong(tmp_path: Path) -> None:
    roles = {"planner": {"temperature": 0.1}, "code": {"temperature": 0.2}}
    plan = plan_of(tmp_path, wanted=Selection(limit=3), roles=roles)
    await finished_but_unrecorded(plan, tmp_path / "out")
    with closing(sqlite3.connect(tmp_path / "out" / JOURNAL)) as journal, journal:
        (run,) = journal.execute("select id from runs limit 1").fetchone()
        alive = (os.getpid(), time.time(), run)
        journal.execute("update runs set status = 'running', ended = null, pid = ?, heard = ? where id = ?", alive)
    again = plan_of(tmp_path, wanted=Selection(limit=3), roles=dict(reversed(roles.items())))
    evaluation = await evaluated(again, tmp_path / "out")
    assert evaluation.failure is None
    assert len(evaluation.left) == 1, "settings in another order are the same evaluation"
    assert {one.status for one in evaluation.records} <= {"answered", "insufficient_evidence"}, "neither is lost"


def record(cell: str, at: int, correct: bool | None, **fields: object) -> Record:
    score = Score(correct, None if correct is None else float(correct), "match")
    roles = {"planner": Usage(2, 100, 20)}
    known = {"category": "c", "question": f"q{at}", "gold": "g", "answer": "a", "status": "answered", "score": score}
    return Record(cell=cell, id=str(at), **{**known, "roles": roles, **fields})  # type: ignore[arg-type]


def test_calls_are_counted_by_role_and_tool() -> None:
    """HiRA, Fig. 5: interactions; rubrics paper, Table 6: turns of MaMs and calls of tools a sample."""
    cell = Cell("mams")
    many = {
        "roles": {"search": Usage(8, 10, 5), "state": Usage(20, 10, 5)},
        "tools": {"search": (30, 29), "browse": (10, 9)},
    }
    few = {"roles": {"search": Usage(7, 10, 5)}, "tools": {}}
    (row,) = rows([record(cell.name, 1, None, **many), record(cell.name, 2, None, **few)], [cell])
    assert (row.calls_by_role, row.tool_calls, row.completion_tokens) == ({"search": 7.5, "state": 10.0}, 20.0, 7.5)
    assert (row.categories["c"].tool_calls, row.categories["c"].completion_tokens) == (20.0, 7.5)
    assert row.success_rate(["search"]) == 29 / 30


def test_seeds_are_averaged_by_question_and_any_right_one_passes() -> None:
    cells = [Cell("hira", "", seed) for seed in range(2)]
    records = [
        record(cells[0].name, 1, True, answer="right"),
        record(cells[1].name, 1, False, answer="wrong"),
        record(cells[0].name, 2, False, answer="wrong"),
        record(cells[1].name, 2, False, answer="wrong"),
    ]
    (row,) = rows(records, cells)
    assert row.accuracy
    assert (row.seeds, row.accuracy.value, row.pass_at_k) == (2, 0.25, 0.5)
    assert row.majority == 0.5  # of a draw the first answer counts
    assert rows(records[::-1], cells) == [row]


def test_a_record_is_read_back_whatever_separates_the_lines_of_an_answer(tmp_path: Path) -> None:
    kept = [
        record("hira/seed-0", at, True, answer=f"one{sign}two") for at, sign in enumerate("\u2028\u2029\x85\x0b\n", 1)
    ]
    (tmp_path / RECORDS).write_bytes(b"".join(map(encode_line, kept)))
    assert read(tmp_path / RECORDS) == kept


def test_an_ablation_is_the_papers_own() -> None:
    """HiRA, Table 2; MARS, Table 3; MATPO, Fig. 6. Each cell is a setting that its workflow takes."""

    def changes(workflow: str) -> list[tuple[str, dict[str, object]]]:
        cells = ablation(workflow, [], 1)
        settings = [cell.settings(Settings(model="offline")) for cell in cells]
        options = [dict(one.workflows.get(workflow, {})) for one in settings]
        if workflow == "hira":
            assert all(one == {"faithful": True} for one in options)
            return [(cell.variant, dict.fromkeys(one.without)) for cell, one in zip(cells, settings, strict=True)]
        for option in options:
            WORKFLOWS[workflow](**option)
        return [(cell.variant, option) for cell, option in zip(cells, options, strict=True)]

    parts = ("reasoning-transfer", "memory", "search", "code", "multimodal")
    assert changes("hira") == [("", {}), *((f"without {part}", {part: None}) for part in parts)]
    assert [option.get("without", "") for _, option in changes("mars")] == [
        "", "python", "search", "scholar", "search,scholar", "python,scholar", "python,search",
    ]  # fmt: skip
    assert [option for _, option in changes("matpo")] == [
        {},
        {"recap": False, "block_leaks": False},
        {"recap": False, "summary": False},
        {"planner": False},
        {"planner": False, "summary": False, "block_leaks": False},
    ]
    with pytest.raises(UsageError, match="no ablation of 'rag'"):
        ablation("rag", [], 1)


def test_a_sweep_is_the_papers_figure() -> None:
    cells = sweep([1, 15], "hira", [], 1)
    assert [cell.changes.get("max_subtasks") for cell in cells] == [1, 15, 1, 15]
    assert len({cell.name for cell in cells}) == 4
    assert [cell.name for cell in sweep([1, 3], "matpo", [], 1)] == [
        "matpo/1 subtask/seed-0",
        "matpo/3 subtasks/seed-0",
    ]
    settings = cells[2].settings(Settings(workflows={"hira": {"parallel": 2}}))
    assert settings.workflows["hira"]["describe_experts"] is False


async def test_a_difference_without_spread_is_valid_json(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, wanted=Selection(limit=3))
    for name, right in (("a", False), ("b", True)):
        evaluation = Evaluation(plan, tmp_path / name, match)
        lines = [encode_line(record(plan.cells[0].name, at, right)) for at in range(3)]
        (evaluation.folder / RECORDS).write_bytes(b"".join(lines))
    (pair,) = compare_folders(tmp_path / "a", tmp_path / "b")
    assert pair.difference.value == 1
    assert pair.effect is None
    json.dumps(asdict(pair), allow_nan=False)


def test_the_least_of_each_number_is_accepted_and_less_is_refused(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    for least, make in (
        (1, lambda number: replace(plan, concurrency=number)),
        (1, lambda number: grid(["hira"], [], number)),
        (1, lambda number: load("mini", Selection(limit=number), tmp_path)),
        (1, lambda number: load("mini", Selection(sample=number), tmp_path)),
        (1, lambda number: Gated(ScriptedPolicy([]), number)),
        (0, lambda number: RewardWeights(preference=number)),
        (0, lambda number: RewardWeights(quality=number)),
        (0, lambda number: RewardWeights(judge_scale=number)),
    ):
        make(least)
        with pytest.raises(UsageError, match=f"at least {least}") as caught:
            make(least - 1)
        assert caught.value.fix or "--repeats" in caught.value.what
    with pytest.raises(UsageError, match="not all 0"):
        RewardWeights(0, 0)


def test_a_plan_counts_every_question_in_every_cell_and_two_plans_differ_by_whatever_changes_scores(
    tmp_path: Path,
) -> None:
    plan = plan_of(tmp_path, grid(["hira", "rag"], ["m", "n"], 2), Selection(limit=3))
    assert plan.total == 3 * 2 * 2 * 2
    assert plan.to_json()["digest"] == digest(plan.items)
    (first, *others) = plan.items
    for change in (
        {"id": "x"}, {"question": "x"}, {"answers": ("x",)}, {"every": ("x",)}, {"category": "x"},
        {"meta": {"rubric": "x"}}, {"meta": {"criteria": "x"}}, {"meta": {"reference": "x"}},
    ):  # fmt: skip
        assert digest([replace(first, **change), *others]) != digest(plan.items), change  # type: ignore[arg-type]
    assert digest([replace(first, meta={"note": "x"}), *others]) == digest(plan.items), "no score depends on it"
    changed = Cell("hira", changes={"without": frozenset({"memory", "code", "search"}), "docs": (Path("a"),)})
    (cell,) = replace(plan, cells=(changed,)).to_json()["cells"]
    assert cell["changes"] == {"without": ["code", "memory", "search"], "docs": ["a"]}, "the same in every process"
    assert "journal" not in plan.to_json()["settings"]
    assert "cache" not in plan.to_json()["settings"]


async def test_every_cell_is_asked_every_question_one_at_a_time_if_so_wished(tmp_path: Path) -> None:
    plan = replace(plan_of(tmp_path, grid(["rag", "direct"], [], 1), Selection(limit=2)), concurrency=1)
    evaluation = await evaluated(plan, tmp_path / "out")
    assert [(one.cell, one.id) for one in evaluation.records] == [
        (cell.name, item.id) for item in plan.items for cell in plan.cells
    ], "cells alternate"
    assert not evaluation.left
    stopped = Evaluation(plan, tmp_path / "stopped", match)
    async for _ in stopped.each():
        stopped.stop()
    assert 1 <= len(stopped.records) < plan.total, "no other question begins"
    assert len(stopped.left) == plan.total - len(stopped.records)


def test_questions_and_runs_have_the_names_under_which_earlier_evaluations_recorded_them() -> None:
    """Other names would begin them anew."""
    item = Item("1", "How high?", ("31 m",), meta={"rubric": "r"})
    assert digest([item]) == "a7b2ee8e2c66645c"
    assert EvaluationTask(Cell("hira", "m"), item).run("plan") == "eval-13fbd302936a434d12e5"


def test_results_are_not_written_among_the_documents(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    plan = plan_of(tmp_path)
    plan = replace(plan, settings=plan.settings.model_copy(update={"docs": (docs,)}))
    for folder in (docs, tmp_path):
        with pytest.raises(UsageError, match="is or contains the documents"):
            Evaluation(plan, folder, match)
    Evaluation(plan, tmp_path / "out", match)
    (tmp_path / "out" / "plan.json").write_text("no plan")
    with pytest.raises(UsageError, match="the plan cannot be read"):
        Evaluation(plan, tmp_path / "out", match)


def test_a_page_that_a_search_of_works_named_counts_as_a_paper() -> None:
    """MARS, Table 4: pages and papers are counted apart, and how many of the calls succeeded."""
    counts = ToolCounts()

    def call(number: int, tool: str, url: str = "", text: str = "", *, ok: bool = True) -> None:
        counts(ToolStarted("system2", tool, {"url": url} if url else {"queries": ["q"]}, number))
        counts(ToolEnded("system2", tool, ok, text, 0.0, call=number))

    call(1, "search", text="[s1] Page (https://page.example)")
    call(2, "scholar", text="[s2] Work (https://work.example)")
    call(3, "browse", "https://page.example")
    call(4, "browse", "https://work.example")
    call(5, "browse", "https://work.example", ok=False)
    call(6, "browse", "https://page.example", ok=False)
    assert counts.tools == {"search": (1, 1), "scholar": (1, 1), "browse": (2, 1), "paper": (2, 1)}
