"""The command line, read once into the options of a command: the class of its parameter `options`."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from hira.cli.flags import Parser, add_asking
from hira.cli.shell import Shell
from hira.core.errors import UsageError

Command = Callable[[Any, Shell], int]
ASKING_COMMANDS = ("ask", "chat")
EVALUATING = ("run", "ablate", "sweep", "diff", "judge", "preferences", "candidates")


def parse_arguments(arguments: Sequence[str], version: str) -> Any:
    """Parse the command line with the parsers that its command needs; all of them are built only to explain an error.

    `hira eval DATA` is short for `hira eval run DATA`, `hira help COMMAND` for `hira COMMAND --help`.
    """
    first, *rest = arguments or [""]
    if first == "help":
        arguments = [*rest, "--help"]
    elif first == "eval" and rest and rest[0] not in (*EVALUATING, "-h", "--help"):
        arguments = ["eval", "run", *rest]
    try:
        return build_parser(version, *arguments[:1]).parse_args(arguments)
    except UsageError:
        return build_parser(version).parse_args(arguments)


def build_parser(version: str, command: str = "") -> Parser:
    """The parser of the command line; with a `command` only the part for this command and those like it."""
    main = Parser(
        prog="hira",
        description="Ask hard questions of any model; get answers bound to evidence.",
        epilog="exit codes: 0 answered, 1 a fault in hira, 2 usage or configuration, 3 endpoint or key, "
        "4 not verified or not enough evidence, 5 partial (a budget ran out), 130 interrupted",
        allow_abbrev=False,
    )
    main.hints = {"COMMAND": 'hira ask "question" asks; hira --help lists the commands'}
    main.add_argument("--version", action="version", version=f"hira {version}")
    commands = main.add_subparsers(dest="command", metavar="COMMAND", required=True)
    if command in ASKING_COMMANDS:
        add_asking(commands)
        return main
    from hira.cli.commands import COMMANDS  # most starts ask

    parts = [add for add, names in COMMANDS.items() if command in names]
    for add in parts or (add_asking, *COMMANDS):
        add(commands)
    return main


def read_options(command: Command, args: argparse.Namespace) -> Any:
    """Return the frozen options of the command, with their defaults; `settings` are the flags that are settings."""
    kind = command.__annotations__["options"]
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in vars(args).items()}
    values = {option.name: given[option.name] for option in fields(kind) if given.get(option.name) is not None}
    if "settings" in kind.__annotations__:
        from hira.runtime.settings import Settings  # loads pydantic, which `hira --help` does without

        flags = vars(args)
        settings: dict[str, Any] = {
            name: flags[name] for name in Settings.model_fields if name != "roles" and flags.get(name) is not None
        }
        if flags.get("role"):
            from hira.cli.assignments import parse_roles

            settings["roles"] = parse_roles(flags["role"])
        if flags.get("set"):
            from hira.cli.assignments import parse_workflow_options

            settings["workflows"] = parse_workflow_options(flags["set"])
        values["settings"] = settings
    return kind(**values)


@dataclass(frozen=True, slots=True)
class AskOptions:
    """The options of `ask`, `chat`, `report`, `compare`, `resume` and `replay`, each with a default."""

    question: str | None = None
    """The question or topic, `-` for standard input."""
    run: str = ""
    """The recorded run to resume or replay."""
    continues: str | None = None
    """The recorded run whose conversation is continued."""
    files: tuple[str, ...] = ()
    set: tuple[str, ...] = ()
    """Options of workflows, as NAME.OPTION=VALUE."""
    schema: str = ""
    output: str = ""
    journal: str = ""
    json: bool = False
    quiet: bool = False
    approve: bool = False
    dry_run: bool = False
    batch: str = ""
    """The file of questions, `-` for standard input."""
    concurrency: int | None = None
    ray: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The flags that are settings, by the names of the settings."""
