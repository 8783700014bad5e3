"""`hira ask`: one question, its progress on stderr, its answer on stdout."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hira.agents.trajectory import Status
from hira.api import Hira
from hira.cli import INTERRUPTED, code_of, output
from hira.cli.options import AskOptions
from hira.cli.running import announce_model, at_terminal, open_view, show_progress
from hira.cli.shell import Shell
from hira.core.errors import ContextOverflow, HiraError, UsageError
from hira.core.options import LIMITS
from hira.core.sanitize import printable
from hira.journal.encoding import read_json
from hira.runtime.answer import Answer
from hira.runtime.run import Run
from hira.runtime.settings import Settings
from hira.runtime.validation import find_files, make_output_type


@dataclass(frozen=True, slots=True)
class AnswerOutput:
    """The output of an answer, in the form that the options ask for."""

    options: AskOptions
    shell: Shell
    path: Path | None = None

    def tell(self, answer: Answer) -> None:
        """Print the answer on stdout, as JSON if asked for. Without text, print nothing."""
        shell = self.shell
        if self.options.json:
            shell.say_json(answer.json())
        elif answer.rollout.has_output and answer.output_type:
            shell.say_json(answer.output_type.dump(answer.output))
        elif answer.text:
            show_text = shell.tell if answer.output_type else shell.say  # what is no JSON stays off its stream
            show_text(output.text(answer, shell.folder))

    def write(self, answer: Answer) -> None:
        if self.path:
            from hira.cli.export import write  # most answers are only printed

            write(answer, self.path)


def ask(options: AskOptions, shell: Shell) -> int:
    settings, earlier = load_settings(options, shell)
    if options.set:
        from hira.cli.assignments import check_options  # few questions set options of workflows

        check_options(options.set, [settings.workflow])
    if options.batch:
        from hira.cli.batch import batch  # one question does without it

        return batch(options, settings, shell)
    schema = read_schema(options.schema, shell) if options.schema else None
    for flag in ("concurrency", "ray"):
        if getattr(options, flag) is not None:
            raise UsageError(f"--{flag} works only with --batch", fix="name the file of questions with --batch")
    question = read_question(options.question, shell)
    files = find_attached_files(options, shell) if options.files else ()
    if options.dry_run:
        from hira.cli.dry_run import print_bound  # it runs nothing

        return print_bound(options, settings, shell)
    path = None
    if options.output:
        from hira.cli.export import check_output_path  # most answers are only printed

        path = check_output_path(options.output, shell.folder, text=question, docs=(*settings.docs, *files))
    person = at_terminal(shell) if options.approve or shell.has_person else None
    hira = Hira(settings=settings, approve=person if options.approve else None, approve_tool=person)

    async def begin() -> Run:
        if earlier:
            return await hira.chat(earlier).stream(question, files=files, output_type=schema)
        return hira.stream(question, files=files, output_type=schema)

    run = asyncio.run(show(hira, begin, options, shell))
    return finish_run(hira, run, AnswerOutput(options, shell, path))


def load_settings(options: AskOptions, shell: Shell) -> tuple[Settings, str]:
    """The settings of a command that asks, and the id of the run that `--continue` names, empty if it names none."""
    if options.continues is None:
        return shell.load_settings(options.settings), ""
    from hira.cli.runs import keep_settings, load_recorded, open_journal  # a new conversation reads no record

    with open_journal(options.journal, shell) as journal:
        entry = journal.entry(options.continues)
    kept = keep_settings(entry, shell.load_settings(), options.settings)
    return load_recorded(kept, options.settings, shell), entry.id


def find_attached_files(options: AskOptions, shell: Shell) -> tuple[Path, ...]:
    """The files of --file. Raises `UsageError` for one that cannot be attached."""
    if "" in options.files:
        raise UsageError("the path after --file is empty", fix="name a file; is a shell variable unset?")
    return find_files([shell.folder / name for name in options.files])


def read_question(text: str | None, shell: Shell, name: str = "question", command: str = "ask") -> str:
    """Return the question of the command line or, for `-`, of standard input."""
    if text is None:
        fix = 'hira ask "question"; - reads it from standard input, --batch FILE reads many'
        raise UsageError("there is no question", fix=fix)
    question = printable(shell.stdin.read() if text == "-" else text).strip()
    if not question:
        fix = f'hira {command} "{name}", or hira {command} - to read it from stdin'
        raise UsageError(f"the {name} is empty", fix=fix)
    return question


def read_schema(name: str, shell: Shell) -> Mapping[str, Any]:
    """The JSON schema in a file."""
    try:
        schema = read_json(shell.read_text(name, "--schema"))
    except ValueError as error:
        raise UsageError(f"--schema {name}: {error}", fix="name a file that holds a JSON schema") from None
    if not isinstance(schema, dict):
        raise UsageError(f"--schema {name}: a JSON schema is an object", fix='begin with {"type": "object"')
    try:
        make_output_type(schema)
    except UsageError as error:
        raise UsageError(f"--schema {name}: {error.what}", where=error.where, fix=error.fix) from None
    return schema


async def show(
    hira: Hira,
    begin: Callable[[], Awaitable[Run]],
    options: AskOptions,
    shell: Shell,
    *,
    announce: bool = True,
    close: bool = True,
) -> Run | None:
    """Work on a run until it ends, with its progress shown; None if the person would not wait for it."""
    run: Run | None = None
    try:
        async with hira if close else nullcontext():
            with open_view(shell, quiet=options.quiet) as view:
                if hira.approve_tool:
                    from hira.cli.approve import AtTerminal  # nobody is asked elsewhere

                    if isinstance(hira.approve_tool, AtTerminal):
                        hira.approve_tool.view = view
                run = await begin()
                notice = announce_model(await hira.open_session(), run.files) if announce else ""
                async with show_progress(run, view):
                    if notice:
                        view.say(notice)
                    # replies stream in, shown or not: one that does not end is noticed
                    await run.work(view, stream=True, notice=notice)
    except asyncio.CancelledError:
        if run and run.resumable:
            shell.remark(f"to resume: hira resume {run.id}")
        return None
    return run


def finish_run(hira: Hira, run: Run | None, out: output.Output) -> int:
    """Print the answer of a run, and write it to its file even if it cannot be printed; None is a run that was quit."""
    if run is None:
        return INTERRUPTED
    try:
        if run.failure:
            out.tell(run.answer)
            failure = run.failure
            useful = not isinstance(failure, ContextOverflow)  # which a resumed run would only meet again
            if useful and run.resumable and run.answer.rollout.trajectories:
                repair = f"{failure.fix}; then " if failure.fix else ""
                fix = f"{repair}resume the run: hira resume {run.id}"
                failure = HiraError(failure.what, where=failure.where, fix=fix)
            out.shell.explain(failure)
            return code_of(run.failure)
        again = describe_resumption(run.id, run.answer.status, vars(hira.settings)) if run.resumable else ""
        return output.print_answer(run.answer, out, vars(hira.settings), again=again)
    finally:
        out.write(run.answer)


def describe_resumption(run: str, status: Status, limits: Mapping[str, Any]) -> str:
    """Describe how to resume a run. If its budget ended it, the advice raises these limits, or it would end again."""
    held = [name for name in LIMITS if status == "partial" and limits.get(name) is not None]
    return f"to resume: hira resume {run}" + "".join(f" --{name.replace('_', '-')} N" for name in held)
