"""How the command line is parsed: what is mistyped gets the nearest name back. `hira.cli.flags` has the commands."""

import argparse
import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

from hira.core.errors import UsageError, suggest
from hira.core.options import read_duration


class Parser(argparse.ArgumentParser):
    """`hints` give advice by the name of an argument, for one that is missing or that this command does not have."""

    hints: Mapping[str, str] = MappingProxyType({})

    def error(self, message: str) -> NoReturn:
        from hira.cli.advice import advise  # most command lines are right

        fix = advise(message, self.prog, self.hints, self._find_elsewhere)
        if fix.startswith("did you mean"):  # then nobody reads the whole list
            message = message.partition(" (choose from")[0]
        raise UsageError(message, fix=fix)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments. The command reports those that it does not take."""
        known, left = self.parse_known_args(args, namespace)
        if left:
            fix = self.find_command(known).about(left, self.commands().values())
            raise UsageError(f"unrecognized arguments: {' '.join(left)}", fix=fix)
        return known

    def find_command(self, known: argparse.Namespace) -> "Parser":
        """Return the parser of the command line's command, at any depth."""
        for name in (getattr(known, "command", None), getattr(known, "what", None)):
            if name in self.commands():
                return self.commands()[str(name)].find_command(known)
        return self

    def about(self, left: Sequence[str], commands: "Iterable[Parser]") -> str:
        """Suggest what to do about arguments that this command does not take, but perhaps another one does."""
        flag = next((argument.partition("=")[0] for argument in left if argument.startswith("-")), "")
        if not flag and all(action.option_strings for action in self._actions):
            return f"{self.prog} takes only flags; {self.prog} --help lists them"
        if not flag:
            return "put the question in quotes, and repeat the flag for each path: --docs A --docs B"
        if flag in self.hints:
            return self.hints[flag]
        if others := [parser.prog for parser in commands if flag in parser.flags()]:
            return f"{flag} is for {', '.join(others[:3])}; {self.prog} --help lists its own flags"
        return suggest(flag, self.flags()) or f"{self.prog} --help lists the flags"

    def commands(self) -> "dict[str, Parser]":
        """Return the parsers of this parser's commands, by name."""
        parsers: dict[str, Parser] = {}
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - argparse has no public name for it
                parsers |= action.choices
        return parsers

    def _find_elsewhere(self, name: str) -> str:
        """Return the command that has this name as its own command or flag, such as `hira ask --batch` for `batch`."""
        for parser in self.commands().values():
            for spelling in (name, f"--{name}"):
                if spelling in (*parser.commands(), *parser.flags()):
                    return f"{parser.prog} {spelling}"
        return ""

    def flags(self) -> list[str]:
        """Return all flags of this parser and of its commands."""
        flags = [flag for action in self._actions for flag in action.option_strings]
        return flags + [flag for parser in self.commands().values() for flag in parser.flags()]


def parse_duration(text: str) -> object:
    """Return the seconds of a duration such as "90", "90s", "5m" or "1.5h"."""
    try:
        return read_duration(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration") from None


def read_number(text: str) -> float:
    """Return a number; NaN if the text does not have one."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def parse_number(text: str) -> float:
    """Return a finite number of at least 0."""
    number = read_number(text)
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 0 or more")
    return number
