"""The settings of a recorded run, as they would be given on the command line."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hira.cli.parser import collect_flags
from hira.cli.runs import open_journal
from hira.cli.shell import Shell
from hira.core.sanitize import without_userinfo
from hira.journal import Entry
from hira.runtime.replay import recorded_settings
from hira.runtime.settings import FILE, Settings, load
from hira.runtime.settings.reading import find_own_file

_OF_MODEL = ("model", "base_url", "api_key", "api", "adapter", "roles", "verify", "dialect", "continuation")
_OF_WORKFLOW = ("workflow", "max_subtasks", "parallel", "without")


def load_settings(args: argparse.Namespace, shell: Shell) -> Settings:
    """The settings of a command that asks; with `--continue`, the recorded ones hold where no flag says otherwise.

    Replaces `last` or the beginning of an id by the id of the run.
    """
    flags = collect_flags(args)
    if args.continues is None:
        return load(flags, shell.environ, shell.folder, shell.home)
    with open_journal(args, shell) as journal:
        entry = journal.entry(args.continues)
    args.continues = entry.id
    kept = dict(as_flags(entry, load({}, shell.environ, shell.folder, shell.home)))
    if flags.keys() & {"model", "base_url", "profile"}:
        kept = {name: value for name, value in kept.items() if name not in _OF_MODEL}
    if "workflow" in flags:
        kept = {name: value for name, value in kept.items() if name not in _OF_WORKFLOW}
    return load_recorded(kept, flags, shell)


def load_recorded(
    kept: Mapping[str, Any], flags: Mapping[str, Any], shell: Shell, files: Sequence[str] = ()
) -> Settings:
    """The settings of a recorded run under these flags; it had these files attached.

    They count as the user's own where the user named the journal. Else they need consent as the project's file does
    that named it (`NotTrusted`): both may have come with the folder.
    """
    origin = load(flags, shell.environ, shell.folder, shell.home).origin("journal")
    if origin in ("--journal", "HIRA_JOURNAL", "default", str(find_own_file(shell.environ, shell.home))):
        return load({**kept, **flags}, shell.environ, shell.folder, shell.home)
    if files:
        read = {**kept, "docs": [*kept.get("docs", ()), *map(Path, files)]}
        load(flags, shell.environ, shell.folder, shell.home, record=read)  # raises NotTrusted
    return load(flags, shell.environ, shell.folder, shell.home, record=kept)


def as_flags(entry: Entry, today: Settings) -> Mapping[str, Any]:
    """The recorded settings as they would be given on the command line.

    What speaks at the place of today's configuration takes its key from there; a place is recorded without its
    password. A place that a file named then, and that no configuration names today, is sent no key: the file may have
    been anyone's.
    """
    values = dict(recorded_settings(entry))
    for name in ("base_url", "searxng_url"):
        if without_userinfo(getattr(today, name)) == values.get(name):
            del values[name]
    if "base_url" in values and entry.settings.get("base_url_from", "").endswith(FILE):
        values["api_key"] = ""
    roles = {}
    for name, own in values.pop("roles", {}).items():
        given = {key: value for key, value in own.items() if value not in ("", None)}
        if name in today.roles and without_userinfo(today.roles[name].base_url) == given.get("base_url"):
            del given["base_url"]
        roles[name] = given
    return {**values, "roles": roles, "docs": [Path(path) for path in values.get("docs", ())]}
