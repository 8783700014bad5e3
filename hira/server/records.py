"""Runs that have ended, as the server holds them or its journal does."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from hira.journal import Entry, Journal, NoJournal, NoRun
from hira.runtime.session import Session
from hira.server.keys import Client
from hira.server.runs import Watched, missing
from hira.server.state import AppState

WRITTEN = 2.0
"""Seconds in which the journal has written what it was given, unless somebody else holds it."""
_READERS = ThreadPoolExecutor(8, "hira-serve-reads")
T = TypeVar("T")


async def find_kept(door: AppState, client: Client, name: str) -> Watched | None:
    """The run as this server holds it, None for one that only the journal has, or that was deleted there."""
    if name not in door.runs.known:
        return None
    watched = door.runs.of(client, name)
    if watched.recorded and not await is_there(door, name):
        door.runs.forget(name)
        return None
    return watched


async def is_there(door: AppState, name: str) -> bool:
    """Whether the journal has the run. What it may not have written yet is waited for, but not for long."""
    journal = shared_session(door).journal
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
        return True  # what cannot be read now was not deleted


async def read_journal(reading: Callable[..., T], *about: Any) -> T:
    """What is read of the journal, by threads for nothing else: one that waits for a journal that somebody holds must
    not be missed by the runs."""
    return await asyncio.get_running_loop().run_in_executor(_READERS, partial(reading, *about))


def shared_session(door: AppState) -> Session:
    return next(iter(door.runs.sessions.values()))


async def find_entry(door: AppState, client: Client, run: str) -> tuple[Entry, Journal]:
    """A run of the journal. Raises `Refused` for one that is not there, or not the client's: the two look the same."""
    journal = shared_session(door).journal
    if journal is None or not client.owns(run):
        raise missing(run)
    try:
        entry = await read_journal(journal.entry, run)
    except NoRun:
        raise missing(run) from None
    if entry.id != run:
        raise missing(run)
    return entry, journal
