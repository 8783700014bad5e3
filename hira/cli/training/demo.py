"""`hira-train demo`: from nothing to a model that answers, on this CPU."""

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import hira.cli
from hira.cli import OK
from hira.cli.shell import Shell
from hira.cli.training.demo_view import View
from hira.errors import UsageError
from hira.trainers.installed import check_installed

if TYPE_CHECKING:
    from hira.trainers.demo.run import Demo

UNSEEN = {"ask": ("--quiet", "--journal", "off")}
"""Flags by which a command tells nothing but its answer and keeps no record, where it has any."""
UNLEARNED = "With --small the model has learned next to nothing: it is asked all the same, and will hardly answer."


def demo(args: argparse.Namespace, shell: Shell) -> int:
    check_installed()
    from hira.trainers.demo.recipes import named

    recipe = named(args.recipe)
    folder = shell.folder / args.out
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{args.out!r} is there already", fix="name another folder with --out, or remove it")
    from hira.trainers.demo.run import Demo

    sizes = recipe.small if args.small else recipe.sizes
    sizes = replace(sizes, updates=args.updates) if args.updates else sizes
    view = View(shell, recipe, sizes.updates)
    made = Demo(folder, recipe, args.seed, sizes, view.tell, view.stepped)
    with view.shown():
        made.run()
    for line in view.ended():
        shell.tell(line)
    return _asked(made, shell, small=args.small)


def _asked(made: "Demo", shell: Shell, *, small: bool) -> int:
    """What was held out in training, asked as any user would; once where nothing can have been learned."""
    asked = made.recipe.asked(made.seed)
    if small:
        asked = asked[:1]
        shell.tell(f"\n{UNLEARNED}")
    for one in asked:
        shell.tell(f"\n$ {_typed(one.command)} --profile {made.folder}")
        hira.cli.main([*one.command, "--profile", str(made.folder), *UNSEEN.get(one.command[0], ())], shell)
        if one.known:
            shell.tell(f"  ({one.known})")
    shell.tell(f"\nThe page of the run is {made.folder / 'dashboard.html'}; model and adapter are beside it.")
    shell.say(f"{_typed(asked[0].command)} --profile {made.folder}")
    return OK


def _typed(command: Sequence[str]) -> str:
    """The command as it is typed in a shell."""
    return shlex.join(["hira", *command])
