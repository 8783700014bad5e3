"""`hira-train demo`: train a model on this CPU until it answers. `run` does so with a recipe of a script."""

import argparse
import shlex
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hira.cli
from hira.cli import NO_EVIDENCE, OK
from hira.cli.parser import Parser
from hira.cli.shell import Shell
from hira.cli.training.parser import add_demo_flags
from hira.cli.training.show import chart
from hira.core.errors import UsageError
from hira.trainers import records
from hira.trainers.preflight import check_installed
from hira.trainers.records import last_checkpoint, step_of

if TYPE_CHECKING:
    from rich.live import Live

    from hira.trainers.demo.recipe import DemoRecipe
    from hira.trainers.demo.run import Demo

UNSEEN = {"ask": ("--quiet", "--journal", "off")}
"""Flags with which a command prints its answer alone and keeps no record."""
UNLEARNED = "With --small the model learns next to nothing, so it is not asked. Run the demo without --small to ask it."


def demo(args: argparse.Namespace, shell: Shell) -> int:
    """Train a tiny model to answer with MATPO, or a pretrained one to cite its sources."""
    check_installed()
    from hira.trainers.demo.recipe import TINY

    if args.model == TINY:
        from hira.trainers.demo.matpo import MATPO_DEMO

        return run_recipe(MATPO_DEMO, args, shell)
    from hira.trainers.demo.cited import CITED

    own = shell.folder / Path(args.model).expanduser()
    return run_recipe(CITED, args, shell, str(own) if own.exists() else args.model)


def run(recipe: "DemoRecipe", argv: Sequence[str] | None = None, shell: Shell | None = None) -> int:
    """Run the demo of a recipe with the flags of `hira-train demo`; return the exit code. It is a script's `main`."""
    from hira.cli.training import run_command

    parser = Parser(description=f"Train a tiny model on this CPU: {recipe.about}.")
    add_demo_flags(parser, recipe.name)
    arguments = list(sys.argv[1:] if argv is None else argv)

    def command(shell: Shell) -> int:
        check_installed()
        return run_recipe(recipe, parser.parse_args(arguments), shell)

    return run_command(command, shell, debug="--debug" in arguments)


def run_recipe(recipe: "DemoRecipe", args: argparse.Namespace, shell: Shell, base: str = "tiny") -> int:
    from hira.trainers.demo.run import Demo

    folder = shell.folder / args.output
    sizes = recipe.small if args.small else recipe.sizes
    sizes = replace(sizes, updates=args.updates) if args.updates else sizes
    view = View(shell, recipe, sizes.updates)
    one = Demo(folder, recipe, args.seed, sizes, base, view.tell, view.show_step)
    if one.is_stopped:
        view.recall(folder)
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{args.output!r} already exists", fix="name another folder with --output, or remove it")
    with view.open():
        one.run()
    for line in view.format_result():
        shell.tell(line)
    code = OK
    if args.small:
        shell.tell(f"\n{UNLEARNED}")
    else:
        code = ask_held_out(one, shell)
    shell.tell(f"\nExams and metrics: hira-train show {folder}; model and adapter are in the folder.")
    shell.say(_format_command(recipe.commands(one.seed)[0].command, folder))
    return code


def ask_held_out(one: "Demo", shell: Shell) -> int:
    """Ask questions that training held out, as a user would. Return the exit code of the first command that failed; an
    answer without evidence is not a failure."""
    codes = []
    for asked in one.recipe.commands(one.seed):
        shell.tell(f"\n$ {_format_command(asked.command, one.folder)}")
        quiet = UNSEEN.get(asked.command[0], ())
        codes.append(hira.cli.main([*asked.command, "--profile", str(one.folder), *quiet], shell))
        if asked.known:
            shell.tell(f"  ({asked.known})")
    return next((code for code in codes if code not in (OK, NO_EVIDENCE)), OK)


def _format_command(command: Sequence[str], folder: Path) -> str:
    return f"{shlex.join(['hira', *command])} --profile {folder}"


EVERY = 5


