"""`hira eval`: many questions in several ways, scored and reported, in a folder that can be resumed."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hira.cli import INTERRUPTED, OK, report_failure
from hira.cli.dry_run import print_evaluation_bound
from hira.cli.many import short_pauses, tell_waiting
from hira.cli.progress import CellCounts
from hira.cli.running import announce_model, open_view, show_progress
from hira.cli.shell import Shell, format_json
from hira.core.errors import UsageError, did_you_mean
from hira.evaluation import report
from hira.evaluation.cells import Cell, ablation, grid, sweep
from hira.evaluation.data import Selection, load
from hira.evaluation.record import Record
from hira.evaluation.run import Evaluation, EvaluationPlan, among
from hira.evaluation.scorers import scorer_of
from hira.evaluation.tables import TABLES, Table
from hira.workflows import WORKFLOWS


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """The options of all kinds of `eval`; those that a kind lacks have their defaults."""

    what: str
    settings: Mapping[str, Any]
    data: str = ""
    workflow: tuple[str, ...] | str = ()
    """Names of workflows, several separated by commas."""
    models: tuple[str, ...] = ()
    subtasks: Sequence[int] = ()
    """The limits that `sweep` tries."""
    category: tuple[str, ...] = ()
    """Labels of the questions to ask."""
    sample: int | None = None
    """The number of random questions."""
    seed: int = 0
    limit: int | None = None
    """The number of first questions."""
    column: tuple[tuple[str, str], ...] = ()
    """Columns of a file with the parts of a question that they hold."""
    split: str = ""
    config: str = ""
    repeats: int = 1
    metric: str = ""
    """The way of scoring, by default the set's own."""
    judge: str | None = None
    concurrency: int = 8
    output: str = ""
    ray: str = ""
    dry_run: bool = False
    json: bool = False
    quiet: bool = False
    folders: tuple[str, ...] = ()
    """Evaluations that `diff` compares or `candidates` reads."""
    file: str = ""
    """The file of labels or preferences."""
    way: tuple[str, ...] = ()
    """Ways of scoring that `preferences` measures."""


def eval(options: EvalOptions, shell: Shell) -> int:  # noqa: A001 - the command's name
    if options.what in _OTHERS:
        shell.say(_OTHERS[options.what](options, shell))
        return OK
    table = TABLES.get(options.data.partition("=")[0]) if options.what == "run" else None
    flags = {name: value for name, value in options.settings.items() if name != "workflow"}
    named = options.workflow or (table.workflows if table else "hira" if options.what != "run" else "")
    workflows = read_workflows(named or shell.load_settings(flags).workflow)
    general = shell.load_settings(flags | ({"workflow": workflows[0]} if len(workflows) == 1 else {}))
    # a role that only some of the workflows have is no mistake for the others
    known = frozenset[str]().union(*(WORKFLOWS[name]().roles for name in workflows))
    general = general.with_origins({f"roles.{role}": "default" for role in general.roles if role in known})
    chosen = (options.category, options.sample, options.limit, options.seed, dict(options.column))
    data = load(options.data, Selection(*chosen, options.split, options.config), shell.folder)
    if data.docs and not (flags.get("docs") or flags.get("search")):
        general = general.with_values({"docs": data.docs, "search": ""}, f"the documents of {data.name}")
    # the default differs by command: each resumes its own evaluation
    name = Path(data.name).stem + ("" if options.what == "run" else f"-{options.what}")
    folder = shell.folder / (options.output or Path("eval") / name)
    if data.file and among(data.file, general.docs):
        general = general.with_values({"exclude": (*general.exclude, data.file)}, "the questions")
    if within := [str(path) for path in (data.file, folder) if path and among(path, general.docs)]:
        shell.remark(f"excluded from the documents because it contains reference answers: {' and '.join(within)}")
    cells = tuple(make_cells(options, workflows, table))
    plan = EvaluationPlan(data.name, data.items, cells, general, options.metric or data.metric, options.concurrency)
    if options.dry_run:
        return print_evaluation_bound(plan, options.judge, shell, as_json=options.json)
    return asyncio.run(_evaluate(plan, folder, options, shell))


def make_cells(options: EvalOptions, workflows: list[str], table: Table | None = None) -> list[Cell]:
    models, repeats, is_ablation = options.models, options.repeats, options.what == "ablate"
    if options.what == "run":
        return grid(workflows, models, repeats, table)
    if len(workflows) != 1:
        what = "an ablation" if is_ablation else "a sweep"
        raise UsageError(f"{what} takes one workflow", fix="name one with --workflow")
    (name,) = workflows
    return ablation(name, models, repeats) if is_ablation else sweep(options.subtasks, name, models, repeats)


