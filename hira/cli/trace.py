"""`hira trace`: a recorded run as one web page."""

import argparse

from hira.cli import OK
from hira.cli.output import replaced
from hira.cli.recorded import opened
from hira.cli.shell import Shell
from hira.errors import UsageError
from hira.trace import read
from hira.trace.page import page


def trace(args: argparse.Namespace, shell: Shell) -> int:
    path = (shell.folder / args.output).absolute()
    if not path.parent.is_dir():
        raise UsageError(f"--output {args.output}: there is no folder {path.parent}", fix="make it, or name another")
    with opened(args, shell) as journal:
        made = page(read(journal, args.run))
    replaced(path, made)
    shell.tell(f"hira: {path}")
    return OK
