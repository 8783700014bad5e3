"""`hira ask --batch`: many questions, each answer one line of a file as it finishes, all in order at the end."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from hira.agents.trajectory import FINAL, Status
from hira.api import Hira
from hira.cli import INTERRUPTED, code_of
from hira.cli.batch_files import Answers, questions_of
from hira.cli.many import short_pauses, tell_waiting
from hira.cli.options import AskOptions
from hira.cli.output import CODES
from hira.cli.progress import CellCounts
from hira.cli.running import announce_model, open_view, show_progress
from hira.cli.shell import Shell
from hira.core.errors import UsageError, count_of
from hira.core.events import Reader
from hira.core.window import CONCURRENCY
from hira.runtime.batch import Batch, Question
from hira.runtime.ray_batch import RayBatch
from hira.runtime.settings import Settings

# The worst of what happened is the exit code, in this order.
WORST: Sequence[Status] = ("interrupted", "failed", "partial", "insufficient_evidence", "unverified", "answered")

REST = "run the same command to ask what is missing in {file}"
NOTHING_YET = "no question is answered; run the same command to ask them"


def batch(options: AskOptions, settings: Settings, shell: Shell) -> int:
    """Ask the unanswered questions. All faults are reported before the first question is asked."""
    _check(options, shell)
    name = "standard input" if options.batch == "-" else options.batch
    text = shell.stdin.read() if options.batch == "-" else shell.read_text(options.batch, "--batch")
    questions = questions_of(text, name, shell.folder / Path(options.batch).parent)
    if options.output in ("", "-"):
        raise UsageError("a batch needs a file for its answers", fix="name it with --output answers.jsonl")
    with Answers((shell.folder / options.output).absolute(), questions) as answers:
        if left := list(answers.list_unfinished()):
            return asyncio.run(_ask_all(settings, left, answers, options, shell))
        shell.remark(f"{options.output} already holds a result for each of the {len(questions)} questions")
        return CODES[min(answers.statuses(), key=WORST.index)]


def _check(options: AskOptions, shell: Shell) -> None:
    for name, given in (("a question", options.question), ("--file", options.files)):
        if given:
            raise UsageError(f"{name} and --batch cannot be combined", fix="write the question into the batch file")
    for name, value in (("approve", options.approve), ("continue", options.continues), ("schema", options.schema)):
        if value:
            raise UsageError(f"--{name} and --batch cannot be combined", fix="remove one of them")
    for name, is_set in (("json", options.json), ("dry-run", options.dry_run)):
        if is_set:
            raise UsageError(f"--{name} does not work with --batch", fix="leave it out")
    if options.ray and shell.events:
        raise UsageError("--events and --ray cannot be combined", fix="remove one of them")


async def _ask_all(
    settings: Settings, questions: Sequence[Question], answers: Answers, options: AskOptions, shell: Shell
) -> int:
    counts = CellCounts(len(questions))
    with open_view(shell, counts, quiet=options.quiet) as view:
        waiting = [] if options.quiet else [counts.watch, tell_waiting(view.say)]

        def begins(question: Question, run: str) -> Sequence[Reader]:
            answers.begin(question, run)
            return [partial(shell.event, id=question.id, run=run)] if shell.events else waiting

        most = CONCURRENCY if options.concurrency is None else options.concurrency
        try:
            async with AsyncExitStack() as stack:
                many: Batch
                if options.ray:
                    many = RayBatch(settings, questions, address=options.ray, concurrency=most, begins=begins)
                else:
                    hira = await stack.enter_async_context(Hira(settings=settings))
                    many = Batch(hira, questions, concurrency=most, begins=begins)
                    if line := announce_model(await hira.open_session()):
                        view.say(line)
                stack.enter_context(short_pauses())
                async with show_progress(many, view):
                    async for done in many.each():
                        answers.keep(done)
                        usage = done.answer.rollout.usage
                        counts.add(done.answer.status, usage.tokens, usage.cost)
                        view.update()
        except asyncio.CancelledError:
            shell.remark(REST.format(file=options.output) if answers.statuses() else NOTHING_YET)
            return INTERRUPTED
    return _end(many, answers, options, shell)


def _end(many: Batch, answers: Answers, options: AskOptions, shell: Shell) -> int:
    """Say how many were answered; what was not is asked again by the same command."""
    counts, total = Counter(answers.statuses()), len(answers.questions)
    unasked = total - counts.total()
    parts = [f"{counts[status]} {status.replace('_', ' ')}" for status in reversed(WORST) if counts[status]]
    parts += [f"{unasked} not asked"] if unasked else []
    shell.remark(f"{count_of(total, 'question')}: {', '.join(parts)}")
    if unasked or set(counts).difference(FINAL):
        shell.remark(REST.format(file=options.output))
    if many.failure:
        shell.explain(many.failure)
        return code_of(many.failure)
    return INTERRUPTED if unasked else CODES[min(counts, key=WORST.index)]
