"""`hira-train base`: a trainable base from a GGUF file."""

import argparse

from hira.cli import OK
from hira.cli.shell import Shell
from hira.trainers.installed import check_installed


def base(args: argparse.Namespace, shell: Shell) -> int:
    check_installed()
    from hira.trainers.gguf import write_base

    folder = shell.folder / args.folder
    name = args.model.removeprefix("gguf:")
    own = shell.folder / name
    parameters = write_base(str(own) if own.exists() else name, folder)
    shell.tell(f"hira-train: {parameters / 1e6:,.0f} million parameters in {folder}")
    shell.say(f"model.name={args.folder}")
    return OK
