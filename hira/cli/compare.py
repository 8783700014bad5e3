"""`hira compare`: one question to several workflows at once, and how each of them fared, side by side."""

import asyncio
import io
import shutil
from collections.abc import Sequence

from hira.agents.trajectory import Status
from hira.cli import INTERRUPTED, OK, code_of
from hira.cli.ask import find_attached_files, read_question
from hira.cli.assignments import check_options
from hira.cli.many import tell_once, tell_waiting
from hira.cli.options import AskOptions
from hira.cli.output import CODES
from hira.cli.progress import format_duration
from hira.cli.running import announce_model, show_progress
from hira.cli.shell import Shell, View
from hira.evidence.verifiers import count_held
from hira.runtime.compare import Compared, comparison
from hira.runtime.settings import Settings

# Where nothing was answered, the best that happened is the exit code, in this order.
BEST: Sequence[Status] = ("unverified", "insufficient_evidence", "partial", "interrupted", "failed")
WIDTH = 100
SHOWN = 400
"""Characters of an answer in the table; `--json` has all of it."""


def compare(options: AskOptions, shell: Shell) -> int:
    question = read_question(options.question, shell, command="compare")
    given = dict(options.settings)
    names = list(dict.fromkeys(name.strip() for name in given.pop("workflow").split(",") if name.strip()))
    check_options(options.set, names)
    settings = shell.load_settings(given)
    compared = asyncio.run(_compare(settings, names, question, options, shell))
    if compared is None:
        return INTERRUPTED
    if options.json:
        workflows = [
            outcome.answer.json() | {"workflow": outcome.workflow, "seconds": round(outcome.seconds, 3)}
            for outcome in compared
        ]
        shell.say_json({"question": question, "workflows": workflows})
    else:
        width = max(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns) if shell.stdout.isatty() else WIDTH
        shell.say(table(compared, width))
    statuses = {outcome.answer.status for outcome in compared}
    if "answered" in statuses:
        return OK
    best = min(statuses, key=BEST.index)
    failures = [outcome.answer.rollout.failure for outcome in compared if outcome.answer.rollout.failure]
    return code_of(failures[0]) if best == "failed" and failures else CODES[best]


async def _compare(
    settings: Settings, names: Sequence[str], question: str, options: AskOptions, shell: Shell
) -> list[Compared] | None:
    """Return the outcome of each workflow, in the order of `names`; None if the person would not wait."""
    say = (lambda _: None) if options.quiet else shell.remark
    files = find_attached_files(options, shell)
    by_workflow: dict[str, Compared] = {}
    try:
        async with comparison(settings, names, question, files=files) as compared:
            if line := announce_model(next(iter(compared.sessions.values()))):
                shell.remark(line)
            async with show_progress(compared, View(shell)):
                # such as documents that cannot be read
                important = tell_once(shell.remark, lambda notice: notice.text if notice.important else "")
                async for outcome in compared.each(important, tell_waiting(say)):
                    by_workflow[outcome.workflow] = outcome
                    answer = outcome.answer
                    why = f" ({answer.error.splitlines()[0]})" if answer.error else ""
                    status = f"{answer.status.replace('_', ' ')}{why}"
                    say(f"workflow {outcome.workflow}: {status} after {format_duration(outcome.seconds)}")
    except asyncio.CancelledError:
        return None
    return [by_workflow[name] for name in names]


def table(compared: Sequence[Compared], width: int) -> str:
    """Return a table with one row for each workflow."""
    from rich import box  # rich is only loaded where it draws
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    for name in ("workflow", "status"):
        drawn.add_column(name, no_wrap=True)
    for name in ("verified", "calls", "tokens", "seconds"):
        drawn.add_column(name, no_wrap=True, justify="right")
    drawn.add_column("answer", ratio=1)
    for outcome in compared:
        answer, usage = outcome.answer, outcome.answer.rollout.usage
        held, made = count_held(answer.citations)
        text = " ".join((answer.text or "; ".join(answer.error.splitlines())).split())
        shown = text if len(text) <= SHOWN else f"{text[:SHOWN].rsplit(' ', 1)[0]} …"
        figures = (f"{held} of {made}", f"{usage.calls:,}", f"{usage.tokens:,}", f"{outcome.seconds:.1f}")
        drawn.add_row(*map(Text, (outcome.workflow, answer.status.replace("_", " "), *figures, shown)))
    out = io.StringIO()
    Console(file=out, width=width, color_system=None, legacy_windows=False).print(drawn)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip("\n")
