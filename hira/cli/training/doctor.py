"""`hira-train doctor`: find problems of a run, or of its configuration."""

import argparse
from dataclasses import replace
from pathlib import Path

from hira.cli import BUG, OK
from hira.cli.shell import Shell
from hira.cli.training.run import configured
from hira.core.errors import HiraError, UsageError
from hira.trainers import assembly
from hira.trainers.doctor import examine, worst
from hira.trainers.doctor.seen import Finding, Seen, as_json, read
from hira.trainers.doctor.template import notices
from hira.trainers.preflight import check_there, own_window
from hira.trainers.recipes import RECIPES

MARKS = {"ok": "ok     ", "warning": "warning", "fault": "FAULT  ", "unseen": "–      "}


def doctor(args: argparse.Namespace, shell: Shell) -> int:
    """Exit code 1 if there is a fault, so that a script can stop a run."""
    found = examine(seen_by(args, shell))
    if args.json:
        shell.say(as_json(found))
    else:
        for one in found:
            shell.say(line(one))
        counts = {verdict: sum(one.verdict == verdict for one in found) for verdict in MARKS}
        told = f"{counts['ok']} ok, {counts['warning']} warnings, {counts['fault']} faults, {counts['unseen']} not seen"
        shell.say(f"\n{told}")
    return BUG if worst(found) == "fault" else OK


def line(one: Finding) -> str:
    fix = f"\n         → {one.fix}" if one.fix else ""
    return f"{MARKS[one.verdict]}  {one.rule}: {one.told}{fix}"


def seen_by(args: argparse.Namespace, shell: Shell) -> Seen:
    """A run's folder, or what a configuration says."""
    first = shell.folder / args.configuration[0] if args.configuration else None
    if first is not None and first.is_dir():
        found = assembly.kept(first)
        if found is None:
            raise UsageError(
                f"there is no run in {args.configuration[0]!r}", fix="name the output folder of a run, its `out`"
            )
        return with_data(read(first, found), shell)
    configuration = configured(args, shell)
    plan = assembly.planned(configuration, shell.folder, shell.environ, Path(shell.home))
    check_there(plan, shell.folder)
    seen = Seen(configuration, problems=len(plan.problems), shared=plan.shared, unasked=plan.unasked)
    return with_model(seen, shell)


def with_data(seen: Seen, shell: Shell) -> Seen:
    """With what the run was made of, as far as it is still there: a run may be looked at on another machine."""
    configuration = seen.configuration
    try:
        found = assembly.problems_of(configuration.data, shell.folder, "train", RECIPES[configuration.recipe].data)
        problems = len(found)
    except HiraError:
        problems = None
    return with_model(replace(seen, problems=problems), shell)


def with_model(seen: Seen, shell: Shell) -> Seen:
    """With what the model's own files tell: its chat template and its window."""
    own = own_window(seen.configuration.model.name, shell.folder)
    return replace(seen, notices=notices(seen.configuration, shell.folder), window=own)
