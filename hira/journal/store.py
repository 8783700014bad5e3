"""The journal's file: its tables, and who writes into it."""

import asyncio
import sqlite3
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

Statement = tuple[str, tuple[Any, ...]]
"""The name of what is to be written, and its values."""

BEAT = 15.0  # seconds between two signs of life of the runs that a process has under way
OFTEN = 256  # transactions after which the write-ahead log is moved into the database
HELD = 0.01  # seconds for which the loop waits where another process writes, which takes less
PATIENCE = 30.0  # seconds for which a database that somebody else holds is waited for, each time

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


# What is written into the file. Doing one again changes nothing.
STATEMENTS = {
    "begin": """
insert or ignore into runs
  (id, question, workflow, status, answer, error, settings, files, versions, began, heard, pid, host, scope)
values
  (?, ?, ?, 'running', '', '', ?, ?, ?, ?, ?, ?, ?, ?)
""",
    "claim unchanged": """
update runs set status = 'running', ended = null, pid = ?, host = ?, heard = ?
where id = ? and status = ? and ended is ? and heard is ?
""",
    "tools": "update runs set tools = ? where id = ?",
    "end": "update runs set status = ?, answer = ?, error = ?, ended = ?, usage = ? where id = ?",
    "heard": "update runs set heard = ? where id = ?",
    "find by digest": "create index if not exists calls_by_digest on calls (digest)",
    "no calls": "delete from calls where run = ?",
    "no events": "delete from events where run = ?",
    "no sources": "delete from sources where run = ?",
    "no run": "delete from runs where id = ?",
}
# Rows of a table wait under the table's name.
STATEMENTS |= {
    table: f"insert or replace into {table} values ({', '.join('?' * width)})"  # noqa: S608 - the names are our own
    for table, width in (("calls", 10), ("sources", 3), ("events", 3))
}


class Writer:
    """Writes into the journal. The writes of an event loop in one of its rounds form one transaction, in that loop: it
    takes some ten microseconds, because nothing is synchronised with the disk, and survives the end of the process. A
    thread makes slower ones: while another process holds the file, and if the file does not support write-ahead. It
    also moves the write-ahead log into the database, and gives signs of life for the runs that are `alive`.

    A failure is kept in `trouble` and ends recording, and so does a file that is held for longer than the `patience`,
    in seconds.
    """

    def __init__(self, path: Path, patience: float = PATIENCE) -> None:
        self._path = path
        self._patience = patience
        self._connection = connect(path, patience)
        self._ahead = _ahead(self._connection)
        self._connection.execute("pragma wal_autocheckpoint = 0")
        self._connection.execute("pragma cache_size = -512")  # kB; it writes to a few pages, and reads none
        self._connection.execute(f"pragma busy_timeout = {round(HELD * 1000)}")
        self._waiting: list[Statement] = []
        self._waiters: list[asyncio.Future[None]] = []
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._wake = threading.Event()
        self._late = self._over = False
        self._scheduled: asyncio.AbstractEventLoop | None = None
        self._commits = 0
        self._thread: threading.Thread | None = None
        self.trouble = ""
        self.alive: set[str] = set()

    def write(self, statements: Sequence[Statement]) -> None:
        """Have the statements committed in the next round of the loop; at once where no loop runs."""
        with self._lock:
            if self._over and not self.trouble:
                self.trouble = f"the journal {self._path} was closed"
            if not self.trouble:
                self._waiting += statements
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.settle()
            return
        if self._scheduled is not loop:
            self._scheduled = loop
            loop.call_soon(self._flush)

    async def commit(self) -> None:
        """Return once the system has what was written, whatever happens to this process, or if nothing can be kept.

        Runs that wait for it in one round of the loop share a transaction.
        """
        if not self._waiting and not self._turn.locked():
            return
        if len(self.alive) < 2 and self._ahead and self._commit(0.0):
            return
        done = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiters.append(done)
        self.write(())  # its flush ends the wait
        await done

    def settle(self) -> None:
        """Return when the database holds what was written so far, or when it is known that it never will."""
        until = time.monotonic() + self._patience
        while not self._commit(HELD):
            if time.monotonic() > until:
                self._fail("another process holds it")

    def begin(self, run: str, statements: Sequence[Statement] = ()) -> None:
        """Write the beginning of a run, and give signs of life for it from now on."""
        self.alive.add(run)
        self.write(statements)
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep, name="hira-journal", daemon=True)
            self._thread.start()

    def close(self) -> None:
        self.settle()
        self._over = True
        self._wake.set()
        if self._thread:
            self._thread.join(60)
        with self._turn:
            self._connection.close()

    def _flush(self) -> None:
        """Commit what waits; what cannot be committed at once is left to the thread."""
        self._scheduled = None
        if (self._waiting or self._waiters) and not (self._ahead and self._commit(0.0)):
            self._late = True
            self._wake.set()

    def _commit(self, seconds: float) -> bool:
        """Commit what waits, unless another process holds the file for `seconds`. Return whether none is left."""
        if not self._turn.acquire(timeout=seconds):
            return False
        try:
            with self._lock:
                statements, self._waiting = self._waiting, []
                waiters, self._waiters = self._waiters, []
            try:
                if statements and not self.trouble:
                    do(self._connection, statements)
            except sqlite3.OperationalError as error:
                if busy(error):
                    with self._lock:
                        self._waiting[:0], self._waiters[:0] = statements, waiters
                    return False
                self._fail(str(error))
            except Exception as error:  # noqa: BLE001 - whatever it is, the run continues without its record
                self._fail(str(error))
            if waiters:
                _release(waiters)
        finally:
            self._turn.release()
        self._commits += 1
        if self._commits % OFTEN == 0:
            self._wake.set()
        return True

    def _fail(self, why: str) -> None:
        self.trouble = self.trouble or f"the journal {self._path} can no longer be written: {why}"

    def _keep(self) -> None:
        beaten = time.monotonic()
        moved = self._commits
        while not self._over:
            self._wake.wait(BEAT)
            self._wake.clear()
            if self._late:
                self._late = False
                self.settle()
            many = self._commits - moved >= OFTEN
            if many:
                moved = self._commits
                with self._turn, suppress(sqlite3.Error):  # somebody reads: another time
                    self._connection.execute("pragma wal_checkpoint(restart)")
            if self.alive and (many or time.monotonic() - beaten >= BEAT):
                beaten = time.monotonic()
                self.write([("heard", (time.time(), run)) for run in tuple(self.alive)])