def read_workflows(named: Sequence[str] | str) -> list[str]:
    """The workflows, from flags that may be repeated and may name several."""
    lines = [named] if isinstance(named, str) else named
    names = [name.strip() for line in lines for name in line.split(",") if name.strip()]
    if "all" in names:
        return list(WORKFLOWS)
    if strange := [name for name in names if name not in WORKFLOWS]:
        fix = f"name one of hira's own with --workflow; {did_you_mean(strange[0], WORKFLOWS)}"
        raise UsageError(f"unknown workflow {strange[0]!r}", fix=fix)
    return list(dict.fromkeys(names))


async def _evaluate(plan: EvaluationPlan, folder: Path, options: EvalOptions, shell: Shell) -> int:
    async with scorer_of(plan.metric, plan.settings, options.judge) as score:
        evaluation = Evaluation(plan, folder, score, ray=options.ray)
        counts = CellCounts(len(plan.items), [cell.name for cell in plan.cells])
        for record in evaluation.records:
            _count(counts, record)
        counts.before = counts.finished
        with open_view(shell, counts, quiet=options.quiet) as view:
            evaluation.readers = [] if options.quiet else [tell_waiting(view.say)]
            if counts.before:
                view.say(
                    f"{counts.before} of {plan.total} questions are finished in {folder} already, and are not repeated "
                    "even if the documents changed; to repeat them, delete the folder"
                )
            try:
                with short_pauses():
                    async with show_progress(evaluation, view):
                        async for record in evaluation.each():
                            _count(counts, record)
                            view.update()
            except asyncio.CancelledError:
                shell.remark(f"run the same command to ask what is missing in {folder}")
                return INTERRUPTED
    for line in dict.fromkeys(filter(None, map(announce_model, evaluation.sessions.values()))):
        shell.remark(line)
    rows = report.write(evaluation)
    summary = (folder / "summary.json").read_text(encoding="utf-8")
    shell.say((summary if options.json else report.markdown(rows, plan.data, plan.metric)).rstrip())
    shell.remark(f"the report is in {folder / 'report.html'}")
    if evaluation.failure:
        return report_failure(evaluation.failure, shell)
    if evaluation.left:
        shell.remark(f"{len(evaluation.left)} questions are missing; run the same command again to ask them")
        return INTERRUPTED
    return OK


def _count(counts: CellCounts, record: Record) -> None:
    counts.add(record.status, record.usage.tokens, record.cost, cell=record.cell, correct=record.score.correct)


def _diff(options: EvalOptions, shell: Shell) -> str:
    from hira.evaluation.difference import compare_folders, compare_within, format_difference

    first, *others = options.folders
    if len(others) > 2:
        raise UsageError(f"expected two ways of asking, got {len(others)}", fix="write hira eval diff FOLDER WAY WAY")
    if len(others) == 1:
        comparisons = compare_folders(shell.folder / first, shell.folder / others[0])
    else:
        comparisons = [compare_within(shell.folder / first, others)]
    if options.json:
        return format_json({"pairs": [asdict(comparison) for comparison in comparisons]})
    return format_difference(comparisons)


def _judge(options: EvalOptions, shell: Shell) -> str:
    from hira.evaluation.agreement import format_agreement, measure_agreement

    settings = shell.load_settings(options.settings)
    agreement = asyncio.run(measure_agreement(shell.folder / options.file, options.metric, settings))
    return format_json(asdict(agreement)) if options.json else format_agreement(agreement)


def _preferences(options: EvalOptions, shell: Shell) -> str:
    from hira.evaluation.preferences import evaluate_preferences, format_agreements

    settings = shell.load_settings(options.settings)
    agreements = asyncio.run(evaluate_preferences(shell.folder / options.file, options.way, settings))
    return format_json(list(map(asdict, agreements))) if options.json else format_agreements(agreements)


def _candidates(options: EvalOptions, shell: Shell) -> str:
    from hira.evaluation.preferences import choose_candidates, find_sound, read_reports

    reports = read_reports([shell.folder / folder for folder in options.folders])
    if options.settings.get("model"):
        settings = shell.load_settings(options.settings)
        sound = asyncio.run(find_sound(reports, settings))
        shell.remark(f"{len(reports) - len(sound)} of {len(reports)} reports have evident faults and are left out")
        reports = sound
    rows = choose_candidates(reports)
    shell.remark(f"{len(rows)} pairs; write first or second into preferred, then: hira eval preferences FILE")
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


_OTHERS: Mapping[str, Callable[[EvalOptions, Shell], str]] = {
    "diff": _diff,
    "judge": _judge,
    "preferences": _preferences,
    "candidates": _candidates,
}
"""The commands that ask no questions. Each returns what it prints."""
