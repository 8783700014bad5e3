"""`hira resume` continues a recorded run, with its settings and today's keys; `hira replay` makes no call."""

import asyncio
import importlib
from functools import partial

from hira.agents.trajectory import FINAL
from hira.api import Hira
from hira.cli import INTERRUPTED, USAGE, output
from hira.cli.ask import AnswerOutput, describe_resumption, finish_run, show
from hira.cli.export import check_output_path
from hira.cli.flags import REPORTING
from hira.cli.options import AskOptions
from hira.cli.output import print_answer
from hira.cli.report import ReportOutput
from hira.cli.running import at_terminal, open_view
from hira.cli.runs import as_flags, load_recorded, open_journal
from hira.cli.shell import Shell, brief
from hira.core.errors import HiraError, UsageError
from hira.core.options import LIMITS
from hira.journal.records import Entry, decode_events
from hira.runtime.registry import make_workflow
from hira.runtime.session import APPROVAL, HANDED, TOOL_APPROVAL
from hira.runtime.trace import read
from hira.workflows import WORKFLOWS


def resume(options: AskOptions, shell: Shell) -> int:
    with open_journal(options.journal, shell) as journal:
        entry = journal.entry(options.run)
        out = choose_output(entry, options, shell)
        more = entry.status != "answered" and not options.settings.keys().isdisjoint(LIMITS)  # for what it left undone
        if entry.status in FINAL and not more:
            answer = read(journal, entry.id).answer
            if not options.quiet:
                shell.remark(f"run {entry.id} has already ended; this is its answer")
            out.write(answer)
            return print_answer(answer, out, entry.settings)
    if entry.workflow and entry.workflow not in WORKFLOWS and entry.settings.get("workflow") in WORKFLOWS:
        raise UsageError(f"run {entry.id} used a custom workflow, {entry.workflow!r}",
                         fix="resume it from Python: Hira(workflow=…).resume(run)")  # fmt: skip
    handed = list(entry.settings.get(HANDED, ()))
    person = at_terminal(shell) if {APPROVAL, TOOL_APPROVAL}.intersection(handed) else None
    approve = person if APPROVAL in handed else None
    if handed := [name for name in handed if name not in (APPROVAL, TOOL_APPROVAL)]:
        raise UsageError(f"run {entry.id} was started by a program, with its own {', '.join(handed)}",
                         fix="resume it there, with the same: await Hira(…).resume(run)")  # fmt: skip
    if not entry.question:
        raise UsageError(f"run {entry.id} ended before its question was asked", fix="ask the question again")
    if not options.quiet:
        shell.remark(f"resuming run {entry.id}: {brief(entry.question)}")
    today = shell.load_settings()
    settings = load_recorded(as_flags(entry, today), options.settings, shell, entry.files)
    hira = Hira(settings=settings, approve=approve, approve_tool=person)
    run = asyncio.run(show(hira, partial(hira.resume, entry.id), options, shell))
    return finish_run(hira, run, out)


def choose_output(entry: Entry, options: AskOptions, shell: Shell) -> output.Output:
    """Return the output of a recorded run, which may be a report."""
    path = check_output_path(options.output, shell.folder) if options.output else None
    if entry.workflow in REPORTING:
        return ReportOutput(options, shell, path)
    return AnswerOutput(options, shell, path)


def replay(options: AskOptions, shell: Shell) -> int:
    again_by = importlib.import_module("hira.runtime.replay")
    with open_journal(options.journal, shell) as journal:
        entry, flow = journal.entry(options.run), None
        out = choose_output(entry, options, shell)
        if code := again_by.find_needed_code(entry):
            load_recorded(code, {"journal": options.journal} if options.journal else {}, shell)  # raises NotTrusted
            flow = make_workflow(again_by.settings_of(entry))
        again = asyncio.run(again_by.replay(journal, entry.id, flow))
        answer = read(journal, again.entry.id).answer
    with open_view(shell, quiet=options.quiet) as view:
        for event in decode_events(again.events):
            view(event)
    out.write(answer)
    run = again.entry.id
    if again.same:
        settings = again.entry.settings
        return print_answer(answer, out, settings, again=describe_resumption(run, answer.status, settings))
    out.tell(answer)
    if not again.entry.answer and again.entry.state in ("interrupted", "failed"):
        shell.explain(HiraError(f"run {run} stopped here", fix=f"to resume: hira resume {run}"))
        return INTERRUPTED
    if again.entry.status == "running":
        shell.explain(HiraError(f"run {run} is still running; this is its record so far"))
        return INTERRUPTED
    made = again.entry.versions.get("hira", "an unknown version")
    what = again.ends or "the recorded calls now lead to a different answer"
    where = f"code or prompts have changed since the run, which used hira {made}; this is the record"
    shell.explain(HiraError(what, where=where, fix="ask the question again to see today's answer"))
    return USAGE
