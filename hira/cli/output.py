"""How an answer is written: for a person, as JSON, and into a file that is never half-written."""

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hira.cli.shell import Shell
from hira.core.errors import UsageError
from hira.evidence import Source, Verdict
from hira.runtime.answer import Answer

WORST_FIRST: tuple[Verdict, ...] = ("contradicted", "unsupported", "unchecked", "supported")
SUFFIXES = (".json", ".md", ".txt")


def tell(answer: Answer, args: argparse.Namespace, shell: Shell) -> None:
    """The answer on stdout, as JSON if that is asked for; nothing where there is no text."""
    if args.json:
        shell.say(as_json(answer))
    elif answer.rollout.has_output and answer.output_type:
        shell.say(json.dumps(answer.output_type.dump(answer.output), ensure_ascii=False, indent=2))
    elif answer.text:
        (shell.tell if answer.output_type else shell.say)(text(answer))  # what is no JSON stays off the JSON's stream


def text(answer: Answer) -> str:
    """The answer with its unverified claims flagged and, below it, the sources that it rests on."""
    lines = [f"{format_source(source)}{_verdict(answer, source)}" for source in answer.cited]
    return "\n".join([answer.flagged, *([""] if lines else []), *lines])


def format_source(source: Source) -> str:
    """A source on one line: its id, its title, where it stands."""
    title = " ".join(source.title.split()) or source.location
    return f"[{source.id}] {title} — {source.location}"


def _verdict(answer: Answer, source: Source) -> str:
    """The worst verdict on the claims that cite a source, or that hira attributed a claim to it."""
    own = [one for one in answer.citations if one.source == source.id]
    verdicts = {one.verdict for one in own if not one.attributed}
    worst = next((verdict for verdict in WORST_FIRST if verdict in verdicts), "")
    return f" ({worst})" if worst else " (supported, attributed)" if own else ""


def as_json(answer: Answer) -> str:
    return json.dumps(answer.json(), ensure_ascii=False, indent=2, default=str)


def markdown(answer: Answer) -> str:
    """A page: the question, the answer, its sources with the passages that it rests on."""
    parts = [f"# {answer.rollout.question}", answer.flagged]
    if answer.cited:
        parts.append("## Sources")
        parts.append("\n".join(f"- {format_source(source)}" for source in answer.cited))
    quotes = [f"- [{one.source}] {one.verdict}: “{one.quote}”" for one in answer.citations if one.quote]
    if quotes:
        parts += ["## Evidence", "\n".join(quotes)]
    return "\n\n".join(parts)


def check_output_path(name: str, folder: Path, suffixes: Sequence[str] = SUFFIXES) -> Path:
    """The path of `--output`, before any work is done for it."""
    path = (folder / name).absolute()
    if path.suffix.lower() not in suffixes:
        raise UsageError(f"--output {name}: unknown kind of file {path.suffix!r}", fix=f"use {', '.join(suffixes)}")
    if not path.parent.is_dir():
        raise UsageError(f"--output {name}: there is no folder {path.parent}", fix="create it, or name another")
    return path


def write(answer: Answer, path: Path) -> None:
    """Write the answer as its file's suffix says; nothing where there is no text."""
    if not answer.text:
        return
    replace_file(path, {".json": as_json, ".md": markdown, ".txt": text}[path.suffix.lower()](answer) + "\n")


def replace_file(path: Path, written: str) -> None:
    """Put a text in the place of a file. Readers of the path see the old file or the whole new one."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(written)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except OSError as error:
        raise UsageError(f"the file could not be written: {error}", where=f"to {path}") from None
