"""`hira support-bundle`: what somebody who helps needs to know, in a ZIP file, with no key, password or text in it."""

import argparse
import io
import json
import platform
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import hira
from hira.cli import OK, main
from hira.cli.shell import Shell
from hira.core.errors import HiraError, UsageError
from hira.core.redaction import redact, without_userinfo
from hira.journal import Entry, Journal
from hira.runtime.settings import Settings, load

EVENT = frozenset(
    "event at run status workflow conversation role tool ok seconds usage subtask expert recalled channel kind call "
    "reasoning changed models limits".split()
)
"""What is kept of an event: names, numbers and outcomes, nothing that anybody wrote or read."""
README = """What hira's `support-bundle` wrote. Read it before you send it.

versions.json   hira, Python, the system, and what is installed
doctor.txt      what `hira doctor` says
settings.json   the settings and where each came from
run.json        the last run: how it ended and what it took
events.jsonl    its course: who was asked when, what it took, what failed; no question, prompt, reply or result
"""


def support_bundle(args: argparse.Namespace, shell: Shell) -> int:
    path = shell.folder / Path(args.output).expanduser()
    if path.exists():
        raise UsageError(f"{args.output} is there already", where=f"at {path}", fix="name a file that is not there")
    flags = {"journal": args.journal} if args.journal else {}
    settings = load(flags, shell.environ, shell.folder, shell.home)
    parts = {"README.txt": README, "versions.json": _json(versions()), "doctor.txt": doctor(shell)}
    parts["settings.json"] = _json(settings_of(settings))
    parts |= last_run(settings)
    try:
        with zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as bundle:
            for name, text in parts.items():
                bundle.writestr(name, remove_secrets(text, settings, shell.home))
    except OSError as error:
        raise UsageError(f"the bundle cannot be written: {error.strerror}", where=f"at {path}") from None
    shell.remark(f"wrote {path} with {', '.join(parts)}; read it before you send it")
    return OK


def remove_secrets(text: str, settings: Settings, home: Path) -> str:
    """The text without keys, passwords, and the name of the home folder."""
    told = without_userinfo(str(redact(text, settings.secrets)))
    return told.replace(str(home), "~") if len(home.parts) > 1 else told


def versions() -> Mapping[str, Any]:
    packages = {one.metadata["Name"]: one.version for one in distributions() if one.metadata["Name"]}
    system = {"system": platform.system(), "release": platform.release(), "machine": platform.machine()}
    return {"hira": hira.__version__, "python": platform.python_version(), **system, "packages": packages}


def doctor(shell: Shell) -> str:
    """What `hira doctor` says, or what keeps it from saying anything."""
    out, err = io.StringIO(), io.StringIO()
    code = main(["doctor"], replace(shell, stdin=io.StringIO(), stdout=out, stderr=err))
    return f"{out.getvalue()}{err.getvalue()}exit code {code}\n"


def settings_of(settings: Settings) -> Mapping[str, Any]:
    shown = settings.shown()
    return {name: {"value": value, "from": settings.origin(name)} for name, value in shown.items()}


def last_run(settings: Settings) -> dict[str, str]:
    """The newest run of the journal: how it ended, and its events without texts; nothing if there is none."""
    if settings.journal is None or not settings.journal.is_file():
        return {}
    try:
        journal = Journal(settings.journal)
    except HiraError as error:
        return {"run.json": _json({"problem": str(error)})}
    try:
        entries = journal.runs(1)
        if not entries:
            return {}
        events = [summarise_event(event) for event in journal.events(entries[0].id)]
        lines = "".join(f"{json.dumps(event, ensure_ascii=False)}\n" for event in events)
        return {"run.json": _json(_run(entries[0])), "events.jsonl": lines}
    finally:
        journal.close()


def summarise_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """An event without what was written or read; of a text only how long it was."""
    told = {name: value for name, value in event.items() if name in EVENT}
    return told | {f"{name}_characters": len(value) for name, value in event.items() if name in ("text", "answer")}


def _run(entry: Entry) -> Mapping[str, Any]:
    ended = entry.ended - entry.began if entry.ended else None
    first, *_ = entry.error.splitlines() or [""]
    tools = sorted(name for name, tool in entry.tools.items() if tool)
    return {
        "run": entry.id, "workflow": entry.workflow, "status": entry.state, "error": first, "seconds": ended,
        "usage": entry.usage, "versions": entry.versions, "tools": tools, "files": len(entry.files),
    }  # fmt: skip


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n"
