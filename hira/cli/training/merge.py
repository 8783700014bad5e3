"""`hira-train merge`: a run's adapter merged into its base."""

import argparse

from hira.cli import OK
from hira.cli.shell import Shell
from hira.trainers.installed import check_installed


def merge(args: argparse.Namespace, shell: Shell) -> int:
    check_installed()
    from hira.trainers.merging import merge as merged

    merged(shell.folder / args.run, shell.folder / args.folder, args.adapter)
    shell.say(f"hf:{args.folder}")
    return OK
