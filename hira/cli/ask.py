"""`hira ask`: one question, its progress on stderr, its answer on stdout. `hira chat`: questions from standard input,
one per line, that follow up on each other."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hira.agents.output_type import OutputType
from hira.agents.trajectory import Status
from hira.api import Hira
from hira.cli import INTERRUPTED, OK, code_of, explain, output
from hira.cli.approve import AtTerminal, at_terminal
from hira.cli.dry_run import print_bound
from hira.cli.parser import LIMITS, check_options
from hira.cli.running import announce_model, open_view, show_progress
from hira.cli.runs import load_settings
from hira.cli.shell import Shell, read_text
from hira.core.errors import HiraError, UsageError
from hira.core.sanitize import printable
from hira.journal.decoding import read_json
from hira.runtime.answer import Answer
from hira.runtime.run import Run
from hira.runtime.validation import present


def ask(args: argparse.Namespace, shell: Shell) -> int:
    settings = load_settings(args, shell)
    check_options(args.set, [settings.workflow])
    if args.batch:
        from hira.cli.batch import batch  # one question does without it

        return batch(args, settings, shell)
    schema = read_schema(args.schema, shell) if args.schema else None
    for flag in ("concurrency", "ray"):
        if getattr(args, flag) is not None:
            raise UsageError(f"--{flag} works only with --batch", fix="name the file of questions with --batch")
    question = read_question(args.question, shell)
    files = find_attached_files(args, shell)
    if args.dry_run:
        return print_bound(args, settings, shell)
    path = output.check_output_path(args.output, shell.folder) if args.output else None
    person = at_terminal(args, shell, needed=args.approve)
    hira = Hira(settings=settings, approve=person if args.approve else None, approve_tool=person)
    begin = partial(hira.chat(args.continues or "").stream, question, files=files, output_type=schema)
    return finish_run(hira, begin, args, shell, path)


def find_attached_files(args: argparse.Namespace, shell: Shell) -> tuple[Path, ...]:
    """The files of --file. Raises `UsageError` for one that cannot be attached."""
    if "" in args.files:
        raise UsageError("the path after --file is empty", fix="name a file; is a shell variable unset?")
    return present([shell.folder / name for name in args.files])


def read_question(text: str | None, shell: Shell, name: str = "question", command: str = "ask") -> str:
    """Return the question of the command line or, for `-`, of standard input."""
    if text is None:
        raise UsageError("there is no question", fix='hira ask "question", or --batch FILE for many')
    question = printable(shell.stdin.read() if text == "-" else text).strip()
    if not question:
        fix = f'hira {command} "{name}", or hira {command} - to read it from stdin'
        raise UsageError(f"the {name} is empty", fix=fix)
    return question


def read_schema(name: str, shell: Shell) -> Mapping[str, Any]:
    """The JSON schema in a file."""
    try:
        schema = read_json(read_text(name, "--schema", shell))
    except ValueError as error:
        raise UsageError(f"--schema {name}: {error}", fix="name a file that holds a JSON schema") from None
    if not isinstance(schema, dict):
        raise UsageError(f"--schema {name}: a JSON schema is an object", fix='begin with {"type": "object"')
    try:
        OutputType(schema)
    except UsageError as error:
        raise UsageError(f"--schema {name}: {error.what}", where=error.where, fix=error.fix) from None
    return schema


def finish_run(
    hira: Hira,
    begin: Callable[[], Awaitable[Run]],
    args: argparse.Namespace,
    shell: Shell,
    path: Path | None,
    *,
    tell: output.Tell = output.tell,
    write: Callable[[Answer, Path], None] = output.write,
) -> int:
    """Work on a run until it ends, and `tell` its answer; `path` is where it is written as well."""

    async def work() -> Run | None:
        async with hira:
            return await work_shown(hira, begin, args, shell)

    try:
        run = asyncio.run(work())
    except asyncio.CancelledError:
        run = None
    if run and path:
        write(run.answer, path)
    return conclude_run(hira, run, args, shell, tell)


def conclude_run(
    hira: Hira, run: Run | None, args: argparse.Namespace, shell: Shell, tell: output.Tell = output.tell
) -> int:
    """Print the answer of a run that has ended, None for one that the person would not wait for."""
    if run is None:
        return INTERRUPTED
    if run.failure:
        tell(run.answer, args, shell)
        explain(_add_resumption(run, run.failure), shell)
        return code_of(run.failure)
    again = describe_resumption(run.id, run.answer.status, vars(hira.settings)) if run.resumable else ""
    return output.print_answer(run.answer, args, shell, vars(hira.settings), again=again, tell=tell)


def describe_resumption(run: str, status: Status, limits: Mapping[str, Any]) -> str:
    """Describe how to resume a run. If its budget ended it, the advice raises these limits, or it would end again."""
    held = [name for name in LIMITS if status == "partial" and limits.get(name) is not None]
    return f"to resume: hira resume {run}" + "".join(f" --{name.replace('_', '-')} N" for name in held)


def _add_resumption(run: Run, failure: HiraError) -> HiraError:
    """Add the advice to resume to the failure of a run, which still has three lines."""
    if not (run.resumable and run.answer.rollout.trajectories):
        return failure
    again = f"{failure.fix}; then " if failure.fix else ""
    return HiraError(failure.what, where=failure.where, fix=f"{again}resume the run: hira resume {run.id}")


async def work_shown(
    hira: Hira,
    begin: Callable[[], Awaitable[Run]],
    args: argparse.Namespace,
    shell: Shell,
    *,
    announce: bool = True,
) -> Run | None:
    """The run at its end, with its progress shown; None if the person would not wait for it."""
    run: Run | None = None
    try:
        with open_view(args, shell) as view:
            if isinstance(hira.approve_tool, AtTerminal):
                hira.approve_tool.view = view
            run = await begin()
            said = announce_model(await hira.open_session(), run.files) if announce else ""
            async with show_progress(run, view):
                if said:
                    view.say(said)
                # replies stream in, shown or not: one that does not end is noticed
                await run.work(view, stream=True, said=said)
    except asyncio.CancelledError:
        if run and run.resumable:
            shell.remark(f"to resume: hira resume {run.id}")
        return None
    return run


def chat(args: argparse.Namespace, shell: Shell) -> int:
    settings = load_settings(args, shell)
    check_options(args.set, [settings.workflow])
    files = find_attached_files(args, shell)
    hira = Hira(settings=settings, approve_tool=at_terminal(args, shell, needed=False))
    talk = hira.chat(args.continues or "")
    code = OK
    with asyncio.Runner() as runner:  # its loop rests while the person writes, so that Ctrl-C ends the waiting
        try:
            runner.run(hira.open_session())
            while question := _read_line(shell):
                begin = partial(talk.stream, question, files=files)
                run = runner.run(work_shown(hira, begin, args, shell, announce=not talk.runs))
                code = conclude_run(hira, run, args, shell)
                if code == INTERRUPTED and run is None:
                    break
        finally:
            runner.run(hira.aclose())
    return code


def _read_line(shell: Shell) -> str:
    """The next question, empty at the end of the input and at `exit`."""
    while True:
        if shell.stdin.isatty():
            shell.stderr.write("> ")
            shell.stderr.flush()
        line = shell.stdin.readline()
        question = printable(line).strip()
        if not line or question == "exit":
            return ""
        if question:
            return question
