"""`hira completion`: a script for the shell, which `shtab` makes from the parser."""

import argparse
from dataclasses import dataclass

import hira
from hira.cli import OK
from hira.cli.options import build_parser
from hira.cli.shell import Shell
from hira.core.errors import UsageError

PATHS = ("FILE", "PATH", "DIR", "FOLDER", "RUN.toml")
WORKFLOWS = (
    "hira", "auto", "mars", "marsrl", "matpo", "mams", "direct", "rag", "search-o1", "webthinker", "codeact",
    "multimodal", "plan-and-solve", "react", "react-report",
)  # fmt: skip
"""Written out, because a shell that starts waits for this script, and the workflows take long to import."""


@dataclass(frozen=True, slots=True)
class CompletionOptions:
    shell: str
    """The shell: bash, zsh or fish."""


def completion(options: CompletionOptions, shell: Shell) -> int:
    try:
        import shtab
    except ImportError:
        raise UsageError("completion scripts need shtab", fix="pip install 'hira[completion]'") from None
    parser = build_parser(hira.__version__)
    _complete_values(parser, shtab.FILE)
    shell.say(shtab.complete(parser, shell=options.shell))
    return OK


def _complete_values(parser: argparse.ArgumentParser, path: object) -> None:
    """Say what may follow the flags of a parser and of all below it: paths, and the names of workflows."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public name for it
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - likewise
            for choice in action.choices.values():
                _complete_values(choice, path)
        elif action.metavar in PATHS:
            action.complete = path  # type: ignore[attr-defined]  # what shtab reads
        elif "--workflow" in action.option_strings and not action.choices:
            action.choices = WORKFLOWS
