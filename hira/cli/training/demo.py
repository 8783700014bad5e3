"""`hira-train demo`: train a model on this CPU until it answers. `run` does so with a script's recipe."""

import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hira.cli
from hira.cli import NO_EVIDENCE, OK
from hira.cli.flags import Parser
from hira.cli.options import read_options
from hira.cli.shell import Shell
from hira.cli.training.parser import add_demo_flags
from hira.cli.training.run import format_share
from hira.cli.training.show import chart
from hira.core.errors import UsageError
from hira.runtime.settings import PROFILE
from hira.trainers import records
from hira.trainers.assembly import read_configuration
from hira.trainers.configuration import Configuration
from hira.trainers.preflight import check_installed

if TYPE_CHECKING:
    from hira.trainers.demo.recipe import Demo, DemoRecipe

UNSEEN = {"ask": ("--quiet", "--journal", "off")}
"""Flags with which a command prints its answer alone and keeps no record."""
UNLEARNED = "With --small the model learns next to nothing, so it is not asked. Run the demo without --small to ask it."


@dataclass(frozen=True, slots=True)
class DemoOptions:
    output: str
    model: str = "tiny"
    seed: int = 0
    updates: int = 0
    small: bool = False
    roles: str = ""


def demo(options: DemoOptions, shell: Shell) -> int:
    """Train a tiny model to answer with MATPO, or a pretrained one to cite its sources or to play `roles`."""
    check_installed()
    from hira.trainers.demo.recipe import TINY

    if options.model == TINY:
        if options.roles:
            raise UsageError("--roles trains a pretrained model", fix="name one: --model smollm2")
        from hira.trainers.demo.matpo import MATPO_DEMO

        return run_recipe(MATPO_DEMO, options, shell)
    from hira.trainers.demo.cited import CITED
    from hira.trainers.demo.roles import ROLES

    recipe = ROLES[options.roles] if options.roles else CITED
    return run_recipe(recipe, options, shell, find_model(options.model, shell))


def find_model(name: str, shell: Shell) -> str:
    """Return the path of a GGUF file or a model's folder, or a packaged model. Raises `UsageError` for others."""
    from hira.policies.llama import PACKAGED
    from hira.trainers.models import find_gguf

    name = name.removeprefix("gguf:")
    path = shell.folder / Path(name).expanduser()
    if not path.exists() and name not in PACKAGED:
        fix = f"name a GGUF file, or a model that a package holds: {', '.join(PACKAGED)}"
        raise UsageError(f"there is no model {name!r}", fix=fix)
    model = str(path) if path.exists() else name
    if not path.is_dir():
        find_gguf(model)
    elif not (path / "config.json").is_file():
        fix = "name a GGUF file, or the folder of a model of transformers"
        raise UsageError(f"the folder {name!r} has no config.json", fix=fix)
    return model


def run(recipe: "DemoRecipe", argv: Sequence[str] | None = None, shell: Shell | None = None) -> int:
    """Run the demo of a recipe with the flags of `hira-train demo`; return the exit code. It is a script's `main`."""
    from hira.cli.training import run_command

    parser = Parser(description=f"Train a tiny model on this CPU: {recipe.about}.", allow_abbrev=False)
    add_demo_flags(parser, recipe.name)
    arguments = list(sys.argv[1:] if argv is None else argv)

    def command(shell: Shell) -> int:
        check_installed()
        return run_recipe(recipe, read_options(demo, parser.parse_args(arguments)), shell)

    return run_command(command, shell, debug="--debug" in arguments)


def run_recipe(recipe: "DemoRecipe", options: DemoOptions, shell: Shell, base: str = "tiny") -> int:
    from hira.trainers.demo.recipe import Demo

    folder = shell.folder / options.output
    sizes = recipe.small if options.small else recipe.sizes
    sizes = replace(sizes, updates=options.updates) if options.updates else sizes
    view = DemoView(shell, recipe, sizes.updates)
    demo = Demo(folder, recipe, options.seed, sizes, base, view.tell, view.show_step)
    with records.explain_interruption(lambda: [folder]):
        check_folder(demo, options.output)
        demo.run()
    view.tell_result(folder)
    limits = f" {demo.limits}" if demo.limits else ""
    ended = f"\nModel and adapter are in {folder}. Exams and metrics: hira-train show {folder}.{limits}"
    if options.small:
        shell.tell(f"\n{UNLEARNED}")
        shell.tell(ended)
        return OK
    code = ask_held_out(demo, shell)
    shell.tell(f"{ended} Ask the model:")
    shell.say(_format_command(demo.commands[0].command, folder))
    return code


