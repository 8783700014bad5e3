"""Announcing the model, showing progress and answering early at Ctrl-C, for every command that asks questions."""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Protocol

from hira.agents.run_context import RunContext, RunOptions
from hira.cli import INTERRUPTED
from hira.cli.shell import JsonLines, Shell, View
from hira.core.errors import UsageError
from hira.core.events import Events, Notice
from hira.core.sanitize import without_userinfo
from hira.policies.facts import EndpointFacts
from hira.policies.names import NOTHING_FOUND
from hira.runtime.factory import configure_roles
from hira.runtime.session import Session
from hira.runtime.settings import Settings

if TYPE_CHECKING:
    from hira.cli.approve import AtTerminal
    from hira.cli.progress import CellCounts

QUIT_AFTER = 1.0


class Stoppable(Protocol):
    """Work that can end soon with the results so far: a run, a batch."""

    def stop(self) -> None: ...


def announce_model(session: Session, files: Sequence[Path] = ()) -> str:
    """Describe the automatically chosen model; empty if the person chose it."""
    origin = session.settings.origin("model")
    if origin == NOTHING_FOUND:
        documents = ["your documents"] if session.settings.docs or files else []
        searched = " and ".join([*documents, *(["the web"] if session.toolset.backends else [])])
        does = f"quotes {searched}" if searched else "only computes without documents (--docs PATH)"
        return f"no model is connected: `offline` {does}; --model NAME connects one (hira doctor)"
    if "found on" in origin or "only model" in origin:
        place = without_userinfo(session.settings.base_url)
        return f"using {session.model} at {place} ({origin}); --model names another"
    return ""


@asynccontextmanager
async def open_roles(settings: Settings, tell: Callable[[str], None]) -> AsyncIterator[RunContext]:
    """Open the roles of these settings without a run. `tell` gets the notices, such as that a model failed its exam."""
    facts = await asyncio.to_thread(EndpointFacts, settings.cache)
    roles, opened = configure_roles(settings, {}, facts=facts)
    events = Events(lambda event: tell(event.text) if isinstance(event, Notice) else None, secrets=settings.secrets)
    try:
        yield RunContext(roles, events=events, options=RunOptions(exam=settings.verifier_exam))
    finally:
        for policy in opened:
            await policy.aclose()


def open_view(shell: Shell, counts: "CellCounts | None" = None, *, quiet: bool = False) -> View:
    """The view of one run, or of the `counts` of many questions, that the flags and the streams ask for."""
    if shell.events:
        return JsonLines(shell)
    if quiet:
        return View(shell, counts)
    if shell.stderr.isatty() and shell.environ.get("TERM") != "dumb":
        from hira.cli.live import CountTable, RunTree  # rich is only loaded where it draws

        return CountTable(shell, counts) if counts else RunTree(shell)
    from hira.cli.progress import Lines

    return Lines(shell, counts)


def at_terminal(shell: Shell) -> "AtTerminal":
    """Return a function that asks at the terminal. Raises `UsageError` if nobody can be asked."""
    if not shell.has_person:
        why = "a program reads --events" if shell.events else "this is not a terminal"
        fix = "from Python: Hira(approve=…, approve_tool=…); over HTTP: hira serve, and its page"
        raise UsageError(f"a person has to approve what this run does, and {why}", fix=fix)
    from hira.cli.approve import AtTerminal  # nobody is asked elsewhere

    return AtTerminal(shell)


@asynccontextmanager
async def show_progress(run: Stoppable, view: View) -> AsyncIterator[None]:
    """Keep the progress of the work inside the context shown, and handle Ctrl-C: the first one answers from the results
    so far; the second one, or SIGTERM, cancels this task and cleans up on the way."""
    loop, working = asyncio.get_running_loop(), asyncio.current_task()
    assert working is not None  # noqa: S101 - only a task has a running loop
    stop_requested = False

    def stop() -> None:
        view.stop("ending with the results so far; Ctrl-C again quits")
        run.stop()

    def hear(number: int, _frame: FrameType | None) -> None:
        nonlocal stop_requested
        if stop_requested or number != signal.SIGINT:
            killer = threading.Timer(QUIT_AFTER, os._exit, [INTERRUPTED])
            killer.daemon = True
            killer.start()
            loop.call_soon_threadsafe(working.cancel)
        else:
            stop_requested = True
            loop.call_soon_threadsafe(stop)

    is_main = threading.current_thread() is threading.main_thread()  # no other thread may handle signals
    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM) if is_main}
    keeping = asyncio.create_task(view.keep())
    try:
        yield
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping
        for number, handler in before.items():
            signal.signal(number, handler)
