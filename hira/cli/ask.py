"""`hira ask`: one question, its progress on stderr, its answer on stdout."""

import argparse
import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from hira.answer import Answer
from hira.api import Hira, Run
from hira.casting import OFFLINE, Crew, present
from hira.cli import ENDPOINT, INTERRUPTED, NO_EVIDENCE, OK, PARTIAL, code_of, explain, output
from hira.cli.parser import flags
from hira.cli.progress import JsonLines, Lines, Silent, View
from hira.cli.shell import Shell
from hira.errors import HiraError, UsageError
from hira.settings import load
from hira.trajectory import Status

CODES: dict[Status, int] = {
    "answered": OK,
    "insufficient_evidence": NO_EVIDENCE,
    "partial": PARTIAL,
    "interrupted": INTERRUPTED,
    "failed": ENDPOINT,
}
CONNECT = (
    "no model is connected: `offline` answers {how}. "
    "To connect one: --model NAME with OPENAI_API_KEY or --base-url URL, or start a local server (hira doctor)"
)
QUIT_AFTER = 1.0


def ask(args: argparse.Namespace, shell: Shell) -> int:
    settings = load(flags(args), shell.environ, shell.folder, shell.home)
    question = (shell.stdin.read() if args.question == "-" else args.question).strip()
    if not question:
        raise UsageError("the question is empty", fix='hira ask "question", or hira ask - to read it from stdin')
    files = present([shell.folder / name for name in args.files])
    path = output.checked(args.output, shell.folder) if args.output else None
    hira = Hira(settings=settings)
    run = hira.stream(question, files=files)
    answer = asyncio.run(_answered(hira, run, args, shell))
    if answer is None:
        return INTERRUPTED
    if args.json:
        shell.say(output.as_json(answer))
    elif answer.text:
        shell.say(output.text(answer))
    if path:
        output.write(answer, path)
    if run.failure:
        explain(run.failure, shell)
        return code_of(run.failure)
    if answer.status == "insufficient_evidence":
        fix = "name documents (--docs) or a web search (--search) that hold the answer, or ask more precisely"
        explain(HiraError("not enough evidence: nothing that was read supports an answer", fix=fix), shell)
    elif answer.status != "answered":
        explain(HiraError(answer.error, fix="this is what was known by then"), shell)
    return CODES[answer.status]


async def _answered(hira: Hira, run: Run, args: argparse.Namespace, shell: Shell) -> Answer | None:
    """The answer, with the run's progress told; None if the person would not wait for it."""
    working = asyncio.current_task()
    assert working is not None  # noqa: S101 - asyncio.run has made it
    try:
        with _view(args, shell) as view, _interruptible(run, working, view):
            async with hira:
                if line := announced(await hira.opened()):
                    view.say(line)
                await _watched(run, view, stream=args.events)
    except asyncio.CancelledError:
        return None
    return run.answer


def announced(crew: Crew) -> str:
    """What the person should know of the model that was chosen for them, empty if they chose it."""
    if crew.model == OFFLINE:
        searched = [*(["your documents"] if crew.settings.docs else []), *(["the web"] if crew.bench.backends else [])]
        how = (
            f"with sentences from {' and '.join(searched)}"
            if searched
            else "what it can compute; --docs PATH gives more"
        )
        return CONNECT.format(how=how)
    origin = crew.settings.origin("model")
    if "found on" in origin or "only model" in origin:
        return f"using {crew.model} at {crew.settings.base_url} ({origin}); --model names another"
    return ""


async def _watched(run: Run, view: View, *, stream: bool) -> None:
    keeping = asyncio.create_task(view.keep())
    try:
        await run.work(view, stream=stream)
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping


@contextmanager
def _view(args: argparse.Namespace, shell: Shell) -> Iterator[View]:
    """What shows the progress: JSON lines, nothing, a live tree on a terminal, plain lines elsewhere."""
    if args.events:
        yield JsonLines(shell.tell)
    elif args.quiet:
        yield Silent(shell.tell)
    elif shell.stderr.isatty() and shell.environ.get("TERM") != "dumb":
        from hira.cli.live import Watching  # rich is only loaded where it draws

        with Watching(shell.stderr) as watching:
            yield watching
    else:
        yield Lines(shell.tell)


@contextmanager
def _interruptible(run: Run, working: "asyncio.Task[Answer | None]", view: View) -> Iterator[None]:
    """Ctrl-C once: answer from what is known. Twice, or SIGTERM: quit at once, cleaning up on the way."""
    loop = asyncio.get_running_loop()
    asked = False

    def stop() -> None:
        view.say("answering from what is known; Ctrl-C again quits")
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