@dataclass
class View:
    """Hears of the stages and of each step. `curves` are the shares of updates that the recipe wants drawn."""

    shell: Shell
    recipe: "DemoRecipe"
    updates: int
    began: float = field(default_factory=time.monotonic)
    curves: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    exams: list[Mapping[str, Any]] = field(default_factory=list)
    last: str = ""
    live: "Live | None" = None

    def open(self) -> AbstractContextManager[Any]:
        if not self.shell.stderr.isatty() or self.shell.environ.get("TERM") == "dumb":
            return nullcontext()
        from rich.console import Console
        from rich.live import Live

        self.live = Live(console=Console(file=self.shell.stderr), refresh_per_second=4, transient=True)
        return self.live

    def tell(self, text: str) -> None:
        line = f"[{self.seconds:4.0f} s] {text}"
        if self.live:
            self.live.console.print(line, markup=False, highlight=False)
        else:
            self.shell.tell(line)

    def recall(self, folder: Path) -> None:
        """Take in what a demo that goes on from a checkpoint had told before."""
        saved = last_checkpoint(folder)
        known = step_of(saved) if saved else -1
        self.exams += [one for one in records.read(folder / records.EXAMS) if one["step"] <= known]
        for one in records.read(folder / records.METRICS):
            if one["step"] <= known:
                self._add_to_curves(one)

    def show_step(self, told: Mapping[str, Any]) -> None:
        if told.get("exam"):
            self._examined(told)
        elif told.get("stage") == "sft":
            self._last(told["step"], f"step {told['step']} of {told['of']}: loss {told['loss']:.3f}", 10 * EVERY)
        elif "loss" in told:
            self._updated(told)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def format_result(self) -> list[str]:
        if not self.exams:
            return []
        told = [one for one in self.exams if one["step"] < 1 or one is self.exams[-1]]
        lines = [""]
        for label, shares in self.curves.items():
            lines += [f"{label}, by update:", *chart(shares), ""]
        for label, names in self.recipe.figures.items():
            lines.append(f"{label}: {' -> '.join(_figure(one, names) for one in told)}")
        gained = {name: " -> ".join(_share(one[name]) for one in told) for name in ("sampled", "greedy")}
        took = f"{self.seconds:.0f} seconds, {time.process_time():.0f} of the processor"
        what = f"{self.recipe.examined}, temperature 1: {gained['sampled']}; greedy: {gained['greedy']}; {took}"
        return [*lines, what, *([self.recipe.note] if self.recipe.note else [])]

    def _examined(self, told: Mapping[str, Any]) -> None:
        self.exams.append(told)
        shares = f"{_share(told['sampled'])} at temperature 1, {_share(told['greedy'])} greedy"
        when = f"after {told['step']} updates" if told["step"] >= 0 else "before any training"
        self.tell(f"{when}, {self.recipe.examined}: {shares}")

    def _updated(self, told: Mapping[str, Any]) -> None:
        added = self._add_to_curves(told)
        shown = [f"{label} {_share(value)}" for label, value in added.items()]
        if "reward" in told:
            shown.append(f"reward {told['reward']:.2f}")
        self._last(told["step"], f"update {told['step']} of {self.updates}: {', '.join(shown)}", EVERY)

    def _add_to_curves(self, told: Mapping[str, Any]) -> dict[str, float]:
        added = {label: float(told[name]) for label, name in self.recipe.curves.items() if name in told}
        for label, value in added.items():
            self.curves[label].append(value)
        return added

    def _last(self, step: int, text: str, every: int) -> None:
        self.last = text
        if self.live:
            self._draw()
        elif step % every == 0:
            self.shell.tell(f"[{self.seconds:4.0f} s]   {self.last}")

    def _draw(self) -> None:
        from rich.text import Text

        assert self.live is not None  # noqa: S101 - only a terminal is drawn on
        drawn = [line for shares in list(self.curves.values())[:1] for line in chart(shares)]
        self.live.update(Text("\n".join([*drawn, f"[{self.seconds:4.0f} s] {self.last}"])))


def _figure(told: Mapping[str, Any], names: Sequence[str]) -> str:
    """The mean of these as a share, or as a number where they are effect sizes."""
    value = _mean(told, names)
    effect = all(name.endswith("/d") for name in names)
    return f"{value:.2f}" if effect and value is not None else _share(value)


def _mean(told: Mapping[str, Any], names: Sequence[str]) -> float | None:
    known = [told[name] for name in names if told.get(name) is not None]
    return sum(known) / len(known) if len(known) == len(names) else None


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{100 * value:.0f} %"
