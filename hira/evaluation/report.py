"""What an evaluation leaves in its folder: `summary.json`, `summary.md`, `manifest.json` and `report.html`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hira.core.errors import UsageError
from hira.evaluation.cells import Cell
from hira.evaluation.manifest import manifest
from hira.evaluation.page import page
from hira.evaluation.record import Record, read
from hira.evaluation.run import PLAN, RECORDS, Evaluation
from hira.evaluation.summary import FETCHES, SEARCHES, Row, as_json, rows


def write(evaluation: Evaluation) -> list[Row]:
    """Write all of it, from the records alone; the same records make the same summary."""
    plan, folder = evaluation.plan, evaluation.folder
    found = _written(folder, evaluation.records, plan.cells, plan.data, plan.metric, len(plan.items))
    _json(folder / "manifest.json", manifest(plan, found))
    return found


def rewrite(folder: Path) -> list[Row]:
    """Write the report of a folder again from its plan and records, without asking anything."""
    path = folder / PLAN
    if not path.is_file():
        raise UsageError(f"{folder} holds no evaluation", fix="name an output folder of `hira eval`")
    plan = json.loads(path.read_text(encoding="utf-8"))
    cells = [Cell(**cell) for cell in plan["cells"]]
    return _written(folder, read(folder / RECORDS), cells, plan["data"], plan["metric"], len(plan["questions"]))


def _written(
    folder: Path, records: Sequence[Record], cells: Sequence[Cell], data: str, metric: str, questions: int
) -> list[Row]:
    found = rows(records, cells)
    told = {"data": data, "metric": metric, "questions": questions, "rows": [*map(as_json, found)]}
    _json(folder / "summary.json", told)
    (folder / "summary.md").write_text(markdown(found, data, metric), encoding="utf-8")
    (folder / "report.html").write_text(page(found, records, cells, told), encoding="utf-8")
    return found


def _json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n", encoding="utf-8")


def markdown(found: Sequence[Row], data: str, metric: str) -> str:
    """The tables: all of it, then by category, then what ended early."""
    lines = [f"# {data}, scored by {metric}", "", *table(HEAD, [_cells(row) for row in found])]
    if names := list(dict.fromkeys(name for row in found for name in row.categories)):
        shown = [[row.name, *(_right(row, name) for name in names)] for row in found]
        lines += ["", "## By category", "", *table(["", *names], shown)]
        spent = [[row.name, *(_spent(row, name) for name in names)] for row in found]
        lines += ["", "## Completion tokens and tool calls of a question", "", *table(["", *names], spent)]
    if any(len(row.roles) > 1 for row in found):
        shown = [[row.name, ", ".join(f"{role} {calls:.2f}" for role, calls in row.roles.items())] for row in found]
        lines += ["", "## Calls of each role", "", *table(["", "calls of a question"], shown)]
    if several := [row for row in found if row.seeds > 1]:
        shown = [[row.name, str(row.seeds), percent(row.pass_k), percent(row.voted)] for row in several]
        lines += ["", "## Several seeds", "", *table(["", "k", "pass@k", "majority"], shown)]
    if failures := [(row.name, kind, count) for row in found for kind, count in row.failures.items()]:
        shown = [[name, kind, str(count)] for name, kind, count in failures]
        lines += ["", "## What ended a run early", "", *table(["", "kind", "runs"], shown)]
    return "\n".join(lines) + "\n"


HEAD = [
    "", "questions", "unscored", "accuracy", "95 %", "score", "calls", "tokens", "completion tokens", "tool calls",
    "citations supported", "search ok", "fetch ok", "cost",
]  # fmt: skip


def _cells(row: Row) -> list[str]:
    interval = row.accuracy
    checked = sum(row.verdicts.values())
    return [
        row.name,
        f"{row.asked:,}",
        str(row.asked - row.scored),
        percent(interval.value) if interval else "–",
        f"{percent(interval.low)}–{percent(interval.high)}" if interval else "–",
        "–" if row.value is None else f"{row.value:.3f}",
        f"{row.calls:.1f}",
        f"{row.tokens:,.0f}",
        f"{row.written:,.0f}",
        f"{row.interactions:.1f}",
        percent(row.verdicts.get("supported", 0) / checked) if checked else "–",
        percent(row.success_rate(SEARCHES)),
        percent(row.success_rate(FETCHES)),
        "–" if row.cost is None else f"${row.cost:,.2f}",
    ]


def _right(row: Row, category: str) -> str:
    one = row.categories.get(category)
    return f"{percent(one.accuracy)} ({one.right} of {one.scored})" if one else "–"


def _spent(row: Row, category: str) -> str:
    """Length of the reasoning and interactions with the environment (HiRA, Fig. 5)."""
    one = row.categories.get(category)
    return f"{one.written:,.0f} · {one.interactions:.1f}" if one else "–"


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown; a bar within a cell is escaped."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in (head, rule, *body)]
