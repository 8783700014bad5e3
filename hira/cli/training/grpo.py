"""`hira-train grpo`: the roles of a workflow get better at it."""

import argparse
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from hira.cli import OK
from hira.cli.shell import Shell
from hira.cli.training.configured import going
from hira.core.errors import HiraError, UsageError
from hira.trainers import assembling, profile
from hira.trainers.checkpoints import last_checkpoint
from hira.trainers.configurations import path_of
from hira.trainers.installed import check_installed, check_wanted, gpus
from hira.trainers.preflight import check_there, own_window, too_wide

SHOWN = ("reward", "dead_groups", "grad_norm", "rollout_seconds", "update_seconds")
RECENT = 10
"""Steps from which is told how long the next ones take."""


def grpo(args: argparse.Namespace, shell: Shell) -> int:
    found = going(args, shell)
    plan = found.plan
    if not plan.problems:
        raise UsageError("there is no question to train on", fix='write train = "questions.jsonl" below [data]')
    check_installed()
    own = plan.configuration
    check_wanted(own.model.bits, own.train.report_to, args.across if args.processes else "")
    first = shell.environ.get("RANK", "0") == "0"  # what is told and written, the first process tells and writes
    if first:
        check_there(plan, shell.folder)
    if args.processes:
        return _launched(args, shell, plan)
    from hira.trainers.reinforcing import reinforced

    if not first:
        reinforced(plan, resume=found.begun)
        return OK
    saved = last_checkpoint(plan.folder)

    def begun() -> None:
        assembling.keep(plan)
        shell.tell(f"hira-train: {found.told(saved, own.train.save_every)}")
        if wrong := too_wide(own.rollouts.window, own_window(own.model.name, shell.folder)):
            shell.tell(f"hira-train: {wrong}")
        if plan.unasked:
            shell.tell(f"hira-train: questions left out because their answer is unknown: {plan.unasked}")
        if plan.shared:
            shell.tell(f"hira-train: held-out questions that are also trained on: {plan.shared}")

    reinforced(
        plan,
        resume=found.begun,
        begun=begun,
        tell=lambda line: shell.tell(f"hira-train: {line}"),
        stepped=Steps(shell, own.train.steps),
    )
    profile.write(plan)
    shell.tell(f"hira-train: done; how it went: hira-train show {plan.folder}")
    shell.say(f'hira ask "…" --profile {plan.folder}')
    return OK


class Steps:
    """One line for each step, with how long those that are left will take."""

    def __init__(self, shell: Shell, steps: int) -> None:
        self.shell = shell
        self.steps = steps
        self.took: list[float] = []

    def __call__(self, told: Mapping[str, Any]) -> None:

        if told.get("exam"):
            self.shell.tell(
                f"  step {told['step']}: held-out {_share(told['sampled'])} at T 1, {_share(told['greedy'])} greedy"
            )
        elif "loss" in told:
            figures = [f"{name} {told[name]:.3g}" for name in SHOWN if name in told]
            self.took.append(sum(told.get(name, 0.0) for name in ("rollout_seconds", "update_seconds")))
            left = (self.steps - told["step"]) * sum(self.took[-RECENT:]) / len(self.took[-RECENT:])
            figures += [f"about {_lasting(left)} left"] if left else []
            self.shell.tell(f"  step {told['step']} of {self.steps}: {', '.join(figures)}")


def _lasting(seconds: float) -> str:
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{100 * value:.0f} %"


def _launched(args: argparse.Namespace, shell: Shell, plan: assembling.Plan) -> int:
    """The same command in several processes: on GPUs through accelerate, else on this CPU."""
    own = ["-m", "hira.cli.training", "grpo", *args.configuration, *(["--resume", args.resume] if args.resume else [])]
    environ = dict(shell.environ)
    command = [sys.executable, "-m", *_launcher(args, environ), *own]
    assembling.keep(plan)  # so that all of them tell the same day
    shell.tell(f"hira-train: {' '.join(command[1:])}")
    done = subprocess.run(command, cwd=shell.folder, env=environ, check=False)  # noqa: S603 - our own command
    if done.returncode:
        raise HiraError(f"a process ended with {done.returncode}", fix="see its message above")
    return OK


def _launcher(args: argparse.Namespace, environ: dict[str, str]) -> list[str]:
    """What starts so many processes here. Raises `UsageError` for what would hang or fail after a long start."""
    if args.across == "fsdp":
        raise UsageError(
            "rollouts cannot be sampled from a base that is split across GPUs",
            where="each process samples replies of different lengths and would wait for the others forever",
            fix="use --across ddp or zero2, with model.bits=4 if the base does not fit on one GPU",
        )
    there = gpus()
    if there >= args.processes:
        return ["accelerate.commands.launch", "--config_file", str(path_of(args.across)),
                "--num_processes", str(args.processes)]  # fmt: skip
    if there or args.across != "ddp":
        what = f"{args.processes} processes across {args.across} need as many GPUs, and there are {there}"
        raise UsageError(what, fix="start fewer, or none: without --processes one is enough")
    environ["ACCELERATE_USE_CPU"] = "true"
    return ["torch.distributed.run", "--standalone", "--nproc_per_node", str(args.processes)]
