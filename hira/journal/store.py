"""The journal's file: its tables, and the thread that writes into it."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

from hira.journal.encoding import compress
from hira.journal.pending import Pending, Statement, records, waiting

BEAT = 15.0
"""Seconds between two signs of life of the runs that a process has under way."""
GATHERED = 0.5
"""Seconds for which what is written is gathered for one commit, unless somebody waits for it."""

PATIENCE = 30.0
"""Seconds for which a database that somebody else holds is waited for, each time."""

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
);
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


# What is written into the file, by the names under which it waits beside it: these, and a row of a table under the
# table's name. Doing one again changes nothing.
STATEMENTS = {
    "begin": """
insert or ignore into runs
  (id, question, workflow, status, answer, error, settings, files, versions, began, heard, pid, host, scope)
values
  (?, '', '', 'running', '', '', ?, ?, ?, ?, ?, ?, ?, ?)
""",
    "claim unchanged": """
update runs set status = 'running', ended = null, pid = ?, host = ?, heard = ?
where id = ? and status = ? and ended is ? and heard is ?
""",
    # no longer written, but may still wait beside a journal
    "claim": "update runs set status = 'running', ended = null, pid = ?, host = ?, heard = ? where id = ?",
    "describe": "update runs set question = ?, workflow = ? where id = ?",
    "tools": "update runs set tools = ? where id = ?",
    "end": "update runs set status = ?, answer = ?, error = ?, ended = ?, usage = ? where id = ?",
    "heard": "update runs set heard = ? where id = ?",
    "find by digest": "create index if not exists calls_by_digest on calls (digest)",
    "no calls": "delete from calls where run = ?",
    "no events": "delete from events where run = ?",
    "no sources": "delete from sources where run = ?",
    "no run": "delete from runs where id = ?",
    "for good": "pragma secure_delete = on",
}
WIDTHS = {"calls": 10, "sources": 3, "events": 3}
TOGETHER = (32, 16, 8, 4, 2, 1)
"""Rows that one statement inserts: each statement lets the other threads of Python run first."""


class Writer:
    """The thread that writes. What it is given is safe at once, in a file of records that wait, and is moved into the
    database a moment later, all that came meanwhile in one commit. A failure is kept in `trouble` and ends recording;
    while somebody else holds the database for longer than the `patience`, in seconds, what came waits in its file.

    `alive` are the runs under way here; the thread gives signs of life for them.
    """

    def __init__(self, path: Path, patience: float = PATIENCE) -> None:
        self._path = path
        self._patience = patience
        self._late: list[Statement] = []
        self._lock = threading.Lock()
        self._pending: Pending | None = None
        self._batch: list[Statement] = []
        self._settled: list[Callable[[], None]] = []
        self._wake, self._hurry = threading.Event(), threading.Event()
        self._over = self._failed = False
        self.trouble = ""
        self.alive: set[str] = set()
        self._thread = threading.Thread(target=self._work, name="hira-journal", daemon=True)
        self._thread.start()

    def write(self, statements: Sequence[Statement]) -> None:
        """Return when the end of this process cannot undo the statements, or when it is known that nothing is kept."""
        with self._lock:
            if self._over and not self.trouble:
                self.trouble = f"the journal {self._path} was closed"
            if self.trouble:
                return
            try:
                self._pending = self._pending or Pending(self._path)
                self._pending.append(statements)
            except OSError as error:
                self.trouble = f"the journal {self._path} can no longer be written: {error.strerror or error}"
                return
            self._batch += statements
        if not self._wake.is_set():
            self._wake.set()

    def put(self, statements: Sequence[Statement]) -> None:
        """Have the statements done soon; the end of this process may prevent it."""
        with self._lock:
            self._batch += statements
        self._wake.set()

    async def wait_written(self) -> None:
        """Return when the database holds what was written so far, or when it is known that it never will."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def tell() -> None:
            loop.call_soon_threadsafe(_finish, done)

        self._then(tell)
        await asyncio.shield(done)

    def settle(self) -> None:
        """The same, for a thread that may wait."""
        done = threading.Event()
        self._then(done.set)
        done.wait(60)

    def _then(self, tell: Callable[[], None]) -> None:
        with self._lock:
            self._settled.append(tell)
            self._hurry.set()
            self._wake.set()

    def close(self) -> None:
        with self._lock:
            self._over = True
            self._hurry.set()
            self._wake.set()
        self._thread.join(60)

    def _work(self) -> None:
        connection = self._connected()
        beaten = time.monotonic()
        over = False
        while not over:
            self._wake.wait(BEAT if self.alive else None)
            self._hurry.wait(GATHERED)
            batch, settled, over = self._taken()
            if self.alive and time.monotonic() - beaten >= BEAT:
                beaten = time.monotonic()
                batch += [("heard", (time.time(), run)) for run in tuple(self.alive)]
            if connection and batch and not self._failed:
                self._commit(connection, batch)
            for tell in settled:
                tell()
            over = over and (self._failed or bool(self._late) or not self._batch)
        if self._pending:
            self._pending.close(keep=self._failed or bool(self._late))
        if connection:
            connection.close()

    def _taken(self) -> tuple[list[Statement], list[Callable[[], None]], bool]:
        with self._lock:
            self._wake.clear()
            self._hurry.clear()
            settled, self._settled = self._settled, []
            if self._late:  # what came since waits in the other file
                batch, self._late = self._late, []
                if self._batch:
                    self._wake.set()
                return batch, settled, self._over
            batch, self._batch = self._batch, []
            if self._pending and not self._failed:
                self._pending.turn()
            return batch, settled, self._over

    def _connected(self) -> sqlite3.Connection | None:
        try:
            return connect(self._path, self._patience)
        except (OSError, sqlite3.Error) as error:
            self._failed, self.trouble = True, f"the journal {self._path} cannot be written: {error}"
            return None

    def _commit(self, connection: sqlite3.Connection, statements: Sequence[Statement]) -> None:
        try:
            with connection:
                do(connection, statements)
            if self._pending:
                self._pending.empty()
        except sqlite3.OperationalError as error:
            if not busy(error):
                self._failed, self.trouble = True, f"the journal {self._path} can no longer be written: {error}"
                return
            self._late = list(statements)
            self._wake.set()
        except Exception as error:  # noqa: BLE001 - if this thread ended, every call would wait for ever
            self._failed, self.trouble = True, f"the journal {self._path} can no longer be written: {error}"


