"""`hira eval`: many questions in several ways, scored and reported, in a folder that can be resumed."""

import argparse
import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from hira.cli import INTERRUPTED, OK, code_of, explain
from hira.cli.dry_run import print_evaluation_bound
from hira.cli.parser import collect_flags
from hira.cli.progress import CellCounts
from hira.cli.running import open_view, show_progress
from hira.cli.shell import Shell, short_pauses
from hira.core.errors import UsageError, did_you_mean
from hira.evaluation import report
from hira.evaluation.cells import Cell, ablation, grid, sweep
from hira.evaluation.data import Selection, load
from hira.evaluation.record import Record
from hira.evaluation.run import Evaluation, EvaluationPlan, among
from hira.evaluation.scorers import scorer_of
from hira.evaluation.tables import TABLES, Table
from hira.runtime.settings import load as load_settings
from hira.workflows import WORKFLOWS


def eval(args: argparse.Namespace, shell: Shell) -> int:  # noqa: A001 - the command's name
    if args.what in _OTHERS:
        return _OTHERS[args.what](args, shell)
    table = TABLES.get(args.data.partition("=")[0]) if args.what == "run" else None
    workflows = read_workflows(getattr(args, "workflow", None) or (list(table.workflows) if table else None))
    args.workflow = workflows[0] if len(workflows) == 1 else None
    general = load_settings(collect_flags(args), shell.environ, shell.folder, shell.home)
    # a role that only some of the workflows have is no mistake for the others
    known = frozenset[str]().union(*(WORKFLOWS[name]().roles for name in workflows))
    general = general.with_origins({f"roles.{role}": "default" for role in general.roles if role in known})
    data = load(args.data, read_wanted(args), shell.folder)
    if data.docs and not (args.docs or args.search):
        general = general.with_values({"docs": data.docs, "search": ""}, f"the documents of {data.name}")
    folder = shell.folder / (args.output or Path("eval") / _name_folder(args.what, data.name))
    if data.file and among(data.file, general.docs):
        general = general.with_values({"exclude": (*general.exclude, data.file)}, "the questions")
    if within := [str(path) for path in (data.file, folder) if path and among(path, general.docs)]:
        shell.remark(f"excluded from the documents because it contains reference answers: {' and '.join(within)}")
    cells = tuple(make_cells(args, workflows, table))
    plan = EvaluationPlan(data.name, data.items, cells, general, args.metric or data.metric, args.concurrency)
    if args.dry_run:
        return print_evaluation_bound(plan, args.judge, shell, as_json=args.json)
    return asyncio.run(_evaluate(plan, folder, args, shell))


def _name_folder(what: str, data: str) -> str:
    """Return the name of the default output folder, which differs by command: each resumes its own evaluation."""
    name = Path(data).stem
    return name if what == "run" else f"{name}-{what}"


def make_cells(args: argparse.Namespace, workflows: list[str], table: Table | None = None) -> list[Cell]:
    models = args.models or []
    if args.what == "ablate":
        if len(workflows) != 1:
            raise UsageError("an ablation takes one workflow", fix="name one with --workflow")
        return ablation(workflows[0], models, args.repeats)
    if args.what == "sweep":
        if len(workflows) != 1:
            raise UsageError("a sweep takes one workflow", fix="name one with --workflow")
        return sweep(_numbers(args.subtasks), workflows[0], models, args.repeats)
    return grid(workflows, models, args.repeats, table)


def read_workflows(named: list[str] | str | None) -> list[str]:
    """The workflows, from flags that may be repeated and may name several."""
    lines = [named] if isinstance(named, str) else named or ["hira"]
    names = [name.strip() for line in lines for name in line.split(",") if name.strip()]
    if "all" in names:
        return list(WORKFLOWS)
    if strange := [name for name in names if name not in WORKFLOWS]:
        raise UsageError(f"unknown workflow {strange[0]!r}", fix=did_you_mean(strange[0], WORKFLOWS))
    return list(dict.fromkeys(names))


def read_wanted(args: argparse.Namespace) -> Selection:
    columns = dict(map(_column, args.column))
    return Selection(tuple(args.category or ()), args.sample, args.limit, args.seed, columns, args.split, args.config)


def _column(text: str) -> tuple[str, str]:
    part, equals, name = text.partition("=")
    if not (part and equals and name):
        raise UsageError(f"--column {text!r} does not name a column", fix="write --column question=NAME")
    return part, name


