"""`hira runs` lists, exports and deletes recorded runs; and the settings of a run as flags of the command line."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hira.cli import OK
from hira.cli.shell import Shell, brief
from hira.core.errors import UsageError, count_of
from hira.core.options import SHARED
from hira.core.policy import Usage
from hira.core.sanitize import without_userinfo
from hira.journal import Journal
from hira.journal.records import Entry
from hira.runtime.answer_json import usage_as_json
from hira.runtime.settings import FILE, Settings
from hira.runtime.settings.reading import find_own_file


@contextmanager
def open_journal(name: str | None, shell: Shell) -> Iterator[Journal]:
    """The journal that the flag `--journal` or the settings name. Raises `UsageError` where nothing was recorded."""
    flags = {"journal": name} if name else {}
    path = shell.load_settings(flags).journal
    if path is None:
        raise UsageError("nothing is recorded: the journal is off", fix="name its file with --journal")
    if not path.is_file():
        fix = "hira ask records them; --journal names another file"
        raise UsageError("no runs are recorded yet", where=f"at {path}", fix=fix)
    journal = Journal(path)
    try:
        yield journal
    finally:
        journal.close()
        for line in journal.damage.lines:
            shell.remark(line)


def day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


DAY = 86400.0


@dataclass(frozen=True, slots=True)
class RunsOptions:
    limit: int
    journal: str = ""
    json: bool = False
    what: str = "list"
    """list, export or delete."""
    runs: tuple[str, ...] = ()
    """The runs to export or to delete."""
    output: str = ""
    """The file of exported conversations, `-` for standard output."""
    older: float | None = None
    yes: bool = False


def runs(options: RunsOptions, shell: Shell) -> int:
    if options.limit < 1:
        raise UsageError(f"--limit must be at least 1, got {options.limit}", fix="give 1 or more")
    with open_journal(options.journal, shell) as journal:
        if options.what == "export":
            return _export(journal, options, shell)
        if options.what == "delete":
            return _delete(journal, options, shell)
        listed = [(entry, find_cost(journal, entry)) for entry in journal.runs(options.limit)]
    if options.json:
        shell.say_json([as_json(entry, usage) for entry, usage in listed])
    for entry, usage in [] if options.json else listed:
        cost = f"${usage.cost:.4f}" if usage.cost else f"{usage.tokens:,} tokens"
        head = f"{entry.id}  {day(entry.began)}  {entry.state.replace('_', ' '):<21}  {cost:>14}  "
        shell.say(head + brief(entry.question, 80))
    if not listed:
        shell.remark("no runs are recorded")
    return OK


def find_cost(journal: Journal, entry: Entry) -> Usage:
    """Return the cost of a run: as recorded at its end, or else the sum of its calls."""
    if entry.usage:
        return entry.usage
    from hira.runtime.trace import read  # asking does without it

    return read(journal, entry.id).usage


def as_json(entry: Entry, usage: Usage) -> dict[str, object]:
    return {
        "run_id": entry.id,
        "question": entry.question,
        "status": entry.state,
        "workflow": entry.workflow,
        "model": entry.settings.get("model", ""),
        "began": entry.began,
        "ended": entry.ended,
        "usage": usage_as_json(usage),
    }


def _export(journal: Journal, options: RunsOptions, shell: Shell) -> int:
    from hira.runtime.trace import read
    from hira.runtime.trace.conversations import conversations, write_lines

    named = [journal.entry(run) for run in options.runs] or [
        entry for entry in journal.runs(-1) if entry.state != "running"
    ]
    lines = (line for entry in reversed(named) for line in conversations(read(journal, entry.id)))
    if options.output == "-":
        for line in lines:
            shell.say(json.dumps(line, ensure_ascii=False))
        return OK
    path = (shell.folder / options.output).absolute()
    number = write_lines(lines, path)
    shell.remark(f"{number} conversations of {count_of(len(named), 'run')} in {path}")
    return OK


def _delete(journal: Journal, options: RunsOptions, shell: Shell) -> int:
    if not options.runs and options.older is None:
        raise UsageError("no run is named", fix="name runs, or an age with --older DAYS")
    named = {run.id: run for run in map(journal.entry, options.runs)}
    if options.older is not None:
        before = time.time() - options.older * DAY
        named |= {run.id: run for run in journal.runs(-1) if run.began < before and not run.alive}
    if going := next((run for run in named.values() if run.alive), None):
        raise UsageError(f"run {going.id} is still running", where=f"in process {going.pid}", fix="stop it first")
    if options.older is not None and named and not options.yes:
        what = f"{count_of(len(named), 'run')} and all their data would be deleted"
        if not shell.has_person:
            raise UsageError(f"{what}, and this is not a terminal", fix="--yes deletes them without asking")
        if not shell.confirm(what, "delete them?"):
            shell.remark("no run is deleted")
            return OK
    journal.delete(list(named))
    shell.remark(f"{count_of(len(named), 'run')} deleted")
    return OK


_OF_MODEL = ("model", "base_url", "api_key", "api", "adapter", "roles", "verify", "dialect", "continuation")
_OF_WORKFLOW = ("workflow", *SHARED)


def keep_settings(entry: Entry, today: Settings, flags: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of a recorded run that hold in the next turn of its conversation, under these flags."""
    kept = as_flags(entry, today)
    if flags.keys() & {"model", "base_url", "profile"}:
        kept = {name: value for name, value in kept.items() if name not in _OF_MODEL}
    if "workflow" in flags:
        kept = {name: value for name, value in kept.items() if name not in _OF_WORKFLOW}
    return kept


def load_recorded(
    kept: Mapping[str, Any], flags: Mapping[str, Any], shell: Shell, files: Sequence[str] = ()
) -> Settings:
    """The settings of a recorded run under these flags; it had these files attached.

    They count as the user's own where the user named the journal. Else they need consent as the project's file does
    that named it (`NotTrusted`): both may have come with the folder.
    """
    origin = shell.load_settings(flags).origin("journal")
    if origin in ("--journal", "HIRA_JOURNAL", "default", str(find_own_file(shell.environ, shell.home))):
        return shell.load_settings({**kept, **flags})
    if files:
        read = {**kept, "docs": [*kept.get("docs", ()), *map(Path, files)]}
        shell.load_settings(flags, record=read)  # raises NotTrusted
    return shell.load_settings(flags, record=kept)


def as_flags(entry: Entry, today: Settings) -> Mapping[str, Any]:
    """The recorded settings as they would be given on the command line.

    What speaks at the place of today's configuration takes its key from there; a place is recorded without its
    password. A place that a file named then, and that no configuration names today, is sent no key: the file may have
    been anyone's.
    """
    from hira.runtime.replay import read_settings  # only a run that continues another needs it

    values = dict(read_settings(entry))
    for name in ("base_url", "searxng_url"):
        if without_userinfo(getattr(today, name)) == values.get(name):
            del values[name]
    if "base_url" in values and entry.settings.get("base_url_from", "").endswith(FILE):
        values["api_key"] = ""
    if values.get("experts") == today.to_json()["experts"]:  # today's have their passwords
        values["experts"] = {name: expert.model_dump() for name, expert in today.experts.items()}
    roles = {}
    for name, table in values.pop("roles", {}).items():
        given = {key: value for key, value in table.items() if value not in ("", None)}
        if name in today.roles and without_userinfo(today.roles[name].base_url) == given.get("base_url"):
            del given["base_url"]
        roles[name] = given
    return {**values, "roles": roles, "docs": [Path(path) for path in values.get("docs", ())]}