def busy(error: sqlite3.OperationalError) -> bool:
    """Whether somebody else holds the file, which passes."""
    return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


def do(connection: sqlite3.Connection, statements: Sequence[Statement]) -> None:
    """Do them in their order; rows that follow one another go in together, the events of one run in one row."""
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in WIDTHS}
    for name, values in statements:
        if name in rows:
            rows[name].append(values)
        elif name in STATEMENTS:
            _insert(connection, rows)
            connection.execute(STATEMENTS[name], values)
        else:
            raise sqlite3.DatabaseError(f"only a newer hira can read {name!r} next to it")
    _insert(connection, rows)


def _insert(connection: sqlite3.Connection, rows: dict[str, list[tuple[Any, ...]]]) -> None:
    rows["events"] = _gathered(rows["events"])
    for table, ready in rows.items():
        while ready:
            number = next(size for size in TOGETHER if size <= len(ready))
            values = [compress(one) if type(one) is bytes else one for row in ready[:number] for one in row]
            connection.execute(_insertion(table, number), values)
            del ready[:number]


def _gathered(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows of events with the lists of each run as one list, under the first one's number."""
    runs: dict[str, list[Any]] = {}
    for run, number, raw in rows:
        runs.setdefault(run, [number]).append(raw[1:-1])
    return [(run, first, b"[%b]" % b",".join(lists)) for run, (first, *lists) in runs.items()]


@cache
def _insertion(table: str, rows: int) -> str:
    one = f"({', '.join('?' * WIDTHS[table])})"
    return f"insert or replace into {table} values {', '.join([one] * rows)}"  # noqa: S608 - the names are our own


def take_in(path: Path, patience: float = PATIENCE) -> None:
    """Move what waits beside the file at `path` into it."""
    if not waiting(path):
        return
    with closing(connect(path, patience)) as connection, connection:
        connection.execute("begin immediate")
        with records(path) as groups:
            for statements in groups:
                do(connection, statements)
            connection.commit()


def connect(path: Path, patience: float = PATIENCE) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=patience, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    try:
        _prepare(connection)
    except sqlite3.Error:  # it is no database, or somebody else holds it
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    if not _ahead(connection):
        connection.execute("pragma page_size = 8192")  # of a new file: most calls fit into a page
        # a network's file system may have no memory that processes share, which writing ahead needs: the file is then
        # kept in the older mode, as it is for a moment where another process is just changing it
        with suppress(sqlite3.OperationalError):
            connection.execute("pragma journal_mode = wal")
    # what is committed survives the end of the process; only a power failure may take the last moments with it
    connection.execute(f"pragma synchronous = {'normal' if _ahead(connection) else 'full'}")


def _ahead(connection: sqlite3.Connection) -> bool:
    """Whether the file is in write-ahead mode."""
    (mode,) = connection.execute("pragma journal_mode").fetchone()
    return bool(mode == "wal")


def create_file(path: Path) -> None:
    """See that the file is there, for nobody's eyes but the user's: it holds questions, answers and what was read."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600, exist_ok=True)


def migrate(path: Path, patience: float = PATIENCE) -> None:
    """Bring the file to today's form. Raises `sqlite3.DatabaseError` for one of a newer form and for another's file."""
    with closing(connect(path, patience)) as connection:
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
