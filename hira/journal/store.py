"""The journal's file: its tables, and the thread that writes into it.

The thread groups what many runs write at once into one commit, so that nothing waits on the disk but the call whose
result was just paid for.
"""

import asyncio
import json
import queue
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

Statement = tuple[str, Sequence[Any] | dict[str, Any]]

BEAT = 15.0
"""Seconds between two signs of life of the runs that a process has under way."""
COMPRESSED = 8192
"""Bytes from which on a value is compressed."""

VERSION = 2
TABLES = """
create table runs (
  id text primary key, question text not null, workflow text not null, status text not null, answer text not null,
  error text not null, settings text not null, files text not null, versions text not null,
  began real not null, ended real, pid integer not null, host text not null,
  tools text not null default '{}', usage text not null default '{}', scope text not null default '', heard real
);
create table calls (
  run text not null, kind text not null, conversation text not null, position integer not null, digest text not null,
  name text not null, request blob not null, result blob, began real not null, seconds real,
  primary key (run, kind, conversation, position, digest)
) without rowid;
create index calls_by_digest on calls (digest);
create table sources (run text not null, location text not null, id text not null, primary key (run, location));
create table events (run text not null, number integer not null, event blob not null, primary key (run, number))
"""
# What makes a file of each older form one of the next. Version 1 stored every event in a row of its own; since then a
# row may hold several.
MIGRATIONS = {
    1: """
alter table runs add column tools text not null default '{}';
alter table runs add column usage text not null default '{}';
alter table runs add column scope text not null default '';
alter table runs add column heard real
"""
}


class Writer:
    """The thread that writes. What waits is written in one commit; a failure is kept in `trouble` and ends writing.

    `alive` are the runs under way here; the thread gives signs of life for them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiting: queue.SimpleQueue[tuple[Sequence[Statement], Callable[[], None] | None] | None] = (
            queue.SimpleQueue()
        )
        self.trouble = ""
        self.alive: set[str] = set()
        self._thread = threading.Thread(target=self._work, name="hira-journal", daemon=True)
        self._thread.start()

    def put(self, statements: Sequence[Statement]) -> None:
        self._waiting.put((statements, None))

    async def write(self, statements: Sequence[Statement]) -> None:
        """Return when the statements are committed, or when it is known that nothing can be."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def tell() -> None:
            loop.call_soon_threadsafe(_finish, done)

        self._waiting.put((statements, tell))
        await asyncio.shield(done)

    def settle(self) -> None:
        """Wait until what was put so far is committed."""
        done = threading.Event()
        self._waiting.put(([], done.set))
        done.wait(60)

    def close(self) -> None:
        self._waiting.put(None)
        self._thread.join(60)

    def _work(self) -> None:
        connection = self._connected()
        over = False
        beaten = time.monotonic()
        while not over:
            batch = self._batch()
            over = None in batch
            items = [item for item in batch if item]
            statements = [one for group, _ in items for one in group]
            if self.alive and time.monotonic() - beaten >= BEAT:
                beaten = time.monotonic()
                statements += [("update runs set heard = ? where id = ?", (time.time(), run)) for run in self.alive]
            if connection and statements and not self.trouble:
                self._commit(connection, statements)
            for _, tell in items:
                if tell:
                    tell()
        if connection:
            connection.close()

    def _batch(self) -> list[tuple[Sequence[Statement], Callable[[], None] | None] | None]:
        """What waits, at least one; empty when it is time for a sign of life."""
        try:
            batch = [self._waiting.get(timeout=BEAT if self.alive else None)]
        except queue.Empty:
            return []
        while not self._waiting.empty():
            batch.append(self._waiting.get())
        return batch

    def _connected(self) -> sqlite3.Connection | None:
        try:
            return connected(self._path)
        except (OSError, sqlite3.Error) as error:
            self.trouble = f"the journal {self._path} cannot be written: {error}"
            return None

    def _commit(self, connection: sqlite3.Connection, statements: Sequence[Statement]) -> None:
        try:
            with connection:
                for query, values in statements:
                    connection.execute(query, values)
        except Exception as error:  # noqa: BLE001 - if this thread ended, every call would wait for ever
            self.trouble = f"the journal {self._path} can no longer be written: {error}"


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


def connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    if connection.execute("pragma journal_mode").fetchone()[0] != "wal":
        connection.execute("pragma journal_mode = wal")
    # what is committed survives the end of the process; only a power failure may take the last moments with it
    connection.execute("pragma synchronous = normal")
    return connection


def made(path: Path) -> None:
    """See that the file is there, for nobody's eyes but the user's: it holds questions, answers and what was read."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600, exist_ok=True)


def migrate(path: Path) -> None:
    """Bring the file to today's form. Raises `sqlite3.DatabaseError` for one of a newer form and for another's file."""
    with closing(connected(path)) as connection:
        if _form(connection) == VERSION:
            return
        with connection:
            connection.execute("begin immediate")
            version = _form(connection)
            if version > VERSION:
                raise sqlite3.DatabaseError(f"it was written by a newer hira (form {version}, this one has {VERSION})")
            if version == 0 and connection.execute("select 1 from sqlite_master").fetchone():
                raise sqlite3.DatabaseError("it is the database of another program")
            steps = [TABLES] if version == 0 else [MIGRATIONS[at] for at in range(version, VERSION)]
            for statement in (one for step in steps for one in step.split(";")):
                connection.execute(statement)
            connection.execute(f"pragma user_version = {VERSION}")


def _form(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("pragma user_version").fetchone()
    return int(version)


_JSON = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"), default=str)


def packed(value: Any) -> bytes:
    text = _JSON.encode(value).encode("utf-8", "surrogatepass")
    return zlib.compress(text, 1) if len(text) > COMPRESSED else text


def unpacked(raw: bytes) -> Any:
    return json.loads((zlib.decompress(raw) if raw[:1] == b"\x78" else raw).decode("utf-8", "surrogatepass"))


def storable(text: str) -> str:
    """The text as SQLite can keep it: halves of characters, as names of files may hold them, are spelled out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
