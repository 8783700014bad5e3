"""`hira resume`: a run goes on where it ended, with the settings of then and the keys of today. A report is told and
written as `hira report` does."""

import argparse

from hira.api import Hira
from hira.cli import output, report
from hira.cli.approve import at_terminal
from hira.cli.ask import finish_run, print_answer
from hira.cli.earlier import as_flags, load_recorded
from hira.cli.flags import REPORTING
from hira.cli.parser import LIMITS
from hira.cli.runs import open_journal
from hira.cli.shell import Shell
from hira.core.errors import UsageError
from hira.runtime.run import Run
from hira.runtime.session import APPROVAL, HANDED, TOOL_APPROVAL
from hira.runtime.settings import load
from hira.runtime.trace import read
from hira.workflows import WORKFLOWS

DONE = ("answered", "unverified", "insufficient_evidence")


def resume(args: argparse.Namespace, shell: Shell) -> int:
    with open_journal(args, shell) as journal:
        entry = journal.entry(args.run)
        form = report if entry.workflow in REPORTING else output
        path = output.check_output_path(args.output, shell.folder, form.SUFFIXES) if args.output else None
        if entry.status in DONE:
            answer = read(journal, entry.id).answer
            if not args.quiet:
                shell.remark(f"run {entry.id} has already ended; this is its answer")
            if path:
                form.write(answer, path)
            return print_answer(answer, args, shell, entry.settings, tell=form.tell)
    if entry.workflow and entry.workflow not in WORKFLOWS and entry.settings.get("workflow") in WORKFLOWS:
        raise UsageError(f"run {entry.id} used a custom workflow, {entry.workflow!r}",
                         fix="resume it from Python: Hira(workflow=…).resume(run)")  # fmt: skip
    handed = list(entry.settings.get(HANDED, ()))
    person = at_terminal(args, shell) if {APPROVAL, TOOL_APPROVAL}.intersection(handed) else None
    approve = person if APPROVAL in handed else None
    if handed := [one for one in handed if one not in (APPROVAL, TOOL_APPROVAL)]:
        raise UsageError(f"run {entry.id} was started by a program, with its own {', '.join(handed)}",
                         fix="resume it there, with the same: await Hira(…).resume(run)")  # fmt: skip
    today = load({}, shell.environ, shell.folder, shell.home)
    named = (*LIMITS, "max_reply_tokens", "verify")
    limits = {name: value for name in named if (value := getattr(args, name)) is not None}
    flags = {**limits, "journal": args.journal} if args.journal else limits
    settings = load_recorded(as_flags(entry, today), flags, shell, entry.files)
    hira = Hira(settings=settings, approve=approve, approve_tool=person)

    async def begin() -> Run:
        return await hira.resume(entry.id)

    return finish_run(hira, begin, args, shell, path, tell=form.tell, write=form.write)
