"""`hira report`: a report on a topic, with numbered references to what was read."""

import argparse
from pathlib import Path

from hira.api import Hira
from hira.cli import output
from hira.cli.ask import finish_run
from hira.cli.dry_run import dry_run
from hira.cli.parser import check_options, flags
from hira.cli.report_page import as_html, as_markdown
from hira.cli.shell import Shell, visible
from hira.core.errors import UsageError
from hira.core.sanitize import printable
from hira.evidence.references import references
from hira.runtime.answer import Answer
from hira.runtime.run import Run
from hira.runtime.settings import load
from hira.runtime.validation import present

FORMS = {".md": as_markdown, ".html": as_html, ".htm": as_html, ".json": output.as_json}
SUFFIXES = tuple(FORMS)
DEFAULT = "mams"


def report(args: argparse.Namespace, shell: Shell) -> int:
    """Write the report. Its workflow is MaMs whatever the settings name for questions."""
    settings = load({"workflow": DEFAULT, **flags(args)}, shell.environ, shell.folder, shell.home)
    check_options(args.set, [settings.workflow])
    topic = printable(shell.stdin.read() if args.question == "-" else args.question).strip()
    if not topic:
        raise UsageError("the topic is empty", fix='hira report "topic", or hira report - to read it from stdin')
    if "" in args.files:
        raise UsageError("the path after --file is empty", fix="name a file; is a shell variable unset?")
    files = present([shell.folder / name for name in args.files])
    if args.dry_run:
        return dry_run(args, settings, shell)
    path = output.check_output_path(args.output, shell.folder, SUFFIXES) if args.output else None
    hira = Hira(settings=settings)

    async def begin() -> Run:
        return hira.stream(topic, files=files)

    return finish_run(hira, begin, args, shell, path, tell=tell, write=write)


def tell(answer: Answer, args: argparse.Namespace, shell: Shell) -> None:
    """The report on stdout as Markdown, or as JSON; of one that went to a file a line on stderr says so."""
    if args.json:
        shell.say(output.as_json(answer))
    elif answer.text and not args.output:
        shell.say(as_markdown(answer))
    elif answer.text and not args.quiet:
        many = len(references(answer.text, answer.rollout.sources.read))
        shell.remark(f"{args.output} is written, with {many} reference{'' if many == 1 else 's'}")


def write(answer: Answer, path: Path) -> None:
    """Write the report as its file's suffix says; nothing where there is no text."""
    if answer.text:
        output.replace_file(path, visible(FORMS[path.suffix.lower()](answer)) + "\n")