def _release(waiters: Sequence[asyncio.Future[None]]) -> None:
    """Wake those who waited, in whichever loop."""
    here = asyncio._get_running_loop()  # noqa: SLF001 - the public one raises where none runs
    for waiter in waiters:
        if (loop := waiter.get_loop()) is here:
            _finish(waiter)
        else:
            with suppress(RuntimeError):  # that loop has ended
                loop.call_soon_threadsafe(_finish, waiter)


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


def busy(error: sqlite3.OperationalError) -> bool:
    """Return whether another process holds the file, which passes."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def do(connection: sqlite3.Connection, statements: Sequence[Statement]) -> None:
    """Do them in their order, all or none."""
    if len(statements) > 1:  # a single one is a transaction already
        connection.execute("begin immediate")
    try:
        for name, values in statements:
            connection.execute(STATEMENTS[name], values)
        connection.commit()
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise


def connect(path: Path, patience: float = PATIENCE) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=patience, check_same_thread=False, isolation_level=None)
    connection.row_factory = sqlite3.Row
    try:
        if not _ahead(connection):
            # a network's file system may have no memory that processes share, which writing ahead needs: the file is
            # then kept in the older mode, as it is for a moment where another process is just changing it
            with suppress(sqlite3.OperationalError):
                connection.execute("pragma journal_mode = wal")
        # what is committed survives the end of the process; only a power failure may take the last moments with it
        connection.execute(f"pragma synchronous = {'normal' if _ahead(connection) else 'full'}")
    except sqlite3.Error:  # it is no database, or somebody else holds it
        connection.close()
        raise
    return connection


def _ahead(connection: sqlite3.Connection) -> bool:
    """Return whether the file is in write-ahead mode."""
    (mode,) = connection.execute("pragma journal_mode").fetchone()
    return bool(mode == "wal")


def check_locks(folder: Path) -> None:
    """Raise `OSError` where no file can be locked, as on some network drives: the database would seem held for ever."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - another place reports a folder that takes none
    except OSError:
        return
    with file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise OSError(f"files cannot be locked in {folder} ({error.strerror})") from None


def migrate(path: Path, patience: float = PATIENCE) -> None:
    """Bring the file to today's form. Raises `sqlite3.DatabaseError` for one of a newer form and for another's file."""
    with closing(connect(path, patience)) as connection:
        check_tables(connection)
        if _form(connection) == VERSION:
            return
        with connection:  # commits, or undoes what an error has left half done
            connection.execute("begin immediate")
            version = _form(connection)
            if version > VERSION:
                raise sqlite3.DatabaseError(f"it was written by a newer hira (form {version}, this one has {VERSION})")
            if version == 0 and connection.execute("select 1 from sqlite_master").fetchone():
                raise sqlite3.DatabaseError("it is the database of another program")
            steps = [TABLES] if version == 0 else [MIGRATIONS[index] for index in range(version, VERSION)]
            for statement in (part for step in steps for part in step.split(";")):
                connection.execute(statement)
            connection.execute(f"pragma user_version = {VERSION}")


def check_tables(connection: sqlite3.Connection) -> None:
    """Raise `sqlite3.DatabaseError` if the file's tables are not plain ones. A view can be a query without an end, a
    trigger can write without an end, and a virtual table is another program's."""
    strange = """
select name from sqlite_master where type = 'trigger'
or name in ('runs', 'calls', 'sources', 'events') and (type <> 'table' or sql like 'create virtual%') limit 1
"""
    if row := connection.execute(strange).fetchone():
        raise sqlite3.DatabaseError(f"{row[0]!r:.80} in it is not a plain table")


def _form(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("pragma user_version").fetchone()
    return int(version)