def _numbers(text: str) -> list[int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{text!r} is not a list of numbers", fix="write --max-subtasks 1,2,3") from None
    if min(numbers) < 1:
        raise UsageError(f"{min(numbers)} is not a number of subtasks", fix="give 1 or more")
    return numbers


async def _evaluate(plan: EvaluationPlan, folder: Path, args: argparse.Namespace, shell: Shell) -> int:
    async with scorer_of(plan.metric, plan.settings, args.judge) as score:
        evaluation = Evaluation(plan, folder, score, ray=args.ray or "")
        counts = CellCounts(len(plan.items), [cell.name for cell in plan.cells])
        for record in evaluation.records:
            _count(counts, record)
        counts.before = counts.finished
        with open_view(shell, counts, quiet=args.quiet) as view:
            if counts.before:
                view.say(f"{counts.before} of {plan.total} questions are finished in {folder} already")
            try:
                with short_pauses():
                    async with show_progress(evaluation, view):
                        async for record in evaluation.each():
                            _count(counts, record)
                            view.update()
            except asyncio.CancelledError:
                shell.remark(f"run the same command to ask what is missing in {folder}")
                return INTERRUPTED
    rows = report.write(evaluation)
    shell.say(
        (folder / "summary.json").read_text(encoding="utf-8").rstrip()
        if args.json
        else "\n".join(report.markdown(rows, plan.data, plan.metric).splitlines())
    )
    shell.remark(f"the report is in {folder / 'report.html'}")
    if evaluation.failure:
        explain(evaluation.failure, shell)
        return code_of(evaluation.failure)
    if evaluation.left:
        shell.remark(f"{len(evaluation.left)} questions are missing; run the same command again to ask them")
        return INTERRUPTED
    return OK


def _count(counts: CellCounts, record: Record) -> None:
    counts.add(record.status, record.usage.tokens, record.cost, cell=record.cell, correct=record.score.correct)


def _diff(args: argparse.Namespace, shell: Shell) -> int:
    from hira.evaluation.difference import compare_folders, compare_within, format_difference

    first, *others = args.folders
    if len(others) > 2:
        raise UsageError(f"expected two ways of asking, got {len(others)}", fix="write hira eval diff FOLDER WAY WAY")
    if len(others) == 1:
        comparisons = compare_folders(shell.folder / first, shell.folder / others[0])
    else:
        comparisons = [compare_within(shell.folder / first, others)]
    shell.say(
        json.dumps({"pairs": [asdict(comparison) for comparison in comparisons]}, ensure_ascii=False, indent=2)
        if args.json
        else format_difference(comparisons)
    )
    return OK


def _judge(args: argparse.Namespace, shell: Shell) -> int:
    from hira.evaluation.agreement import format_agreement, measure_agreement

    settings = load_settings(collect_flags(args), shell.environ, shell.folder, shell.home)
    agreement = asyncio.run(measure_agreement(shell.folder / args.file, args.metric, settings))
    shell.say(json.dumps(asdict(agreement), ensure_ascii=False, indent=2) if args.json else format_agreement(agreement))
    return OK


def _preferences(args: argparse.Namespace, shell: Shell) -> int:
    from hira.evaluation.preferences import evaluate_preferences, format_agreements

    settings = load_settings(collect_flags(args), shell.environ, shell.folder, shell.home)
    agreements = asyncio.run(evaluate_preferences(shell.folder / args.file, args.way or (), settings))
    text = (
        json.dumps([asdict(agreement) for agreement in agreements], ensure_ascii=False, indent=2)
        if args.json
        else format_agreements(agreements).rstrip()
    )
    shell.say(text)
    return OK


def _candidates(args: argparse.Namespace, shell: Shell) -> int:
    from hira.evaluation.preferences import choose_candidates, find_sound, read_reports

    reports = read_reports([shell.folder / folder for folder in args.folders])
    if args.model:
        settings = load_settings(collect_flags(args), shell.environ, shell.folder, shell.home)
        sound = asyncio.run(find_sound(reports, settings))
        shell.remark(f"{len(reports) - len(sound)} of {len(reports)} reports have evident faults and are left out")
        reports = sound
    rows = choose_candidates(reports)
    shell.say("\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
    shell.remark(f"{len(rows)} pairs; write first or second into preferred, then: hira eval preferences FILE")
    return OK


_OTHERS: Mapping[str, Callable[[argparse.Namespace, Shell], int]] = {
    "diff": _diff,
    "judge": _judge,
    "preferences": _preferences,
    "candidates": _candidates,
}
