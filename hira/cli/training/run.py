"""`hira-train plan`, `sft` and `grpo`: estimate the memory of a run, or start it."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hira.cli import OK
from hira.cli.progress import format_duration
from hira.cli.shell import Shell
from hira.core.errors import HiraError, UsageError, count_of, did_you_mean
from hira.trainers import assembly, profile
from hira.trainers.configuration import HALF, Configuration, load_configuration
from hira.trainers.plan import DEVICES, GIB, LINEAR, DecoderShape, TrainingWork, at_once, sheet
from hira.trainers.preflight import (
    check_inputs,
    check_installed,
    check_options,
    explain_window,
    find_model_folder,
    gpus,
    own_window,
)
from hira.trainers.records import explain_interruption, find_saved


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """The options of `plan`, `sft`, `grpo` and `doctor`. An option that a command lacks has its default."""

    command: str
    configuration: tuple[str, ...] = ()
    """A file, and overrides of it."""
    resume: str = ""
    processes: int = 0
    gpu: str = ""
    json: bool = False


def parse_configuration(options: TrainOptions, shell: Shell) -> Configuration:
    """Return the checked configuration of the command line, or of the run to resume. No file that it names is read."""
    if options.resume:
        place = shell.folder / options.resume
        configuration = assembly.open_run(place)
        if options.configuration:
            raise UsageError("--resume takes the configuration from the run", fix="remove the file and the overrides")
        return configuration.model_copy(update={"out": place})
    files = [argument for argument in options.configuration if "=" not in argument]
    if len(files) > 1:
        what = f"expected one file, got {files[0]!r} and {files[1]!r}"
        raise UsageError(what, fix="name one file, then overrides such as train.lr=1e-5")
    if not options.configuration:
        fix = f"name a file: hira-train {options.command} run.toml; docs/training.md has one to copy"
        raise UsageError("no configuration is named", fix=fix)
    file = shell.folder / files[0] if files else None
    return load_configuration(file, [argument for argument in options.configuration if "=" in argument])


def prepare_run(options: TrainOptions, shell: Shell) -> tuple[assembly.TrainingPlan, bool]:
    """Return the run of the command line, and whether it resumes."""
    configuration = parse_configuration(options, shell)
    plan = assembly.make_plan(configuration, shell.folder, shell.environ, Path(shell.home))
    resumed = assembly.is_resumed(plan)
    if options.command == "grpo" and not plan.problems:
        raise UsageError("no questions to train on are named", fix='write train = "questions.jsonl" below [data]')
    check_installed()
    check_options(configuration.model.bits, configuration.train.report_to)
    if not resumed:
        longest = own_window(configuration.model.name, shell.folder)
        if wrong := explain_window(configuration.rollouts.window, longest):
            raise UsageError(wrong, fix=f"set rollouts.window to at most {longest}, or take another model")
    return plan, resumed


def announce_start(
    shell: Shell, plan: assembly.TrainingPlan, checkpoints: Sequence[Path], every: int, *, resumed: bool
) -> None:
    """Write the configuration, and print where the run begins or resumes. `every` is the steps between checkpoints."""
    assembly.write_configuration(plan)
    if not resumed:
        shell.remark(f"the run is in {plan.folder}")
    elif saved := find_saved(checkpoints):
        shell.remark(f"resuming in {plan.folder} from {saved.name}")
    else:
        why = f"which has no checkpoint yet (save_every: {count_of(every, 'step')})"
        shell.remark(f"starting over in {plan.folder}, {why}")


def plan(options: TrainOptions, shell: Shell) -> int:
    if options.gpu and options.gpu not in DEVICES:
        raise UsageError(f"unknown GPU {options.gpu!r}", fix=did_you_mean(options.gpu, DEVICES))
    configuration = parse_configuration(options, shell)
    if configuration.model.name:
        assembly.draft_plan(configuration, shell.folder, shell.environ, Path(shell.home))
    place = find_model_folder(configuration.model.name, shell.folder)
    if place is None:
        what = f"the configuration of {configuration.model.name!r} is not on this machine"
        raise UsageError(what, fix=f"hf download {configuration.model.name} config.json")
    shape = DecoderShape.read(place)
    window = configuration.rollouts.window
    if wrong := explain_window(window, own_window(configuration.model.name, shell.folder)):
        shell.remark(f"{wrong}; the figures below are for {window:,}: set rollouts.window to the model's own")
    if configuration.rollouts.vllm:
        slots = profile.count_slots(configuration.marsrl.staleness, len(set(configuration.model.adapters.values())))
        shell.remark("a vLLM server samples and needs memory, too; only the figures of the update apply here")
        shell.remark(f"start it with --enable-lora --max-loras {slots}")
    if configuration.model.bits > HALF and not options.gpu:
        from hira.policies.llama import memory_bytes

        shell.remark(
            "the figures are those of a GPU; a CPU takes more, above all for the logits of a micro-batch "
            f"(train.budget): this machine has {memory_bytes() / GIB:.0f} GiB"
        )
    work = work_of(configuration)
    named = {options.gpu: DEVICES[options.gpu]} if options.gpu else DEVICES
    rows = {name: at_once(shape, work, device) for name, device in named.items()}
    estimate = sheet(shape, replace(work, at_once=rows[options.gpu] or work.at_once) if options.gpu else work)
    if options.json:
        needed = {"rollout": dict(estimate.rollout), "update": dict(estimate.update)}
        record = {"parameters": estimate.parameters, "bytes": needed, "peak": estimate.peak}
        shell.say_json({**record, "rows": {"wanted": work.at_once, **rows}})
        return OK
    shell.say(str(estimate))
    shell.say(f"\n{'device':<14}{'memory':>10}{'at once':>9}")
    for name, memory in named.items():
        fits = f"{memory / GIB:.0f} GiB" if rows[name] else "too small"
        shell.say(f"{name:<14}{fits:>10}{rows[name]:>9}")
    shell.tell(
        f"at once: how many conversations of {work.longest:,} tokens fit in memory, of {work.at_once} wanted; "
        "the others wait, and shorter ones take less"
    )
    return OK


def work_of(configuration: Configuration) -> TrainingWork:
    model, rollouts = configuration.model, configuration.rollouts
    targets = LINEAR if isinstance(model.targets, str) else tuple(model.targets)
    return TrainingWork(
        adapters=len(set(model.adapters.values())),
        rank=model.rank,
        targets=targets,
        budget=configuration.train.budget,
        longest=rollouts.window,
        at_once=min(rollouts.concurrency, rollouts.questions * rollouts.attempts),
        bits=model.bits,
        checkpointing=configuration.train.checkpointing,
    )


def sft(options: TrainOptions, shell: Shell) -> int:
    plan, resumed = prepare_run(options, shell)
    from hira.trainers.sft import run_sft

    check_inputs(plan, shell.folder, conversations=True)
    every = plan.configuration.sft.save_every

    def places() -> list[Path]:
        return sorted(plan.folder.glob("sft/*"))

    with explain_interruption(places):
        run_sft(
            plan,
            shell.folder,
            resume=resumed,
            on_start=lambda: announce_start(shell, plan, places(), every, resumed=resumed),
            tell=shell.remark,
            on_step=lambda step: shell.tell(f"  step {step['step']}: loss {step['loss']:.4f}"),
        )
    profile.write_profiles(plan)
    starts = " ".join(f"model.start.{name}={place}" for name, place in profile.adapters_of(plan.folder).items())
    shell.remark("done; continue by reinforcement:")
    shell.say(f"hira-train grpo … {starts}")
    return OK


SHOWN = ("reward", "dead_groups", "grad_norm", "rollout_seconds", "update_seconds")
RECENT = 10
"""The number of latest steps for the estimate of the remaining time."""


def grpo(options: TrainOptions, shell: Shell) -> int:
    plan, resumed = prepare_run(options, shell)
    configuration = plan.configuration
    first = shell.environ.get("RANK", "0") == "0"  # only the first process prints and writes
    if first:
        check_inputs(plan, shell.folder)
    if options.processes:
        with explain_interruption(lambda: [plan.folder]):
            return _launch_processes(options, shell, plan)
    from hira.trainers.training import run_grpo

    if not first:
        run_grpo(plan, resume=resumed)
        return OK

    def start() -> None:
        announce_start(shell, plan, [plan.folder], configuration.train.save_every, resumed=resumed)
        for line, many in (
            ("questions left out because their answer is unknown", plan.unasked),
            ("duplicate questions", plan.repeated),
            ("held-out questions that are also trained on", plan.shared),
        ):
            if many:
                shell.remark(f"{line}: {many}")

    with explain_interruption(lambda: [plan.folder]):
        steps = Steps(shell, configuration.train.steps)
        run_grpo(plan, resume=resumed, on_start=start, tell=shell.remark, on_step=steps)
    profile.write_profiles(plan)
    shell.remark(f"done; see how it went: hira-train show {plan.folder}; ask the trained model:")
    shell.say(f'hira ask "…" --profile {plan.folder}')
    return OK


class Steps:
    def __init__(self, shell: Shell, steps: int) -> None:
        self.shell = shell
        self.steps = steps
        self.took: list[float] = []

    def __call__(self, figures: Mapping[str, Any]) -> None:
        if figures.get("exam"):
            self.shell.tell(f"  {format_exam(figures)}")
        elif "loss" in figures:
            shown = [f"{name} {figures[name]:.3g}" for name in SHOWN if name in figures]
            self.took.append(sum(figures.get(name, 0.0) for name in ("rollout_seconds", "update_seconds")))
            left = (self.steps - figures["step"]) * sum(self.took[-RECENT:]) / len(self.took[-RECENT:])
            shown += [f"about {format_duration(left)} left"] if left else []
            self.shell.tell(f"  step {figures['step']} of {self.steps}: {', '.join(shown)}")


def format_exam(exam: Mapping[str, Any]) -> str:
    sampled, greedy = (format_share(exam[name]) for name in ("sampled", "greedy"))
    sets = [name.removesuffix("/sampled") for name in exam if name.endswith("/sampled")]
    each = "".join(f"; {name} {format_share(exam[f'{name}/sampled'])}" for name in sets)
    return f"step {exam['step']:>4}  held-out questions right: {sampled} at temperature 1, {greedy} greedy{each}"


def format_share(value: float | None) -> str:
    return "unknown" if value is None else f"{100 * value:.0f} %"


def _launch_processes(options: TrainOptions, shell: Shell, plan: assembly.TrainingPlan) -> int:
    """Start the same command in several processes, one per GPU, or all on this CPU if there is no GPU."""
    there = gpus()
    if 0 < there < options.processes:
        what = f"{options.processes} processes need {options.processes} GPUs, and there are {there}"
        raise UsageError(what, fix=f"set --processes {there}, or omit it to train in one process")
    resume = ["--resume", options.resume] if options.resume else []
    arguments = ["-m", "hira.cli.training", "grpo", *options.configuration, *resume]
    environ = {**shell.environ, **({} if there else {"ACCELERATE_USE_CPU": "true"})}
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(options.processes)]
    assembly.write_configuration(plan)  # so that all of them have the same day
    shell.remark(" ".join([*launcher, *arguments]))
    command = [sys.executable, *launcher, *arguments]
    done = subprocess.run(command, cwd=shell.folder, env=environ, check=False)  # noqa: S603 - our own command
    if done.returncode:
        raise HiraError(f"a process ended with {done.returncode}", fix="see its message above")
    return OK
