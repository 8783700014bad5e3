"""`hira replay`: a recorded run is shown again as it was, and gone through again without calling anything. A report is
told and written as `hira report` does."""

import argparse
import asyncio
import importlib

from hira.cli import INTERRUPTED, USAGE, explain, output, report
from hira.cli.ask import going_on, print_answer
from hira.cli.earlier import load_recorded
from hira.cli.flags import REPORTING
from hira.cli.progress import open_view
from hira.cli.runs import open_journal
from hira.cli.shell import Shell
from hira.core.errors import HiraError
from hira.core.events import events_of
from hira.runtime.registry import made_workflow
from hira.runtime.trace import read


def replay(args: argparse.Namespace, shell: Shell) -> int:
    again_by = importlib.import_module("hira.runtime.replay")
    with open_journal(args, shell) as journal:
        form = report if journal.entry(args.run).workflow in REPORTING else output
        path = output.check_output_path(args.output, shell.folder, form.SUFFIXES) if args.output else None
        entry, flow = journal.entry(args.run), None
        if code := again_by.needed_code(entry):
            load_recorded(code, {"journal": args.journal} if args.journal else {}, shell)  # raises NotTrusted
            flow = made_workflow(again_by.settings_of(entry))
        again = asyncio.run(again_by.replay(journal, entry.id, flow))
        answer = read(journal, again.entry.id).answer
    with open_view(args, shell) as view:
        for event in events_of(again.events):
            view(event)
    if path:
        form.write(answer, path)
    run = again.entry.id
    if again.same:
        settings = again.entry.settings
        return print_answer(answer, args, shell, settings, again=going_on(run, answer.status, settings), tell=form.tell)
    form.tell(answer, args, shell)
    if not again.entry.answer and again.entry.state in ("interrupted", "failed"):
        explain(HiraError(f"run {run} stopped here", fix=f"to resume: hira resume {run}"), shell)
        return INTERRUPTED
    if again.entry.status == "running":
        explain(HiraError(f"run {run} is still running; this is its record so far"), shell)
        return INTERRUPTED
    made = again.entry.versions.get("hira", "an unknown version")
    what = again.ends or "the recorded calls now lead to a different answer"
    where = f"code or prompts have changed since the run, which used hira {made}; this is the record"
    explain(HiraError(what, where=where, fix="ask the question again to see today's answer"), shell)
    return USAGE
