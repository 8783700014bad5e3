"""`hira chat`: questions from standard input, one per line, that follow up on each other."""

import argparse
import asyncio
from functools import partial

from hira.api import Hira
from hira.cli import INTERRUPTED, OK
from hira.cli.approve import at_terminal
from hira.cli.ask import attached_files, conclude_run, work_shown
from hira.cli.earlier import load_settings
from hira.cli.parser import check_options
from hira.cli.shell import Shell
from hira.core.sanitize import printable


def chat(args: argparse.Namespace, shell: Shell) -> int:
    settings = load_settings(args, shell)
    check_options(args.set, [settings.workflow])
    files = attached_files(args, shell)
    hira = Hira(settings=settings, approve_tool=at_terminal(args, shell, needed=False))
    talk = hira.chat(args.continues or "")
    code = OK
    with asyncio.Runner() as runner:  # its loop rests while the person writes, so that Ctrl-C ends the waiting
        try:
            runner.run(hira.open_session())
            while question := _read_question(shell):
                begin = partial(talk.stream, question, files=files)
                run = runner.run(work_shown(hira, begin, args, shell, announce=not talk.runs))
                code = conclude_run(hira, run, args, shell)
                if code == INTERRUPTED and run is None:
                    break
        finally:
            runner.run(hira.aclose())
    return code


def _read_question(shell: Shell) -> str:
    """The next question, empty at the end of the input and at `exit`."""
    while True:
        if shell.stdin.isatty():
            shell.stderr.write("> ")
            shell.stderr.flush()
        line = shell.stdin.readline()
        question = printable(line).strip()
        if not line or question == "exit":
            return ""
        if question:
            return question