def check_folder(demo: "Demo", output: str) -> None:
    """Raise `UsageError` unless the folder is new or empty, or holds this very demo, unfinished."""
    folder, fix = demo.folder, "name another folder with --output, or remove it"
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    began = read_configuration(folder) if folder.is_dir() else None
    if began is None:
        raise UsageError(f"{output!r} already exists, and holds no demo", fix=fix)
    # somebody may have moved the folder
    first, name, model = began.out, Path(began.model.name), began.model
    if name.is_relative_to(first):
        model = model.model_copy(update={"name": str(folder / name.relative_to(first))})
    began = began.model_copy(update={"out": folder, "model": model})
    same, finished = began == demo.plan.configuration, (folder / PROFILE).exists()
    if same and not finished and first != folder:
        what = f"the demo in {output!r} was started in {first}"
        raise UsageError(what, fix=f"to resume it, move it back; for a new one, {fix}")
    if same and not finished:
        return
    flags = _find_flags(demo, began)
    what = f"the demo in {output!r} was started with {flags}" if flags else f"{output!r} holds another run"
    if finished:
        fix = f"to see how it went: {shlex.join(['hira-train', 'show', output])}; for a new one, {fix}"
    elif flags:
        fix = f"to resume it, use these flags; for a new one, {fix}"
    raise UsageError(f"the demo in {output!r} is finished" if same else what, fix=fix)


def _find_flags(demo: "Demo", began: Configuration) -> str:
    """Return the flags with which this demo would have that configuration; "" if no flags would give it that."""
    for small, sizes in ((" --small", demo.recipe.small), ("", demo.recipe.sizes)):
        other = replace(demo, seed=began.seed, sizes=replace(sizes, updates=began.train.steps))
        if other.plan.configuration == began:
            return f"--seed {began.seed} --updates {began.train.steps}{small}"
    return ""


def ask_held_out(demo: "Demo", shell: Shell) -> int:
    """Ask questions that training held out. Return the first failure's code; a lack of evidence is no failure."""
    codes = []
    for command in demo.commands:
        shell.tell(f"\n$ {_format_command(command.command, demo.folder)}")
        quiet = UNSEEN.get(command.command[0], ())
        codes.append(hira.cli.main([*command.command, "--profile", str(demo.folder), *quiet], shell))
        if command.known:
            shell.tell(f"  ({command.known})")
    return next((code for code in codes if code not in (OK, NO_EVIDENCE)), OK)


def _format_command(command: Sequence[str], folder: Path) -> str:
    return f"{shlex.join(['hira', *command])} --profile {folder}"


EVERY = 5


@dataclass
class DemoView:
    """Prints the stages and some of the steps; at the end, curves and exams from the files of the folder."""

    shell: Shell
    recipe: "DemoRecipe"
    updates: int
    began: float = field(default_factory=time.monotonic)

    def tell(self, text: str) -> None:
        self.shell.tell(f"[{time.monotonic() - self.began:4.0f} s] {text}")

    def show_step(self, figures: Mapping[str, Any]) -> None:
        if figures.get("exam"):
            shares = f"{format_share(figures['sampled'])} at temperature 1, {format_share(figures['greedy'])} greedy"
            when = f"after {figures['step']} updates" if figures["step"] >= 0 else "before any training"
            self.tell(f"{when}, {self.recipe.examined}: {shares}")
        elif figures.get("stage") == "sft":
            if figures["step"] % (10 * EVERY) == 0:
                self.tell(f"  step {figures['step']} of {figures['of']}: loss {figures['loss']:.3f}")
        elif "loss" in figures and figures["step"] % EVERY == 0:
            known = {label: name for label, name in self.recipe.curves.items() if name in figures}
            shown = [f"{label} {format_share(figures[name])}" for label, name in known.items()]
            shown += [f"reward {figures['reward']:.2f}"] if "reward" in figures else []
            self.tell(f"  update {figures['step']} of {self.updates}: {', '.join(shown)}")

    def tell_result(self, folder: Path) -> None:
        steps, exams = records.read(folder / records.METRICS), records.read(folder / records.EXAMS)
        rows = [exam for exam in exams if exam["step"] < 1 or exam is exams[-1]]
        lines = [""]
        for label, name in self.recipe.curves.items():
            if shares := [float(step[name]) for step in steps if name in step]:
                lines += [f"{label}, by update:", *chart(shares), ""]
        for label, names in self.recipe.figures.items():
            effect = all(name.endswith("/d") for name in names)  # a number; the others are shares
            known = [[row[name] for name in names if row.get(name) is not None] for row in rows]
            means = [sum(values) / len(values) if len(values) == len(names) else None for values in known]
            shown = [f"{mean:.2f}" if effect and mean is not None else format_share(mean) for mean in means]
            lines.append(f"{label}: {' -> '.join(shown)}")
        sampled, greedy = (" -> ".join(format_share(row[name]) for row in rows) for name in ("sampled", "greedy"))
        took = f"{time.monotonic() - self.began:.0f} seconds, {time.process_time():.0f} of the processor"
        lines.append(f"{self.recipe.examined}, temperature 1: {sampled}; greedy: {greedy}; {took}")
        for line in [*lines, *([self.recipe.note] if self.recipe.note else [])]:
            self.shell.tell(line)
