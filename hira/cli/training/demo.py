"""`hira-train demo`: from nothing to a model that answers, on this CPU."""

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import hira.cli
from hira.cli import NO_EVIDENCE, OK
from hira.cli.shell import Shell
from hira.cli.training.demo_view import View
from hira.core.errors import UsageError
from hira.trainers.installed import check_installed

if TYPE_CHECKING:
    from hira.trainers.demo.run import Demo

UNSEEN = {"ask": ("--quiet", "--journal", "off")}
"""Flags by which a command tells nothing but its answer and keeps no record, where it has any."""
UNLEARNED = "With --small the model has learned next to nothing, so it is not asked: the whole demo's model is."


def demo(args: argparse.Namespace, shell: Shell) -> int:
    check_installed()
    from hira.trainers.demo.recipes import chosen

    recipe, base = chosen(args.recipe, args.model, shell.folder)
    folder = shell.folder / args.output
    from hira.trainers.demo.run import Demo

    sizes = recipe.small if args.small else recipe.sizes
    sizes = replace(sizes, updates=args.updates) if args.updates else sizes
    view = View(shell, recipe, sizes.updates)
    made = Demo(folder, recipe, args.seed, sizes, base, view.tell, view.stepped)
    if made.is_stopped:
        view.recall(folder)
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{args.output!r} already exists", fix="name another folder with --output, or remove it")
    with view.shown():
        made.run()
    for line in view.ended():
        shell.tell(line)
    code = OK
    if args.small:
        shell.tell(f"\n{UNLEARNED}")
    else:
        code = ask_held_out(made, shell)
    shell.tell(f"\nHow the run went: hira-train show {made.folder}; model and adapter are in the folder.")
    shell.say(_typed(recipe.asked(made.seed)[0].command, made.folder))
    return code


def ask_held_out(made: "Demo", shell: Shell) -> int:
    """Ask what was held out in training, as any user would. The exit code is that of the first command that failed;
    an answer without evidence is none."""
    codes = []
    for one in made.recipe.asked(made.seed):
        shell.tell(f"\n$ {_typed(one.command, made.folder)}")
        quiet = UNSEEN.get(one.command[0], ())
        codes.append(hira.cli.main([*one.command, "--profile", str(made.folder), *quiet], shell))
        if one.known:
            shell.tell(f"  ({one.known})")
    return next((code for code in codes if code not in (OK, NO_EVIDENCE)), OK)


def _typed(command: Sequence[str], folder: Path) -> str:
    """The command that asks what was trained, as it is typed in a shell."""
    return f"{shlex.join(['hira', *command])} --profile {folder}"
