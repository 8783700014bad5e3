"""`hira runs`: the recorded runs, newest first; `export` writes them for training, `delete` removes them."""

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hira.cli import OK
from hira.cli.progress import brief
from hira.cli.shell import Shell
from hira.core.errors import UsageError
from hira.core.policy import Usage
from hira.journal import Entry, Journal
from hira.runtime.settings import load
from hira.runtime.trace import read
from hira.runtime.trace.conversations import conversations, write_lines


@contextmanager
def open_journal(args: argparse.Namespace, shell: Shell) -> Iterator[Journal]:
    """The journal that the flags and settings name. Raises `UsageError` where nothing was recorded yet."""
    flags = {"journal": args.journal} if args.journal else {}
    path = load(flags, shell.environ, shell.folder, shell.home).journal
    if path is None:
        raise UsageError("nothing is recorded: the journal is off", fix="name its file with --journal")
    if not path.is_file():
        raise UsageError(
            "no runs are recorded yet", where=f"at {path}", fix="hira ask records them; --journal names another file"
        )
    journal = Journal(path)
    try:
        yield journal
    finally:
        journal.close()


def day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def took(seconds: float) -> str:
    """A duration as a person reads it: 0.4 s, 12 s, 3 min 20 s, 1 h 5 min."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


DAY = 86400.0


def runs(args: argparse.Namespace, shell: Shell) -> int:
    if args.limit < 1:
        raise UsageError(f"--limit must be at least 1, got {args.limit}", fix="give 1 or more")
    with open_journal(args, shell) as journal:
        if args.what == "export":
            return _export(journal, args, shell)
        if args.what == "delete":
            return _delete(journal, args, shell)
        listed = [(entry, find_cost(journal, entry)) for entry in journal.runs(args.limit)]
    if args.json:
        shell.say(json.dumps([as_json(entry, usage) for entry, usage in listed], ensure_ascii=False, indent=2))
    for entry, usage in [] if args.json else listed:
        cost = f"${usage.cost:.4f}" if usage.cost else f"{usage.tokens:,} tokens"
        head = f"{entry.id}  {day(entry.began)}  {entry.state.replace('_', ' '):<21}  {cost:>14}  "
        shell.say(head + brief(entry.question, 80))
    if not listed:
        shell.tell("hira: no runs are recorded")
    return OK


def find_cost(journal: Journal, entry: Entry) -> Usage:
    """What a run cost: as it said at its end, else by what was recorded of its calls."""
    return Usage(**entry.usage) if entry.usage else read(journal, entry.id).usage


def as_json(entry: Entry, usage: Usage) -> dict[str, object]:
    return {
        "run_id": entry.id,
        "question": entry.question,
        "status": entry.state,
        "workflow": entry.workflow,
        "model": entry.settings.get("model", ""),
        "began": entry.began,
        "ended": entry.ended,
        "usage": {
            "calls": usage.calls,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cost": usage.cost,
            "seconds": round(usage.seconds, 3),
        },
    }


def _export(journal: Journal, args: argparse.Namespace, shell: Shell) -> int:
    named = [journal.entry(run) for run in args.runs] or [one for one in journal.runs(-1) if one.state != "running"]
    lines = (line for entry in reversed(named) for line in conversations(read(journal, entry.id)))
    if args.output == "-":
        for line in lines:
            shell.say(json.dumps(line, ensure_ascii=False))
        return OK
    path = (shell.folder / args.output).absolute()
    number = write_lines(lines, path)
    shell.tell(f"hira: {number} conversations of {len(named)} run{'' if len(named) == 1 else 's'} in {path}")
    return OK


def _delete(journal: Journal, args: argparse.Namespace, shell: Shell) -> int:
    if not args.runs and args.older is None:
        raise UsageError("no run is named", fix="name runs, or an age with --older DAYS")
    named = {run.id: run for run in map(journal.entry, args.runs)}
    if args.older is not None:
        before = time.time() - args.older * DAY
        named |= {run.id: run for run in journal.runs(-1) if run.began < before and not run.alive}
    if going := next((run for run in named.values() if run.alive), None):
        raise UsageError(f"run {going.id} is still running", where=f"in process {going.pid}", fix="stop it first")
    journal.delete(list(named))
    shell.tell(f"hira: {len(named)} run{'' if len(named) == 1 else 's'} deleted")
    return OK
