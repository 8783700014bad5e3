"""`hira ask`: one question, its progress on stderr, its answer on stdout."""

import argparse
import asyncio
import json
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from hira.agents.output import OutputType
from hira.agents.trajectory import Status
from hira.api import Hira
from hira.cli import ENDPOINT, INTERRUPTED, NO_EVIDENCE, OK, PARTIAL, code_of, explain, output
from hira.cli.approve import AtTerminal, at_terminal
from hira.cli.earlier import load_settings
from hira.cli.parser import LIMITS, check_options
from hira.cli.progress import keep_shown, open_view
from hira.cli.shell import Shell
from hira.core.errors import HiraError, UsageError
from hira.core.sanitize import printable, without_userinfo
from hira.policies.names import OFFLINE
from hira.runtime.answer import Answer
from hira.runtime.endpoints import NOTHING_FOUND
from hira.runtime.run import Run
from hira.runtime.session import Session
from hira.runtime.validation import present

CODES: dict[Status, int] = {
    "answered": OK,
    "unverified": NO_EVIDENCE,
    "insufficient_evidence": NO_EVIDENCE,
    "partial": PARTIAL,
    "interrupted": INTERRUPTED,
    "failed": ENDPOINT,
}
NO_MODEL = "no model is connected: `offline` {does}; --model NAME connects one (hira doctor)"
QUIT_AFTER = 1.0
Tell = Callable[[Answer, argparse.Namespace, Shell], None]


class Stoppable(Protocol):
    """What can end soon, with what is known: a run, a batch."""

    def stop(self) -> None: ...


def ask(args: argparse.Namespace, shell: Shell) -> int:
    settings = load_settings(args, shell)
    check_options(args.set, [settings.workflow])
    if args.batch:
        if args.approve:
            raise UsageError(
                "--approve and --batch cannot be combined: --approve asks about the subtasks of one question",
                fix="remove one of them",
            )
        if args.continues:
            raise UsageError("--continue and --batch cannot be combined", fix="remove one of them")
        if args.schema:
            raise UsageError("--schema and --batch cannot be combined", fix="remove one of them")
        from hira.cli.batch import batch  # one question does without it

        return batch(args, settings, shell)
    schema = read_schema(shell.folder / args.schema) if args.schema else None
    for flag in ("concurrency", "ray"):
        if getattr(args, flag) is not None:
            raise UsageError(f"--{flag} works only with --batch", fix="name the file of questions with --batch")
    question = read_question(args, shell)
    files = attached_files(args, shell)
    path = output.check_output_path(args.output, shell.folder) if args.output else None
    person = at_terminal(args, shell, needed=args.approve)
    hira = Hira(settings=settings, approve=person if args.approve else None, approve_tool=person)
    begin = partial(hira.chat(args.continues or "").stream, question, files=files, output_type=schema)
    return finish_run(hira, begin, args, shell, path)


def attached_files(args: argparse.Namespace, shell: Shell) -> tuple[Path, ...]:
    """The files of --file. Raises `UsageError` for one that cannot be attached."""
    if "" in args.files:
        raise UsageError("the path after --file is empty", fix="name a file; is a shell variable unset?")
    return present([shell.folder / name for name in args.files])


def read_question(args: argparse.Namespace, shell: Shell) -> str:
    if args.question is None:
        raise UsageError("there is no question", fix='hira ask "question", or --batch FILE for many')
    question = printable(shell.stdin.read() if args.question == "-" else args.question).strip()
    if not question:
        raise UsageError("the question is empty", fix='hira ask "question", or hira ask - to read it from stdin')
    return question


def read_schema(path: Path) -> Mapping[str, Any]:
    """The JSON schema in a file."""
    try:
        schema = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"--schema: {why}", where=str(path), fix="name a file that holds a JSON schema") from None
    if not isinstance(schema, dict):
        raise UsageError("--schema: a JSON schema is an object", where=str(path), fix='begin with {"type": "object"')
    try:
        OutputType(schema)
    except UsageError as error:
        where = f"{path}: {error.where}" if error.where else str(path)
        raise UsageError(f"--schema: {error.what}", where=where, fix=error.fix) from None
    return schema


def finish_run(
    hira: Hira,
    begin: Callable[[], Awaitable[Run]],
    args: argparse.Namespace,
    shell: Shell,
    path: Path | None,
    *,
    tell: Tell = output.tell,
    write: Callable[[Answer, Path], None] = output.write,
) -> int:
    """Work on a run until it ends, and `tell` its answer; `path` is where it is written as well."""

    async def worked() -> Run | None:
        async with hira:
            return await work_shown(hira, begin, args, shell)

    try:
        run = asyncio.run(worked())
    except asyncio.CancelledError:
        run = None
    if run and path:
        write(run.answer, path)
    return conclude_run(hira, run, args, shell, tell)


def conclude_run(hira: Hira, run: Run | None, args: argparse.Namespace, shell: Shell, tell: Tell = output.tell) -> int:
    """Print the answer of a run that has ended, None for one that the person would not wait for."""
    if run is None:
        return INTERRUPTED
    if run.failure:
        tell(run.answer, args, shell)
        explain(_resumable(run, run.failure), shell)
        return code_of(run.failure)
    again = going_on(run.id, run.answer.status, vars(hira.settings)) if run.resumable else ""
    return print_answer(run.answer, args, shell, vars(hira.settings), again=again, tell=tell)


