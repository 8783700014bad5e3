"""The options of a command, read from the command line once. Each command annotates its parameter `options` with the
class that it takes."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from hira.cli.shell import Shell

Command = Callable[[Any, Shell], int]


def read_options(command: Command, args: argparse.Namespace) -> Any:
    """Return the frozen options of the command. An option that the command line lacks has its default; `settings` are
    the flags that are settings."""
    kind = command.__annotations__["options"]
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in vars(args).items()}
    values = {option.name: given[option.name] for option in fields(kind) if given.get(option.name) is not None}
    if "settings" in kind.__annotations__:
        from hira.cli.parser import collect_flags  # its settings load pydantic, which some commands do without

        values["settings"] = collect_flags(args)
    return kind(**values)


@dataclass(frozen=True, slots=True)
class AskOptions:
    """The options of `ask`, `chat`, `report`, `compare`, `resume` and `replay`. An option that a command lacks has its
    default."""

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


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """The options of `show`, `verify` and `trace`. An option that a command lacks has its default."""

    run: str
    """The recorded run."""
    journal: str = ""
    json: bool = False
    output: str | None = None
    """The page that `trace` writes."""
    otel: str | None = None
    """The collector that `trace` sends spans to, empty for the configured one."""
    content: bool = False
    """True if spans include prompts, replies and results."""
    settings: Mapping[str, Any] = field(default_factory=dict)
