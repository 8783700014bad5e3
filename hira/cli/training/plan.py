"""`hira-train plan`: what a run will take, before anything is loaded."""

import argparse
import json
from dataclasses import replace
from pathlib import Path

from hira.cli import OK
from hira.cli.shell import Shell
from hira.cli.training.configured import configured
from hira.core.errors import UsageError
from hira.runtime.settings import did_you_mean
from hira.trainers import assembling
from hira.trainers.configuration import Configuration
from hira.trainers.plan import DEVICES, GIB, LINEAR, Shape, Times, Work, at_once, sheet, times
from hira.trainers.preflight import located, own_window, too_wide

HALF = 16
TURNS = 8
"""Turns of a rollout that times are told for."""


def plan(args: argparse.Namespace, shell: Shell) -> int:
    if args.gpu and args.gpu not in DEVICES:
        raise UsageError(f"unknown GPU {args.gpu!r}", fix=did_you_mean(args.gpu, DEVICES))
    configuration = configured(args, shell)
    if configuration.model.name:
        assembling.drafted(configuration, shell.folder, shell.environ, Path(shell.home))
    shape = shape_of(configuration.model.name, shell.folder)
    window = configuration.rollouts.window
    if wrong := too_wide(window, own_window(configuration.model.name, shell.folder)):
        shell.tell(f"hira-train: {wrong}; the figures are those of {window:,}")
    if configuration.rollouts.vllm:
        shell.tell(
            "hira-train: a vLLM server samples and needs its own memory and time; these figures are those of the update"
        )
    work = work_of(configuration)
    named = {args.gpu: DEVICES[args.gpu]} if args.gpu else DEVICES
    rows = {name: at_once(shape, work, device) for name, device in named.items()}
    known = configuration.model.bits <= HALF  # rates of devices are those of bf16
    took = {name: times_of(shape, work, configuration, name) for name in named} if known else {}
    found = sheet(shape, replace(work, at_once=rows[args.gpu] or work.at_once) if args.gpu else work)
    if args.json:
        told = {
            "parameters": found.parameters,
            "bytes": {"rollout": dict(found.rollout), "update": dict(found.update)},
            "peak": found.peak,
            "rows": {"wanted": work.at_once, **rows},
            "seconds": {name: {"rollout": one.rollout, "update": one.update} for name, one in took.items()},
        }
        shell.say(json.dumps(told, indent=2))
        return OK
    shell.say(str(found))
    shell.say(f"\n{'a step, about':<14}{'memory':>10}{'rows':>6}{'rollouts':>12}{'update':>10}{'run':>10}")
    for name, device in named.items():
        fits = f"{device.memory / GIB:.0f} GiB" if rows[name] else "too small"
        lasts = _times(took[name], configuration.train.steps) if took else ""
        shell.say(f"{name:<14}{fits:>10}{rows[name]:>6}{lasts}".rstrip())
    if any(rows[name] < work.at_once for name in named):
        shell.tell(
            f"rows: conversations of {work.longest:,} tokens that fit at once, of {work.at_once} configured; "
            "the others wait, and shorter ones take less"
        )
    if not took:
        shell.tell("the time is known only for 4 and 16 bits")
    return OK


def _times(one: Times, steps: int) -> str:
    hours = (one.rollout + one.update) * steps / 3600
    return f"{one.rollout:>10.0f} s{one.update:>8.0f} s{hours:>8.1f} h"


def work_of(configuration: Configuration) -> Work:
    model, rollouts = configuration.model, configuration.rollouts
    targets = LINEAR if isinstance(model.targets, str) else tuple(model.targets)
    return Work(
        adapters=len(set(model.adapters.values())),
        rank=model.rank,
        targets=targets,
        budget=configuration.train.budget,
        longest=rollouts.window,
        at_once=min(rollouts.concurrency, rollouts.questions * rollouts.attempts),
        bits=model.bits,
        checkpointing=configuration.train.checkpointing,
    )


def times_of(shape: Shape, work: Work, configuration: Configuration, device: str) -> Times:
    """Rows of half the window, a fourth of them sampled, as many at once as have room; where none has, as many as are
    asked for."""
    rows = configuration.rollouts.questions * configuration.rollouts.attempts
    length = configuration.rollouts.window // 2
    half = replace(work, longest=length)
    side_by_side = replace(work, at_once=at_once(shape, half, DEVICES[device]) or work.at_once)
    return times(shape, side_by_side, DEVICES[device], rows=rows, length=length, sampled=length // 4, turns=TURNS)


def shape_of(name: str, folder: Path) -> Shape:
    """From the model's folder, or from what the Hub's cache holds of it already: nothing is loaded."""
    if (place := located(name, folder)) is not None:
        return Shape.read(place)
    raise UsageError(f"the configuration of {name!r} is not on this machine", fix=f"hf download {name} config.json")
