"""The journal's file: its tables, and the thread that writes into it.

The thread groups what many runs write at once into one commit, so that nothing waits on the disk but the call whose
result was just paid for.
"""

import asyncio
import json
import queue
import sqlite3
import threading
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Statement = tuple[str, Sequence[Any] | dict[str, Any]]

VERSION = 1
TABLES = """
create table runs (
  id text primary key, question text not null, workflow text not null, status text not null, answer text not null,
  error text not null, settings text not null, files text not null, versions text not null,
  began real not null, ended real, pid integer not null, host text not null
);
create table calls (
  run text not null, kind text not null, conversation text not null, position integer not null, digest text not null,
  name text not null, request blob not null, result blob, began real not null, seconds real,
  primary key (run, kind, conversation, position, digest)
) without rowid;
create index calls_by_digest on calls (digest);
create table sources (run text not null, location text not null, id text not null, primary key (run, location));
create table events (run text not null, number integer not null, event blob not null, primary key (run, number));
"""


class Writer:
    """The thread that writes. What waits is written in one commit; a failure is kept in `trouble` and ends writing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiting: queue.SimpleQueue[tuple[list[Statement], Callable[[], None] | None] | None] = queue.SimpleQueue()
        self.trouble = ""
        self._thread = threading.Thread(target=self._work, name="hira-journal", daemon=True)
        self._thread.start()

    def put(self, statements: list[Statement]) -> None:
        self._waiting.put((statements, None))

    async def write(self, statements: list[Statement]) -> None:
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
        connection = connected(self._path)
        over = False
        while not over:
            batch = [self._waiting.get()]
            while not self._waiting.empty():
                batch.append(self._waiting.get())
            over = None in batch
            items = [item for item in batch if item]
            if not self.trouble:
                try:
                    with connection:
                        for statements, _ in items:
                            for query, values in statements:
                                connection.execute(query, values)
                except sqlite3.Error as error:
                    self.trouble = f"the journal {self._path} can no longer be written: {error}"
            for _, tell in items:
                if tell:
                    tell()
        connection.close()


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


def connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    return connection


def migrate(connection: sqlite3.Connection) -> None:
    with connection:
        connection.execute("begin immediate")
        (version,) = connection.execute("pragma user_version").fetchone()
        if version > VERSION:
            raise sqlite3.DatabaseError(f"it was written by a newer hira (form {version}, this one knows {VERSION})")
        if version == 0:
            for statement in TABLES.split(";"):
                connection.execute(statement)
        connection.execute(f"pragma user_version = {VERSION}")


def packed(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")
    return zlib.compress(text, 1) if len(text) > 1024 else text


def unpacked(raw: bytes) -> Any:
    return json.loads((zlib.decompress(raw) if raw[:1] == b"\x78" else raw).decode("utf-8", "surrogatepass"))
