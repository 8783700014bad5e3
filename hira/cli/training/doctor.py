"""`hira-train doctor`: find problems of a run, or of its configuration."""

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path

from hira.cli import BUG, OK
from hira.cli.shell import Shell
from hira.cli.training.run import parse_configuration
from hira.core.errors import HiraError, UsageError
from hira.trainers import assembly
from hira.trainers.doctor import RuleFinding, RunFiles, examine, read_notices, read_run
from hira.trainers.preflight import check_inputs, own_window
from hira.trainers.recipes import RECIPES

MARKS = {"ok": "ok     ", "warning": "warning", "fault": "FAULT  ", "unseen": ""}


def doctor(args: argparse.Namespace, shell: Shell) -> int:
    """Print the findings. The exit code is 1 if there is a fault, so that a script can stop a run."""
    findings = examine(_look_at(args, shell))
    counts = {verdict: sum(one.verdict == verdict for one in findings) for verdict in MARKS}
    if args.json:
        shell.say(json.dumps([asdict(one) for one in findings], indent=2, ensure_ascii=False))
    else:
        for one in findings:
            if one.verdict != "unseen":
                shell.say(_format(one))
        names = {"ok": "ok", "warning": "warnings", "fault": "faults", "unseen": "not checked yet"}
        shell.say("\n" + ", ".join(f"{many} {names[verdict]}" for verdict, many in counts.items()))
    return BUG if counts["fault"] else OK


def _format(one: RuleFinding) -> str:
    fix = f"\n         → {one.fix}" if one.fix else ""
    return f"{MARKS[one.verdict]}  {one.rule}: {one.found}{fix}"


def _look_at(args: argparse.Namespace, shell: Shell) -> RunFiles:
    """Read the folder of a run, or a configuration. A run may be examined without its data and its model."""
    folder = shell.folder / args.configuration[0]
    if folder.is_dir():
        configuration = assembly.read_configuration(folder)
        if configuration is None:
            raise UsageError(f"there is no run in {args.configuration[0]!r}", fix="name the output folder of a run")
        try:
            kind = RECIPES[configuration.recipe].data
            problems, _ = assembly.read_problems(configuration.data, shell.folder, "train", kind)
        except HiraError:
            problems = ()
        seen = replace(read_run(folder, configuration), problems=len(problems) or None)
    else:
        configuration = parse_configuration(args, shell)
        plan = assembly.make_plan(configuration, shell.folder, shell.environ, Path(shell.home))
        check_inputs(plan, shell.folder)
        counts = {name: getattr(plan, name) for name in ("repeated", "shared", "unasked")}
        seen = RunFiles(configuration, problems=len(plan.problems), **counts)
    name = configuration.model.name
    try:
        return replace(seen, notices=read_notices(name, shell.folder), window=own_window(name, shell.folder))
    except UsageError:
        if folder.is_dir():  # the run has ended, and its model is on another machine
            return seen
        raise
