"""`hira chat`: questions from standard input, one per line, that follow up on each other."""

import asyncio
from functools import partial

from hira.api import Hira
from hira.cli import OK
from hira.cli.ask import AnswerOutput, find_attached_files, finish_run, load_settings, show
from hira.cli.assignments import check_options
from hira.cli.options import AskOptions
from hira.cli.running import at_terminal
from hira.cli.shell import Shell
from hira.core.sanitize import printable

HELP = """Each line is a question. The model sees it together with the questions and answers before.
To leave, press Ctrl-D, or write exit or quit. {runs}"""


def chat(options: AskOptions, shell: Shell) -> int:
    settings, earlier = load_settings(options, shell)
    check_options(options.set, [settings.workflow])
    files = find_attached_files(options, shell)
    hira = Hira(settings=settings, approve_tool=at_terminal(shell) if shell.has_person else None)
    talk = hira.chat(earlier)
    runs = f"The runs are kept in {settings.journal}: hira runs." if settings.journal else "The runs are not kept."
    code = OK
    with asyncio.Runner() as runner:  # its loop rests while the person writes, so that Ctrl-C ends the waiting
        try:
            runner.run(hira.open_session())
            while question := _read_line(shell, HELP.format(runs=runs)):
                begin = partial(talk.stream, question, files=files)
                run = runner.run(show(hira, begin, options, shell, announce=not talk.runs, close=False))
                code = finish_run(hira, run, AnswerOutput(options, shell))
                if run is None:
                    break
                if not options.json:
                    shell.say("")  # a blank line before what follows
        finally:
            runner.run(hira.aclose())
    return code


def _read_line(shell: Shell, explanation: str) -> str:
    """The next question, empty at the end of the input and at `exit` or `quit`; `help` prints the explanation."""
    while True:
        if shell.stdin.isatty():
            shell.stderr.write("> ")
            shell.stderr.flush()
        line = shell.stdin.readline()
        question = printable(line).strip()
        if not line or question in ("exit", "quit"):
            return ""
        if question == "help" or (question.startswith("/") and " " not in question):
            shell.tell(explanation)
        elif question:
            return question
