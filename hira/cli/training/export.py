"""`hira-train export`: a workflow and its questions as an environment for an engine of many machines."""

import argparse
from pathlib import Path

from hira.cli import OK
from hira.cli.shell import Shell
from hira.cli.training.configured import configured
from hira.trainers import assembling
from hira.trainers.exporting.writing import write


def export(args: argparse.Namespace, shell: Shell) -> int:
    configuration = configured(args, shell)
    plan = assembling.planned(configuration, shell.folder, shell.environ, Path(shell.home))
    for path in write(plan, shell.folder / args.output, args.name):
        shell.say(str(path))
    shell.tell(f"the next steps are in {Path(args.output) / 'README.md'}")
    return OK