def print_answer(
    answer: Answer,
    args: argparse.Namespace,
    shell: Shell,
    settings: Mapping[str, Any],
    *,
    again: str = "",
    tell: Tell = output.tell,
) -> int:
    """Print an answer, and what is wrong with it.

    `settings` are those of its run; `again` says how to resume one that its budget ended.
    """
    tell(answer, args, shell)
    if answer.status in ("unverified", "insufficient_evidence"):
        searched = any(settings.get(name) for name in ("docs", "search", "search_keys", "searxng_url"))
        explain(what_is_missing(answer, searched=searched), shell)
    elif answer.status != "answered":
        first, *_ = answer.error.splitlines() or [f"the run was {answer.status}"]
        explain(HiraError(first, where="this answer uses the results so far" if answer.text else "", fix=again), shell)
    if answer.output_type and not answer.rollout.has_output and answer.status in ("answered", "unverified"):
        offline = "--model NAME connects one (hira doctor)"
        fix = offline if answer.model == OFFLINE else "use a stronger model, or a simpler schema"
        explain(HiraError(answer.rollout.output_error, fix=fix), shell)
        return NO_EVIDENCE
    return CODES[answer.status]


def what_is_missing(answer: Answer, *, searched: bool) -> HiraError:
    """Why an answer is not accepted, and what would help; what the user did already (`searched`) is not suggested."""
    by_source = {one.source: one for one in answer.citations if one.verdict == "contradicted"}
    unchecked = any(one.verdict == "unchecked" for one in answer.citations)
    if answer.rollout.workflow == "direct":
        why, fix = (
            "nothing was read",
            "this workflow reads no sources; use one that does, such as --workflow hira",
        )
    elif any(finding.expert == "multimodal" for finding in answer.rollout.findings):
        why, fix = "no source supports it", "name a model that can see and hear (--model), or ask more precisely"
    elif not answer.sources:
        named = (
            "ask in other words, or search elsewhere"
            if searched
            else "name documents (--docs) or a web search (--search)"
        )
        why, fix = "nothing was read that could support it", named
    elif by_source:
        why = f"{', '.join(f'[{one}]' for one in by_source)} contradicts a claim in the answer"
        fix = "compare the marked claims with their sources"
    elif unchecked:
        why, fix = "its claims could not be checked", "see the notices above; --verify lexical needs no model"
    elif answer.status == "insufficient_evidence":
        why = "what was read does not hold the answer"
        more = "other documents or a web search that hold" if searched else "documents (--docs) that hold"
        fix = f"name {more} it, or ask more precisely"
    else:
        why, fix = (
            "no source supports its main claim",
            "compare the marked claims with the sources, or ask more precisely",
        )
    found = "not enough evidence" if answer.status == "insufficient_evidence" else "the answer is not verified"
    return HiraError(f"{found}: {why}", fix=fix)


def going_on(run: str, status: Status, limits: Mapping[str, Any]) -> str:
    """How to go on with a run: where its budget ended it with more than these limits, or it would end again."""
    held = [name for name in LIMITS if status == "partial" and limits.get(name) is not None]
    return f"to resume: hira resume {run}" + "".join(f" --{name.replace('_', '-')} N" for name in held)


def _resumable(run: Run, failure: HiraError) -> HiraError:
    """The failure of a run that can go on later; its lines are still three."""
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
    working = asyncio.current_task()
    assert working is not None  # noqa: S101 - asyncio.run has made it
    run: Run | None = None
    try:
        with open_view(args, shell) as view:
            if isinstance(hira.approve_tool, AtTerminal):
                hira.approve_tool.view = view
            run = await begin()
            said = announce_model(await hira.open_session(), run.files) if announce else ""
            with interruptible(run, working, view.say):
                if said:
                    view.say(said)
                async with keep_shown(view):  # replies stream in, shown or not: one that does not end is noticed
                    await run.work(view, stream=True, said=said)
    except asyncio.CancelledError:
        if run and run.resumable:
            shell.remark(f"to resume: hira resume {run.id}")
        return None
    return run


def announce_model(session: Session, files: Sequence[Path] = ()) -> str:
    """What the person should know of the model that was chosen for them, empty if they chose it."""
    origin = session.settings.origin("model")
    if origin == NOTHING_FOUND:
        documents = ["your documents"] if session.settings.docs or files else []
        searched = " and ".join([*documents, *(["the web"] if session.bench.backends else [])])
        does = f"quotes {searched}" if searched else "only computes without documents (--docs PATH)"
        return NO_MODEL.format(does=does)
    if "found on" in origin or "only model" in origin:
        return (
            f"using {session.model} at {without_userinfo(session.settings.base_url)} ({origin}); --model names another"
        )
    return ""


@contextmanager
def interruptible(run: Stoppable, working: "asyncio.Task[Any]", say: Callable[[str], None]) -> Iterator[None]:
    """Ctrl-C once: answer from what is known. Twice, or SIGTERM: quit at once, cleaning up on the way."""
    loop = asyncio.get_running_loop()
    asked = False

    def stop() -> None:
        say("ending with the results so far; Ctrl-C again quits")
        run.stop()

    def heard(number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked or number != signal.SIGINT:
            killer = threading.Timer(QUIT_AFTER, os._exit, [INTERRUPTED])
            killer.daemon = True
            killer.start()
            loop.call_soon_threadsafe(working.cancel)
        else:
            asked = True
            loop.call_soon_threadsafe(stop)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, heard) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
