"""Flags that assign a value to a name: `--role ROLE=M`, `--set NAME.OPTION=VALUE`, `--column PART=NAME`."""

import re
from collections.abc import Iterable

from hira.core.errors import UsageError, suggest


def parse_roles(texts: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the settings of roles in --role. Raises `UsageError` for a text that does not name a model."""
    roles: dict[str, dict[str, str]] = {}
    for text in texts:
        role, _, model = text.partition("=")
        if not (role and model):
            raise UsageError(f"--role {text!r} does not name a model", fix="write --role planner=MODEL")
        roles[role] = {"model": model}
    return roles


def parse_column(text: str) -> tuple[str, str]:
    """Return the part of a question and the column of a file that holds it."""
    part, equals, name = text.partition("=")
    if not (part and equals and name):
        raise UsageError(f"--column {text!r} does not name a column", fix="write --column question=NAME")
    return part, name


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
