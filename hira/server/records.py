"""Ended runs, from the server's memory or its journal, and their messages, sources and memory for the next question."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from hira.agents.history import CONTINUES, Earlier, Messages
from hira.core.errors import UsageError
from hira.core.sanitize import printable
from hira.journal import Journal, NoJournal, NoRun
from hira.journal.records import Entry
from hira.runtime.answer import Answer
from hira.runtime.chat import earlier_of
from hira.runtime.replay import find_needed_code, replay
from hira.runtime.trace.reading import read_conversation
from hira.server.keys import Client, RejectedRequest
from hira.server.responses import PREFIX
from hira.server.runs import WatchedRun, refuse_missing
from hira.server.state import AppState
from hira.server.wire import content_of

PREVIOUS = "previous_response_id"
WRITTEN = 2.0
"""The longest time, in seconds, that the journal takes for pending writes, unless another process holds it."""
_READERS = ThreadPoolExecutor(8, "hira-serve-reads")
T = TypeVar("T")


async def find_kept(state: AppState, client: Client, name: str) -> WatchedRun | None:
    """Return the run if this server still holds it; None if only the journal has it, or if it was deleted there."""
    if name not in state.runs.known:
        return None
    watched = state.runs.of(client, name)
    if watched.recorded and not await is_there(state.session.journal, name):
        state.runs.forget(name)
        return None
    return watched


async def is_there(journal: Journal | None, name: str) -> bool:
    """Return whether the journal has the run, after a short wait for pending writes; without a journal it has."""
    if journal is None:
        return True
    try:
        async with asyncio.timeout(WRITTEN):
            if await read_journal(journal.holds, name):
                return True
            await journal.wait_written()
            return (await read_journal(journal.entry, name)).id == name
    except NoRun:
        return False
    except (NoJournal, TimeoutError):
        return True  # a run that cannot be read now is not deleted


async def read_journal(reading: Callable[..., T], *about: Any) -> T:
    """Read the journal in separate threads: runs need a free thread even while the journal is locked."""
    return await asyncio.get_running_loop().run_in_executor(_READERS, partial(reading, *about))


async def find_entry(state: AppState, client: Client, run: str) -> tuple[Entry, Journal]:
    """Return a run of the journal. Raises `RejectedRequest` if it is missing or, in the same words, another's."""
    journal = state.session.journal
    if journal is None or not client.owns(run):
        raise refuse_missing(run)
    try:
        entry = await read_journal(journal.entry, run)
    except NoRun:
        raise refuse_missing(run) from None
    if entry.id != run:
        raise refuse_missing(run)
    return entry, journal


async def replay_answer(state: AppState, entry: Entry, journal: Journal) -> Answer:
    """Return the answer of a run of the journal from its record, without any call."""
    served = (session.workflow for session in state.runs.sessions.values())
    needed = find_needed_code(entry)
    flow = next((flow for flow in served if needed and flow.name == entry.workflow), None)
    return (await replay(journal, entry.id, flow)).answer


def find_previous(entry: Entry) -> str:
    """Return the run that this one continues; empty if it continues none."""
    return str(entry.settings.get(CONTINUES) or "")


async def find_earlier(state: AppState, client: Client, messages: Messages) -> Earlier | None:
    """Return the messages, with the sources and memory of the latest answer if this client's run is still known here;
    otherwise its citations would name other sources than those of the next answer."""
    if [role for role, _ in messages[-2:]] == ["user", "assistant"]:
        (_, question), (_, answer) = messages[-2:]
        for name, watched in reversed(state.runs.known.items()):
            if client.owns(name) and watched.run.question == printable(question) and watched.answered:
                content = content_of(watched.run.answer, state.scrub(watched.run.answer.text))
                if answer in (str(text).strip() for text in content.values()):
                    known = await earlier_of(watched.run, state.session.journal)
                    return Earlier.of_messages(messages, known)
    return Earlier.of_messages(messages, None) if messages else None


async def read_response(state: AppState, client: Client, name: str, field: str = PREVIOUS) -> Earlier:
    """Return what a response and those before it leave for the next one; `field` names it in the request.

    Raises `RejectedRequest` for a response that does not exist, or not for this client, and for one without an answer.
    """
    run = name.removeprefix(PREFIX)
    try:
        watched = await find_kept(state, client, run)
        if watched is None:
            entry, journal = await find_entry(state, client, run)
            return await read_journal(read_conversation, journal, entry.id)
    except RejectedRequest:
        what = f"there is no response {name[:80]!r}; send the earlier messages as input instead"
        raise RejectedRequest(400, what, "previous_response_not_found", field=field) from None
    except UsageError as error:
        raise RejectedRequest(400, error.what, field=field) from None
    if not watched.answered:
        what = f"the response {name[:80]!r} has no answer to continue from"
        raise RejectedRequest(400, what, field=field)
    return await earlier_of(watched.run, state.session.journal)
