"""The parser of the command line, and the flags of the commands, each described once. It is read at every start."""

import argparse
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

from hira.core.errors import UsageError, suggest
from hira.core.options import COUNTS, PARTS, SHARED, read_duration

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
REPORTING = ("mams", "react-report")

Arguments = tuple[tuple[str, ...], Mapping[str, Any]]
"""The positional and the named arguments of `add_argument`."""


class Parser(argparse.ArgumentParser):
    """`hints` give advice by the name of an argument, for one that is missing or that this command does not have."""

    hints: Mapping[str, str] = MappingProxyType({})

    def error(self, message: str) -> NoReturn:
        fix = _advise(message, self.prog, self.hints, self.commands().values())
        if fix.startswith("did you mean"):  # then nobody reads the whole list
            message = message.partition(" (choose from")[0]
        raise UsageError(message, fix=fix)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments. The command reports those that it does not take."""
        known, left = self.parse_known_args(args, namespace)
        if left:
            command = self
            for name in (getattr(known, "command", None), getattr(known, "what", None)):
                command = command.commands().get(str(name), command)
            fix = command.about(left, self.commands().values())
            raise UsageError(f"unrecognized arguments: {' '.join(left)}", fix=fix)
        return known

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
        advice = suggest(flag, self.flags())
        if not advice and self.prog.startswith("hira ") and "--model" in self.flags():
            from hira.runtime.settings import Settings  # most command lines are right

            if (name := flag.removeprefix("--").replace("-", "_")) in Settings.model_fields:
                advice = f"{name} is a setting without a flag; write {name} = … in hira.toml"
        return advice or f"{self.prog} --help lists the flags"

    def add(self, *arguments: "Arguments | FlagGroup") -> None:
        """Add flags and positional arguments, in their groups."""
        for argument in arguments:
            if isinstance(argument, FlagGroup):
                group = self.add_argument_group(argument.title)
                for names, named in argument.flags:
                    group.add_argument(*names, **named)
            else:
                names, named = argument
                self.add_argument(*names, **named)

    def commands(self) -> "dict[str, Parser]":
        """Return the parsers of this parser's commands, by name."""
        parsers: dict[str, Parser] = {}
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - argparse has no public name for it
                parsers |= action.choices
        return parsers

    def flags(self) -> list[str]:
        """Return all flags of this parser and of its commands."""
        flags = [flag for action in self._actions for flag in action.option_strings]
        return flags + [flag for parser in self.commands().values() for flag in parser.flags()]


def _advise(message: str, prog: str, hints: Mapping[str, str], commands: Iterable[Parser]) -> str:
    """Suggest the nearest command or value, or one of the `commands` that has it as its own command or flag, such as
    `hira ask --batch` for `batch`; otherwise point to the help."""
    if missing := re.search(r"arguments are required: ([\w-]+)", message):
        return hints.get(missing[1], f"{prog} --help shows how to use it")
    if number := re.search(r"argument (\S+): invalid (int|float) value", message):
        return f"write a {'whole ' * (number[2] == 'int')}number after {number[1]}"
    if number := re.search(r"argument (\S+): .* is not a number of (\d) or more$", message, re.DOTALL):
        return f"write a number of at least {number[2]} after {number[1]}"
    if message.endswith("is not a duration"):
        return "write 90, 90s, 5m or 1h"
    if choice := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message, re.DOTALL):
        elsewhere = [
            f"{command.prog} {spelling}"
            for command in commands
            for spelling in (choice[1], f"--{choice[1]}")
            if spelling in (*command.commands(), *command.flags())
        ]
        known = re.findall(r"[\w-]+", choice[2])
        near = f"did you mean '{elsewhere[0]}'?" if elsewhere else suggest(choice[1], known)
        return near or (
            'to ask a question: hira ask "question"' if prog == "hira" else f"{prog} --help lists the choices"
        )
    return f"{prog} --help shows how to use it"


