"""The options of a command that asks, read from the command line once."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self


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

    @classmethod
    def of(cls, args: argparse.Namespace) -> Self:
        from hira.cli.parser import collect_flags

        named = vars(args)
        values = {option.name: named[option.name] for option in fields(cls) if named.get(option.name) is not None}
        lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return cls(**{**values, **lists, "settings": collect_flags(args)})
