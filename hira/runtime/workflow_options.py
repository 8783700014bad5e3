"""The options of workflows: which a workflow has, and those that the settings give to it."""

import typing
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from hira.core.errors import UsageError, did_you_mean
from hira.core.wrong_values import read_value
from hira.runtime.settings import Settings
from hira.workflows import WORKFLOWS, has_options_of

MAY_BE_ZERO = frozenset({"pages", "papers"})
"""Numbers of a workflow that may be 0; of all others there is at least one."""
_NO_OPTIONS = frozenset({"name", "experts"})


def read_options(settings: Settings, workflow: str) -> dict[str, Any]:
    """Return the options that the settings give to the workflow, with the types of its fields: those of a workflow that
    it extends, then its own.

    Raises `UsageError` for a workflow that does not exist, and for an option that a workflow does not have, also where
    another one is run: a misspelt name would be passed over for good.
    """
    given: dict[str, Any] = {}
    for name, options in sorted(settings.workflows.items(), key=lambda table: table[0] == workflow):
        table = f"workflows.{name}"
        if name not in WORKFLOWS:
            where = settings.locate(table, table) or f"table [{table}]"
            raise UsageError(f"unknown workflow {name!r}", where=where, fix=did_you_mean(name, WORKFLOWS))
        make: Any = WORKFLOWS[name]
        hints = typing.get_type_hints(make)
        has = {field.name: hints[field.name] for field in fields(make) if field.name not in _NO_OPTIONS}
        for option, value in options.items():
            read = _read_option(name, has, option, value, where=settings.locate(f"{table}.{option}", table))
            given |= {option: read} if has_options_of(workflow, name) else {}
    return given


def _read_option(workflow: str, has: Mapping[str, Any], option: str, value: Any, *, where: str) -> Any:
    """The value as the option's type wants it; what came from a command line is text."""
    if option not in has:
        fix = did_you_mean(option, has) if has else "it has none"
        raise UsageError(f"workflow {workflow!r} has no option {option!r}", where=where, fix=fix)
    read = read_value(has[option], value, f"option {option!r} of workflow {workflow!r}", where=where)
    least = 0 if option in MAY_BE_ZERO else 1
    if isinstance(read, int) and not isinstance(read, bool) and read < least:
        what = f"option {option!r} of workflow {workflow!r} must be at least {least}, got {read}"
        raise UsageError(what, where=where, fix=f"give {least} or more")
    return read
