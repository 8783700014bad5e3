"""What the commands about recorded runs share: the journal, opened for reading, and how times and costs are told."""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hira.cli.shell import Shell
from hira.core.errors import UsageError
from hira.journal import Journal
from hira.runtime.settings import load


@contextmanager
def open_journal(args: argparse.Namespace, shell: Shell) -> Iterator[Journal]:
    """The journal that the flags and settings name. Raises `UsageError` where nothing was recorded yet."""
    flags = {"journal": args.journal} if args.journal else {}
    path = load(flags, shell.environ, shell.folder, shell.home).journal
    if path is None:
        raise UsageError("nothing is recorded: the journal is off", fix="name its file with --journal")
    if not path.is_file():
        raise UsageError(
            "no runs are recorded yet", where=f"at {path}", fix="hira ask records them; --journal names another file"
        )
    journal = Journal(path)
    try:
        yield journal
    finally:
        journal.close()


def day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def took(seconds: float) -> str:
    """A duration as a person reads it: 0.4 s, 12 s, 3 min 20 s, 1 h 5 min."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
