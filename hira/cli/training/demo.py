"""`hira-train demo`: from nothing to a model that answers, on this CPU."""

import argparse
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import hira.cli
from hira.cli import OK
from hira.cli.shell import Shell
from hira.cli.training.chart import chart
from hira.errors import UsageError
from hira.trainers.installed import check_installed

if TYPE_CHECKING:
    from rich.live import Live

    from hira.trainers.demo.run import Demo

ASKED = 3
EVERY = 5


def demo(args: argparse.Namespace, shell: Shell) -> int:
    check_installed()
    folder = shell.folder / args.out
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{args.out!r} is there already", fix="name another folder with --out, or remove it")
    from hira.trainers.demo.run import MINIATURE, Demo, Sizes
    from hira.trainers.recipes import RECIPES

    sizes = MINIATURE if args.small else Sizes()
    sizes = replace(sizes, updates=args.updates) if args.updates else sizes
    view = View(shell, sizes.updates)
    made = Demo(folder, args.seed, sizes, RECIPES["matpo"].credit, view.tell, view.stepped)
    with view.shown():
        made.run()
    for line in view.ended():
        shell.tell(line)
    return _asked(made, shell)


def _asked(made: "Demo", shell: Shell) -> int:
    """Questions of people whom nobody asked about in training, answered as any user's are."""
    for problem in made.held_out[:: max(1, len(made.held_out) // ASKED)][:ASKED]:
        shell.tell(f"\n$ hira ask {problem.question!r} --profile {made.folder}")
        hira.cli.main(["ask", problem.question, "--profile", str(made.folder), "--quiet", "--journal", "off"], shell)
        shell.tell(f"  (known answer: {problem.references[0]})")
    shell.tell(
        f"\nThe page of the run is {made.folder / 'dashboard.html'}; documents, model and adapter are beside it."
    )
    shell.say(f'hira ask "{made.held_out[0].question}" --profile {made.folder}')
    return OK


@dataclass
class View:
    """What a person sees of the demo: drawn on a terminal, lines elsewhere."""

    shell: Shell
    updates: int
    began: float = field(default_factory=time.monotonic)
    stage: str = ""
    right: list[float] = field(default_factory=list)
    exams: list[Mapping[str, Any]] = field(default_factory=list)
    last: str = ""
    live: "Live | None" = None

    def shown(self) -> AbstractContextManager[Any]:
        if not self.shell.stderr.isatty() or self.shell.environ.get("TERM") == "dumb":
            return nullcontext()
        from rich.console import Console
        from rich.live import Live

        self.live = Live(console=Console(file=self.shell.stderr), refresh_per_second=4, transient=True)
        return self.live

    def tell(self, text: str) -> None:
        self.stage = text
        line = f"[{self.seconds:4.0f} s] {text}"
        if self.live:
            self.live.console.print(line, markup=False, highlight=False)
        else:
            self.shell.tell(line)

    def stepped(self, told: Mapping[str, Any]) -> None:
        step = told.get("step", 0)
        if told.get("exam"):
            self.exams.append(told)
            self.tell(f"after {step} updates, held-out questions right: {_share(told['sampled'])} at temperature 1, "
                      f"{_share(told['greedy'])} greedy")  # fmt: skip
        elif told.get("stage") == "sft":
            self.last = f"step {step} of {told['of']}: loss {told['loss']:.3f}"
        elif "reward/accuracy" in told:
            self.right.append(float(told["reward/accuracy"]))
            self.last = f"update {step} of {self.updates}: {_share(self.right[-1])} right, reward {told['reward']:.2f}"
        else:
            return
        if self.live:
            self._draw()
        elif not told.get("exam") and step % (EVERY if self.right else 10 * EVERY) == 0:
            self.shell.tell(f"[{self.seconds:4.0f} s]   {self.last}")

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def ended(self) -> list[str]:
        if not self.exams:
            return []
        first, last = self.exams[0], self.exams[-1]
        gained = {name: f"{_share(first[name])} -> {_share(last[name])}" for name in ("sampled", "greedy")}
        took = f"{self.seconds:.0f} seconds, {time.process_time():.0f} of the processor"
        told = f"held-out questions, temperature 1: {gained['sampled']}; greedy: {gained['greedy']}; {took}"
        return ["", "right answers in training, by update:", *chart(self.right), "", told]

    def _draw(self) -> None:
        from rich.text import Text

        assert self.live is not None  # noqa: S101 - only a terminal is drawn on
        lines = [*(chart(self.right) if self.right else []), f"[{self.seconds:4.0f} s] {self.last}"]
        self.live.update(Text("\n".join(lines)))


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{100 * value:.0f} %"
