"""`hira-train doctor`: find problems of a run, or of its configuration."""

import argparse
import json
from collections.abc import Sequence
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
from hira.trainers.records import count_of

MARKS = {"ok": "ok     ", "warning": "warning", "fault": "FAULT  ", "unseen": "skipped"}


def doctor(args: argparse.Namespace, shell: Shell) -> int:
    """Print the findings. The exit code is 1 if there is a fault, so that a script can stop a run."""
    findings = examine(_look_at(args, shell))
    counts = {verdict: sum(one.verdict == verdict for one in findings) for verdict in MARKS}
    if args.json:
        shell.say(json.dumps([asdict(one) for one in findings], indent=2, ensure_ascii=False))
    else:
        shell.say("\n".join(map(_format, _join_skipped(findings))))
        warnings, faults = (count_of(counts[verdict], verdict) for verdict in ("warning", "fault"))
        shell.say(f"\n{counts['ok']} ok, {warnings}, {faults}, {counts['unseen']} skipped")
    return BUG if counts["fault"] else OK


def _join_skipped(findings: Sequence[RuleFinding]) -> list[RuleFinding]:
    """Return the findings, with one for all rules that were skipped for the same reason, at the end."""
    skipped: dict[tuple[str, str], list[str]] = {}
    for one in findings:
        if one.verdict == "unseen":
            skipped.setdefault((one.found, one.fix), []).append(one.rule)
    joined = [RuleFinding(", ".join(rules), "unseen", found, fix) for (found, fix), rules in skipped.items()]
    return [one for one in findings if one.verdict != "unseen"] + joined


def _format(one: RuleFinding) -> str:
    fix = f"\n         → {one.fix}" if one.fix else ""
    return f"{MARKS[one.verdict]}  {one.rule}: {one.found}{fix}"


def _look_at(args: argparse.Namespace, shell: Shell) -> RunFiles:
    """Read the folder of a run, or a configuration. A run may be examined without its data and its model."""
    first, *others = args.configuration
    folder = shell.folder / first
    if folder.is_dir():
        configuration = assembly.open_run(folder).model_copy(update={"out": Path(first)})
        if others:
            what = f"{others[0]!r} cannot override a run that exists"
            raise UsageError(what, where=str(folder), fix=f"check the run alone: hira-train doctor {first}")
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
