"""`hira compare`: one question to several workflows at once, and how each of them fared, side by side."""

import asyncio
import io
import shutil
from collections.abc import Mapping, Sequence

from hira.agents.trajectory import Status
from hira.cli import INTERRUPTED, OK, code_of
from hira.cli.ask import find_attached_files, read_question
from hira.cli.assignments import check_options
from hira.cli.many import tell_once, tell_waiting
from hira.cli.options import AskOptions
from hira.cli.output import CODES
from hira.cli.progress import format_duration
from hira.cli.running import announce_model, interruptible
from hira.cli.shell import Shell
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
        shell.say_json(to_json(question, compared))
        return code(compared)
    width = max(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns) if shell.stdout.isatty() else WIDTH
    shell.say(table(compared, width))
    return code(compared)


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
            with interruptible(compared, shell.remark):
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


def code(compared: Sequence[Compared]) -> int:
    """Return 0 if any workflow answered, else the exit code of the best status; a failure keeps the code of its
    error."""
    statuses = {outcome.answer.status for outcome in compared}
    if "answered" in statuses:
        return OK
    best = min(statuses, key=BEST.index)
    failures = [outcome.answer.rollout.failure for outcome in compared if outcome.answer.rollout.failure]
    return code_of(failures[0]) if best == "failed" and failures else CODES[best]


def to_json(question: str, compared: Sequence[Compared]) -> dict[str, object]:
    """Return one object: the question, and for each workflow the object of `hira ask --json` with its seconds."""
    workflows = [
        outcome.answer.json() | {"workflow": outcome.workflow, "seconds": round(outcome.seconds, 3)}
        for outcome in compared
    ]
    return {"question": question, "workflows": workflows}


def row(compared: Compared) -> Mapping[str, str]:
    """Return the table row of a workflow."""
    usage, (held, made) = compared.answer.rollout.usage, count_held(compared.answer.citations)
    error = "; ".join(compared.answer.error.splitlines())
    answer = " ".join((compared.answer.text or error).split())
    return {
        "workflow": compared.workflow,
        "status": compared.answer.status.replace("_", " "),
        "verified": f"{held} of {made}",
        "calls": f"{usage.calls:,}",
        "tokens": f"{usage.tokens:,}",
        "seconds": f"{compared.seconds:.1f}",
        "answer": answer if len(answer) <= SHOWN else f"{answer[:SHOWN].rsplit(' ', 1)[0]} …",
    }


def table(compared: Sequence[Compared], width: int = WIDTH) -> str:
    """Return a table with one row for each workflow."""
    from rich import box  # rich is only loaded where it draws
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = [row(outcome) for outcome in compared]
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    for name in rows[0]:
        wide = name == "answer"
        drawn.add_column(
            name, ratio=1 if wide else None, no_wrap=not wide, justify="left" if name in _WORDS else "right"
        )
    for cells in rows:
        drawn.add_row(*map(Text, cells.values()))
    out = io.StringIO()
    Console(file=out, width=width, color_system=None, legacy_windows=False).print(drawn)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip("\n")


_WORDS = frozenset({"workflow", "answer", "status"})