def parse_duration(text: str) -> object:
    try:
        return read_duration(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration") from None


def parse_number(text: str) -> float:
    """Return a finite number of at least 0."""
    try:
        if 0 <= (number := float(text)) < math.inf:
            return number
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of 0 or more")


_TYPES = {"N": int, "K": int, "PORT": int, "USD": parse_number, "TIME": parse_duration}


def flag(names: str, metavar: str, about: str, **more: Any) -> Arguments:
    """Describe a flag or a positional argument. The metavar decides on the type; if empty, argparse shows its own."""
    kind = {"type": _TYPES[metavar]} if metavar in _TYPES else {}
    return tuple(names.split()), {"metavar": metavar or None, "help": about, **kind, **more}


def repeatable_flag(names: str, metavar: str, about: str, **more: Any) -> Arguments:
    return flag(names, metavar, f"{about}; repeatable", action="append", **more)


def switch(names: str, about: str, **more: Any) -> Arguments:
    return tuple(names.split()), {"action": "store_true", "help": about, **more}


class FlagGroup:
    """Flags under a heading of the help."""

    def __init__(self, title: str, *flags: Arguments) -> None:
        self.title = title
        self.flags = flags


_NAMED = "model name, gguf:FILE to run a file with llama.cpp, hf:PATH to load weights in this process, or `offline`"
_MODEL = (
    flag("--adapter", "DIR", "LoRA adapter for a model loaded with hf:PATH"),
    flag("--profile", "RUN", "output folder of a hira-train run"),
    flag("--base-url", "URL", "OpenAI-compatible endpoint, such as http://127.0.0.1:8000/v1"),
    flag("--reasoning-effort", "E", f"reasoning effort of the model: {', '.join(EFFORTS)}", choices=EFFORTS),
    repeatable_flag(
        "--role", "ROLE=M", "model for one role; several separated by commas are tried in order", default=[]
    ),
)
MODEL = FlagGroup("model", flag("-m --model", "M", _NAMED), *_MODEL)
MODELS = FlagGroup("model", repeatable_flag("-m --model", "M", _NAMED, dest="models"), *_MODEL)
SOURCES = FlagGroup(
    "sources",
    repeatable_flag("--docs", "PATH", "file or folder to search"),
    flag(
        "--search",
        "NAME",
        "web search: serper, tavily, brave, wikipedia (needs no key) …; or a retriever, module:function",
    ),
)
MEMORY = switch("--memory", "keep verified claims about your documents, and find them again", default=None)
FILES = repeatable_flag("--file", "PATH", "file to attach to the question", default=[], dest="files")
OPTIONS = repeatable_flag("--set", "NAME.OPTION=VALUE", "option of a workflow, such as mars.max_turns=5", default=[])
WORK = FlagGroup(
    "workflow",
    flag("--workflow", "NAME", "auto (default), hira, mars, rag, react …; docs/workflows.md lists them"),
    repeatable_flag("--tools", "NAME", "your own tool as module:function, or one of an installed package"),
    repeatable_flag("--without", "PART", SHARED["without"], choices=PARTS),
    *(flag(f"--{name.replace('_', '-')}", "N", about) for name, about in COUNTS.items()),
)
_LIMITS = FlagGroup(
    "limits of the run; a tenth is reserved for the answer",
    flag("--max-tokens", "N", "prompt and reply tokens"),
    flag("--max-cost", "USD", "US dollars"),
    flag("--max-time", "TIME", "such as 90, 90s, 5m or 1h, without the time for indexing documents"),
    flag("--max-calls", "N", "model calls"),
    flag("--max-reply-tokens", "N", "tokens of one reply (4096)"),
)
_CHECKS = "check claims by words alone, ask the model about doubtful ones (default), or check nothing"
_CHECKING = FlagGroup("verification", flag("--verify", "", _CHECKS, choices=("lexical", "model", "off")))
LIMITS = (_LIMITS, _CHECKING)
RECORD = FlagGroup(
    "record",
    flag("--journal", "FILE", "journal file; `off` records nothing"),
    switch("--cache", "reuse the replies of recorded runs", dest="cache_responses", default=None),
)
CONTINUE = flag("--continue", "RUN", "follow up on a recorded run, with its settings; or `last`", dest="continues")
RAY = flag("--ray", "ADDRESS", "ask on a Ray cluster: local, auto, ray://HOST:PORT")
DRY_RUN = switch("--dry-run", "print the maximum cost and exit")
OUTPUT = flag(
    "-o --output", "FILE", "write the answer to a file as well: .md, .txt, .html, .json, .docx, .pdf, .bib or .ris"
)
JSON = switch("--json", "one JSON object on stdout")
QUIET = switch("-q --quiet", "no progress on stderr")
PROGRESS = (JSON, switch("--events", "progress as JSON lines on stderr"), QUIET)
DEBUG = switch("--debug", "show tracebacks")
ASKING = (MODEL, SOURCES, MEMORY, FILES, OPTIONS, WORK, *LIMITS, CONTINUE, RECORD, *PROGRESS)


def add_command(
    commands: Any,
    name: str,
    about: str,
    *arguments: Arguments | FlagGroup,
    more: str = "",
    hints: Mapping[str, str] | None = None,
    debug: bool = True,
) -> Parser:
    """Add a command with these arguments, and with `--debug`."""
    description = f"{about[0].upper()}{about[1:]}.{f' {more}' if more else ''}"
    command: Parser = commands.add_parser(name, help=about, description=description, allow_abbrev=False)
    command.hints = hints or {}
    command.add(*arguments, *([DEBUG] if debug else []))
    return command


def add_asking(commands: Any) -> None:
    many = FlagGroup(
        "many questions at once",
        flag("--batch", "FILE", "file of questions, one per line: text, or JSON with question, id and files"),
        flag("--concurrency", "N", "questions at a time (8)"),
        RAY,
    )
    add_command(
        commands,
        "ask",
        "answer a question",
        flag("question", "", "the question; - reads it from standard input", nargs="?"),
        *(*ASKING, many, DRY_RUN),
        switch("--approve", "ask before each subtask runs; you can edit or reject it"),
        flag("-o --output", "FILE", f"{OUTPUT[1]['help']}; with --batch: the answers as JSON lines"),
        flag("--schema", "FILE", "answer with JSON that fits this JSON schema"),
    )
    text = "Reads them from standard input, one per line, until its end, `exit` or `quit`."
    add_command(commands, "chat", "ask questions that follow up on each other", *ASKING, more=text)
