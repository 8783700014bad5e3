"""`hira trace`: a recorded run as one web page, or as spans for a collector of OpenTelemetry."""

import argparse
from pathlib import Path

from hira.cli import OK
from hira.cli.output import replace_file
from hira.cli.runs import open_journal
from hira.cli.shell import Shell
from hira.core.errors import UsageError
from hira.core.sanitize import without_userinfo
from hira.runtime.settings import OFF, load
from hira.runtime.spans import spans_of
from hira.runtime.telemetry import export, sender
from hira.runtime.trace import Reading, read
from hira.runtime.trace.page import page

SUFFIXES = (".html", ".htm")


def trace(args: argparse.Namespace, shell: Shell) -> int:
    with open_journal(args, shell) as journal:
        reading = read(journal, args.run)
    if args.output is None and args.otel is None:
        raise UsageError("no output is named", fix="name the page with -o FILE, or a collector with --otel")
    if args.output is not None:
        _page(reading, args, shell)
    if args.otel is not None:
        _spans(reading, args, shell)
    return OK


def _page(reading: Reading, args: argparse.Namespace, shell: Shell) -> None:
    path = (shell.folder / args.output).absolute()
    if path.suffix.lower() not in SUFFIXES:
        what = f"--output {args.output}: the page is HTML"
        raise UsageError(what, fix=f"name it {Path(args.output).stem or 'trace'}.html")
    if not path.parent.is_dir():
        raise UsageError(f"--output {args.output}: there is no folder {path.parent}", fix="create it, or name another")
    replace_file(path, page(reading))
    shell.tell(f"hira: {path}")


def _spans(reading: Reading, args: argparse.Namespace, shell: Shell) -> None:
    endpoint = args.otel or load({}, shell.environ, shell.folder, shell.home).otel
    if endpoint in ("", OFF):
        raise UsageError("no collector is named", fix="hira trace RUN --otel URL, or set OTEL_EXPORTER_OTLP_ENDPOINT")
    exporter = sender(endpoint)
    spans = spans_of(reading, content=args.content)
    export(reading.entry.id, spans, exporter, endpoint)
    shell.tell(f"hira: {len(spans)} spans of run {reading.entry.id} sent to {without_userinfo(endpoint)}")
