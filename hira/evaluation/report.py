"""The reports of an evaluation's folder: `summary.json`, `summary.md`, `manifest.json` and `report.html`."""

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import fmean
from typing import Any

from hira.agents.calls import SEARCHES
from hira.evaluation.page import page
from hira.evaluation.run import Evaluation, EvaluationPlan, digest
from hira.evaluation.summary import FETCHES, SummaryRow, as_json, rows
from hira.evaluation.tables import TABLES

PACKAGES = ("hira", "openai", "httpx", "litellm", "tiktoken", "torch", "transformers", "trl", "peft")


def manifest(plan: EvaluationPlan, rows: Sequence[SummaryRow]) -> dict[str, Any]:
    """Return versions, models, prompts, seeds, and the success rates of search and fetch."""
    return {
        "versions": versions(),
        "data": plan.data,
        "questions": len(plan.items),
        "questions_digest": digest(plan.items),
        "metric": plan.metric,
        "models": sorted({cell.model or plan.settings.model or "the default" for cell in plan.cells}),
        "workflows": sorted({cell.workflow for cell in plan.cells}),
        "seeds": sorted({cell.seed for cell in plan.cells}),
        "settings": plan.to_json()["settings"],
        "prompts_digest": prompts()["all"],
        "prompts": prompts()["each"],
        "search_success": {row.name: row.success_rate(SEARCHES) for row in rows},
        "fetch_success": {row.name: row.success_rate(FETCHES) for row in rows},
    }


@cache
def versions() -> Mapping[str, str]:
    versions = {"python": platform.python_version(), "platform": platform.system()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


@cache
def prompts() -> Mapping[str, Any]:
    """Return the digest of every prompt that hira sends, by its file, and of all together."""
    home = Path(__file__).parents[1]
    paths = {path.relative_to(home).as_posix(): path for path in home.rglob("*.md")}
    names = [name for name in sorted(paths) if not name.startswith("evaluation/mini/")]
    each = {name: hashlib.sha256(paths[name].read_bytes()).hexdigest()[:12] for name in names}
    return {"all": hashlib.sha256(repr(each).encode()).hexdigest()[:16], "each": each}


def write(evaluation: Evaluation) -> list[SummaryRow]:
    """Write all reports, from the records alone; the same records make the same summary."""
    plan, folder, records = evaluation.plan, evaluation.folder, evaluation.records
    summary = rows(records, plan.cells)
    shown = {"data": plan.data, "metric": plan.metric, "questions": len(plan.items), "rows": [*map(as_json, summary)]}
    _json(folder / "summary.json", shown)
    (folder / "summary.md").write_text(markdown(summary, plan.data, plan.metric), encoding="utf-8")
    (folder / "report.html").write_text(page(summary, records, plan.cells, shown), encoding="utf-8")
    _json(folder / "manifest.json", manifest(plan, summary))
    return summary


def _json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n", encoding="utf-8")


def markdown(summary: Sequence[SummaryRow], data: str, metric: str) -> str:
    """Return the tables: all questions, then by category, then the early ends."""
    lines = [f"# {data}, scored by {metric}", "", *format_table(HEAD, [_cells(row) for row in summary])]
    if names := list(dict.fromkeys(name for row in summary for name in row.categories)):
        lines += _tabulate_categories(summary, names, TABLES[data].averaged if data in TABLES else ())
    if parts := list(dict.fromkeys(name for row in summary for name in row.parts)):
        shown = [[row.name, *(percent(row.parts.get(name)) for name in parts), percent(row.value)] for row in summary]
        lines += ["", "## Parts of the score", "", *format_table(["", *parts, "overall"], shown)]
    if any(len(row.calls_by_role) > 1 for row in summary):
        spoken = [", ".join(f"{role} {calls:.2f}" for role, calls in row.calls_by_role.items()) for row in summary]
        shown = [[row.name, calls] for row, calls in zip(summary, spoken, strict=True)]
        lines += ["", "## Calls of each role", "", *format_table(["", "calls of a question"], shown)]
    if tools := sorted({tool for row in summary for tool in row.tools}):
        shown = [
            [row.name, *(f"{row.tools.get(tool, (0, 0))[0] / row.asked:.3g}" for tool in tools)] for row in summary
        ]
        lines += ["", "## Calls of each tool", "", *format_table(["of a question", *tools], shown)]
    if several := [row for row in summary if row.seeds > 1]:
        shown = [[row.name, str(row.seeds), percent(row.pass_at_k), percent(row.majority)] for row in several]
        lines += ["", "## Several seeds", "", *format_table(["", "k", "pass@k", "majority"], shown)]
    if shown := [
        [row.name, kind, str(count), row.reasons[kind]] for row in summary for kind, count in row.failures.items()
    ]:
        lines += ["", "## What ended a run early", "", *format_table(["", "kind", "runs", "first reason"], shown)]
    return "\n".join(lines) + "\n"


HEAD = [
    "", "questions", "unscored", "accuracy", "95 %", "score", "calls", "tokens", "completion tokens", "tool calls",
    "citations supported", "search ok", "fetch ok", "cost",
]  # fmt: skip


def _cells(row: SummaryRow) -> list[str]:
    interval = row.accuracy
    supported, checked = row.supported
    return [
        row.name,
        f"{row.asked:,}",
        str(row.asked - row.scored),
        percent(interval.value) if interval else "–",
        f"{percent(interval.low)}–{percent(interval.high)}" if interval else "–",
        "–" if row.value is None else f"{row.value:.3f}",
        f"{row.calls:.1f}",
        f"{row.tokens:,.0f}",
        f"{row.completion_tokens:,.0f}",
        f"{row.tool_calls:.1f}",
        percent(supported / checked) if checked else "–",
        percent(row.success_rate(SEARCHES)),
        percent(row.success_rate(FETCHES)),
        "–" if row.cost is None else f"${row.cost:,.2f}",
    ]


def _tabulate_categories(summary: Sequence[SummaryRow], names: Sequence[str], averaged: Sequence[str]) -> list[str]:
    """Return the tables by category: accuracy, with its mean over the `averaged` ones, a dash if one is missing; then
    the length of the reasoning and the interactions with the environment (HiRA, Fig. 5)."""
    rights, spent = [], []
    for row in summary:
        known = [row.categories.get(name) for name in names]
        right = [f"{percent(each.accuracy)} ({each.right} of {each.scored})" if each else "–" for each in known]
        if averaged:
            accuracies = [row.categories[name].accuracy for name in averaged if name in row.categories]
            shares = [share for share in accuracies if share is not None]
            right.append(percent(fmean(shares)) if len(shares) == len(averaged) else "–")
        rights.append([row.name, *right])
        used = [f"{each.completion_tokens:,.0f} · {each.tool_calls:.1f}" if each else "–" for each in known]
        spent.append([row.name, *used])
    head = ["", *names, *(["average"] if averaged else [])]
    lines = ["", "## By category", "", *format_table(head, rights)]
    return [*lines, "", "## Completion tokens and tool calls of a question", "", *format_table(["", *names], spent)]


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def format_table(head: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    """Return a table in Markdown; a bar within a cell is escaped."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in (head, rule, *body)]
