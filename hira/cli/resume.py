"""`hira resume`: a run goes on where it ended, with the settings of then and the keys of today. A report is told and
written as `hira report` does."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hira.api import Hira
from hira.cli import output, report
from hira.cli.approve import at_terminal
from hira.cli.ask import finish_run, print_answer
from hira.cli.flags import REPORTING
from hira.cli.parser import LIMITS
from hira.cli.runs import open_journal
from hira.cli.shell import Shell
from hira.core.errors import UsageError
from hira.core.redaction import without_userinfo
from hira.journal import Entry
from hira.runtime.replay import recorded_settings
from hira.runtime.run import Run
from hira.runtime.session import APPROVAL, HANDED
from hira.runtime.settings import FILE, Settings, load
from hira.runtime.trace import read
from hira.workflows import WORKFLOWS

DONE = ("answered", "unverified", "insufficient_evidence")


def resume(args: argparse.Namespace, shell: Shell) -> int:
    with open_journal(args, shell) as journal:
        entry, file = journal.entry(args.run), journal.path
        form = report if entry.workflow in REPORTING else output
        path = output.check_output_path(args.output, shell.folder, form.SUFFIXES) if args.output else None
        if entry.status in DONE:
            answer = read(journal, entry.id).answer
            if not args.quiet:
                shell.remark(f"run {entry.id} has already ended; this is its answer")
            if path:
                form.write(answer, path)
            return print_answer(answer, args, shell, entry.settings, tell=form.tell)
    if entry.workflow and entry.workflow not in WORKFLOWS:
        raise UsageError(f"run {entry.id} used a custom workflow, {entry.workflow!r}",
                         fix="resume it from Python: Hira(workflow=…).resume(run)")  # fmt: skip
    handed = list(entry.settings.get(HANDED, ()))
    approve = at_terminal(args, shell) if APPROVAL in handed else None
    if handed := [one for one in handed if one != APPROVAL]:
        raise UsageError(f"run {entry.id} was started by a program, with its own {', '.join(handed)}",
                         fix="resume it there, with the same: await Hira(…).resume(run)")  # fmt: skip
    today = load({}, shell.environ, shell.folder, shell.home)
    named = (*LIMITS, "max_reply_tokens", "verify")
    limits = {name: value for name in named if (value := getattr(args, name)) is not None}
    flags = {**as_flags(entry, today), **limits, "journal": file}
    hira = Hira(settings=load(flags, shell.environ, shell.folder, shell.home), approve=approve)

    async def begin() -> Run:
        return await hira.resume(entry.id)

    return finish_run(hira, begin, args, shell, path, tell=form.tell, write=form.write)


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
