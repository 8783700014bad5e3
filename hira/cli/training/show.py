"""`hira-train show` and `doctor`: exams, metrics, sample rollouts and problems of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from hira.cli import BUG, OK
from hira.cli.shell import Shell
from hira.cli.training.run import TrainOptions, format_exam, parse_configuration
from hira.core.errors import HiraError, UsageError, count_of
from hira.core.sanitize import clean
from hira.trainers import assembly, records
from hira.trainers.assembly import open_run
from hira.trainers.doctor import RuleFinding, RunFiles, examine, read_notices
from hira.trainers.preflight import check_inputs, own_window
from hira.trainers.recipes import GRPO, RECIPES

USUAL = (
    "reward reward/accuracy reward/gain dead_groups turns entropy kl grad_norm rollout_seconds update_seconds".split()
)
_EIGHTHS = " ▁▂▃▄▅▆▇█"
OF_ROLES = ("reward", "length", "turns", "share", "sampler_drift")


@dataclass(frozen=True, slots=True)
class ShowOptions:
    run: str
    metrics: tuple[str, ...] = ()
    samples: int = 0
    """The number of last rollouts to show instead."""


def show(options: ShowOptions, shell: Shell) -> int:
    folder = shell.folder / options.run
    steps = [step for step in records.read(folder / records.METRICS) if "loss" in step]
    exams = records.read(folder / records.EXAMS)
    if not (steps or exams):
        open_run(folder)
        fix = "the first ones follow its first step or exam; hira-train doctor checks the configuration before"
        raise UsageError("the run has no metrics yet", where=str(folder), fix=fix)
    if options.samples:
        samples = records.read(folder / records.ROLLOUTS)[-options.samples :]
        if not samples:
            fix = "set rollouts.samples to record some in each step"
            raise UsageError("the run has no sample rollouts", where=str(folder), fix=fix)
        for record in samples:
            shell.say(describe_sample(record))
        return OK
    if options.metrics and not steps:
        raise UsageError("the run has made no step yet", where=str(folder), fix="leave the names of metrics out")
    for record in [] if options.metrics else exams:
        shell.say(format_exam(record))
    if steps and not options.metrics and (line := describe_waiting(steps)):
        shell.say(line)
    for name in _choose_names(steps, options.metrics):
        values = [float(step[name]) for step in steps if isinstance(step.get(name), int | float)]
        shell.say(f"{name:<28} {values[0]:>9.4g} → {values[-1]:<9.4g} {spark(values)}")
    return OK


def _choose_names(steps: Sequence[Mapping[str, Any]], wanted: Sequence[str]) -> list[str]:
    """Return the names of the metrics to show: those that contain one of the `wanted` texts, or the usual ones."""
    names = sorted({name for step in steps for name, value in step.items() if isinstance(value, int | float)})
    if wanted:
        chosen = [name for name in names if any(part in name for part in wanted)]
        if not chosen:
            known = dict.fromkeys(name.partition("/")[0] for name in names)
            raise UsageError(f"no metric has {wanted[0]!r} in its name", fix=f"names contain: {', '.join(known)}")
        return chosen
    roles = [name.removesuffix("/length") for name in names if name.endswith("/length")]
    tools = [name for name in names if name.startswith("tool_calls/")]
    return [
        name
        for name in (*USUAL, *tools, *(f"{role}/{figure}" for role in roles for figure in OF_ROLES))
        if name in names
    ]


def describe_waiting(steps: Sequence[Mapping[str, Any]]) -> str:
    """Return which side waits for the other, rollouts or updates, unless the pipeline samples on. "" without times."""
    rollouts, updates = (
        sum(float(step.get(name, 0)) for step in steps) for name in ("rollout_seconds", "update_seconds")
    )
    if not rollouts + updates:
        return ""
    share = rollouts / (rollouts + updates)
    slower, waiting = ("rollouts", "updates wait") if share >= 0.5 else ("updates", "rollouts wait")
    return f"{max(share, 1 - share):.0%} of the time goes to {slower}: {waiting} for them"


def describe_sample(sample: Mapping[str, Any]) -> str:
    """Format a sample rollout as text: question, messages and reward, conversation by conversation."""
    known = " or ".join(map(str, sample.get("references", ())))
    reward = "none" if sample.get("reward") is None else f"{sample['reward']:.2f}"
    lines = [f"## step {sample['step']}, reward {reward}: {sample.get('question', '')}", f"right answer: {known}"]
    lines.append(f"answer: {sample.get('answer') or sample.get('error') or '(none)'}")
    for part in sample.get("conversations", ()):
        gained = sample.get("advantages", {}).get(part["conversation"])
        text = "" if gained is None else f", advantage {gained:+.2f}"
        size = f"{count_of(part['turns'], 'turn')}, {count_of(part['tokens'], 'token')}"
        lines += ["", f"### {part['conversation']}: {size}{text}"]
        lines += [f"[{message['role']}] {message['text']}" for message in part.get("messages", ())]
    return clean("\n".join([*lines, ""]))


def chart(values: Sequence[float], *, width: int = 60, height: int = 8) -> list[str]:
    """Draw shares from 0 to 1 as columns, with the axis on the left. Too many values are averaged."""
    shown = _thin(values, width)
    lines = []
    for row in range(height, 0, -1):
        filled = (min(8, max(0, round(8 * (value * height - (row - 1))))) for value in shown)
        label = f"{100 * row / height:3.0f} % " if row in (height, height // 2) else "      "
        lines.append(label + "│" + "".join(_EIGHTHS[eighths] for eighths in filled))
    return [*lines, "  0 % └" + "─" * len(shown)]


def spark(values: Sequence[float]) -> str:
    """Draw any values as one line, the lowest as a gap and the highest as a full block."""
    shown = _thin(values, 40)
    low, span = min(shown), (max(shown) - min(shown)) or 1.0
    return "".join(_EIGHTHS[round(8 * (value - low) / span)] for value in shown)


def _thin(values: Sequence[float], width: int) -> list[float]:
    if len(values) <= width:
        return list(values)
    edges = [index * len(values) // width for index in range(width + 1)]
    return [sum(values[begin:end]) / (end - begin) for begin, end in pairwise(edges)]


MARKS = {"ok": "ok     ", "warning": "warning", "fault": "FAULT  ", "unseen": "skipped"}


def doctor(options: TrainOptions, shell: Shell) -> int:
    """Print the findings. The exit code is 1 if there is a fault, so that a script can stop a run."""
    findings = examine(_look_at(options, shell))
    counts = {verdict: sum(finding.verdict == verdict for finding in findings) for verdict in MARKS}
    if options.json:
        shell.say_json([asdict(finding) for finding in findings])
    else:
        for finding in _join_skipped(findings):
            shell.say(f"{MARKS[finding.verdict]}  {finding.rule}: {finding.found}")
            if finding.fix:
                shell.say(f"         → {finding.fix}")
        warnings, faults = (count_of(counts[verdict], verdict) for verdict in ("warning", "fault"))
        shell.say(f"\n{counts['ok']} ok, {warnings}, {faults}, {counts['unseen']} skipped")
    return BUG if counts["fault"] else OK


def _join_skipped(findings: Sequence[RuleFinding]) -> list[RuleFinding]:
    """Return the findings, with one for all rules that were skipped for the same reason, at the end."""
    skipped: dict[tuple[str, str], list[str]] = {}
    for rule_finding in findings:
        if rule_finding.verdict == "unseen":
            skipped.setdefault((rule_finding.found, rule_finding.fix), []).append(rule_finding.rule)
    joined = [RuleFinding(", ".join(rules), "unseen", observed, fix) for (observed, fix), rules in skipped.items()]
    return [finding for finding in findings if finding.verdict != "unseen"] + joined


def _look_at(options: TrainOptions, shell: Shell) -> RunFiles:
    """Read the folder of a run, or a configuration. A run may be examined without its data and its model."""
    first, *others = options.configuration
    folder = shell.folder / first
    if folder.is_dir():
        configuration = assembly.open_run(folder).model_copy(update={"out": Path(first)})
        if others:
            what = f"{others[0]!r} cannot override a run that exists"
            raise UsageError(what, where=str(folder), fix=f"check the run alone: hira-train doctor {first}")
        try:
            kind = RECIPES.get(configuration.recipe, GRPO).data
            problems, _ = assembly.read_problems(configuration.data, shell.folder, kind)
        except HiraError:
            problems = ()
        steps = [record for record in records.read(folder / records.METRICS) if "train_runtime" not in record]
        seen = RunFiles(configuration, steps, records.read(folder / records.EXAMS), problems=len(problems) or None)
    else:
        configuration = parse_configuration(options, shell)
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
