"""How the command line is parsed: what is mistyped gets the nearest name back. `hira.cli.flags` has the commands."""

import argparse
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

from hira.core.errors import UsageError, suggest
from hira.core.options import read_duration


class Parser(argparse.ArgumentParser):
    """`hints` give advice by the name of an argument, for one that is missing or that this command does not have."""

    hints: Mapping[str, str] = MappingProxyType({})

    def error(self, message: str) -> NoReturn:
        fix = self._fix(message)
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

    def _fix(self, message: str) -> str:
        """Suggest the nearest command or value; otherwise point to the help."""
        if missing := re.search(r"arguments are required: ([\w-]+)", message):
            return self.hints.get(missing[1], f"{self.prog} --help shows how to use it")
        if number := re.search(r"argument (\S+): invalid (int|float) value", message):
            return f"write a {'whole ' * (number[2] == 'int')}number after {number[1]}"
        if number := re.search(r"argument (\S+): .* is not a number of (\d) or more$", message, re.DOTALL):
            return f"write a number of at least {number[2]} after {number[1]}"
        if message.endswith("is not a duration"):
            return "write 90, 90s, 5m or 1h"
        if choice := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message, re.DOTALL):
            known = re.findall(r"[\w-]+", choice[2])
            elsewhere = self._find_elsewhere(choice[1])
            near = f"did you mean '{elsewhere}'?" if elsewhere else suggest(choice[1], known)
            return near or (
                'to ask a question: hira ask "question"'
                if self.prog == "hira"
                else f"{self.prog} --help lists the choices"
            )
        return f"{self.prog} --help shows how to use it"

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


def _read_number(text: str) -> float:
    """Return a number; NaN if the text does not have one."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def parse_number(text: str) -> float:
    """Return a finite number of at least 0."""
    number = _read_number(text)
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 0 or more")
    return number


def parse_age(text: str) -> float:
    """Return an age in days, which is above 0."""
    days = _read_number(text)
    if not 0 < days < math.inf:
        what = f"{text!r} is not an age in days"
        raise UsageError(what, fix="write a number above 0, such as --older 30; hira runs delete RUN deletes one run")
    return days


def parse_column(text: str) -> tuple[str, str]:
    """Return the part of a question and the column of a file that holds it."""
    part, equals, name = text.partition("=")
    if not (part and equals and name):
        raise UsageError(f"--column {text!r} does not name a column", fix="write --column question=NAME")
    return part, name


def parse_numbers(text: str) -> list[int]:
    """Return limits of subtasks, separated by commas."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{text!r} is not a list of numbers", fix="write --max-subtasks 1,2,3") from None
    if min(numbers) < 1:
        raise UsageError(f"{min(numbers)} is not a number of subtasks", fix="give 1 or more")
    return numbers


def parse_workflow_options(texts: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the options of --set, by workflow. Raises `UsageError` for a text that does not name an option."""
    options: dict[str, dict[str, str]] = {}
    for text in texts:
        named = re.fullmatch(r"([\w-]+)\.(\w+)=(.+)", text)
        if named is None:
            raise UsageError(f"--set {text!r} does not name an option", fix="write --set mars.max_turns=5")
        options.setdefault(named[1], {})[named[2]] = named[3]
    return options


def check_options(texts: Iterable[str], workflows: Iterable[str]) -> None:
    """Raise `UsageError` for an option of --set whose workflow is not in use."""
    used = list(workflows)
    for name in parse_workflow_options(texts):
        from hira.workflows import WORKFLOWS, has_options_of  # only here: `hira --help` does without them

        if name not in WORKFLOWS or not any(has_options_of(workflow, name) for workflow in used):
            what = f"--set names an option of {name!r}, and the workflow is {' and '.join(map(repr, used))}"
            if name not in WORKFLOWS and any(":" in name for name in used):
                raise UsageError(what, fix="a workflow of your own takes no --set; write its options into its class")
            known = f"add --workflow {name}, or remove the option" if name in WORKFLOWS else ""
            raise UsageError(what, fix=known or suggest(name, [*used, *WORKFLOWS]) or "leave the option out")


def parse_role(text: str) -> tuple[str, dict[str, str]]:
    role, equals, model = text.partition("=")
    if not (role and equals and model):
        raise UsageError(f"--role {text!r} does not name a model", fix="write --role planner=MODEL")
    return role, {"model": model}
