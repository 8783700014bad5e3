"""The durable record of runs: every policy and tool call is written before its result is shown or used.

One SQLite file for a user or a project, in write-ahead mode, safe for several processes. Resume, replay, cache, trace
and the training set are readings of it.
"""

import asyncio
import json
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hira.core.errors import FULL, Interrupted, OutOfBudget, Stop, UsageError
from hira.journal.encoding import LARGEST, Damage, DamagedRecord, RecordTooLarge, decompress, read_json, storable
from hira.journal.log import OWN, CallSpec, Kind, Log, NotRecorded, RecordedCall, Reuse
from hira.journal.store import PATIENCE, STATEMENTS, Statement, Writer, busy, check_locks, connect, do, migrate

if TYPE_CHECKING:
    from hira.journal.records import Entry

_CACHED = """
select result from calls join runs on runs.id = calls.run
where digest = ? and kind = ? and calls.began > ? and result is not null and (kind = 'policy' or scope = ?)
order by calls.began desc limit 10
"""
_STOPS: Mapping[str, type[Stop]] = {"interrupted": Interrupted, "partial": OutOfBudget}
MOST_RUNS = 100_000
"""Runs that are listed at once."""
MOST_OF_CALLS, MOST_OF_EVENTS = LARGEST, 64 * 2**20
"""Bytes of a run that are read: requests and results of its calls, and its events, which are short."""
__all__ = [
    "OWN", "CallSpec", "Journal", "Log", "NoJournal", "NoRun", "NotRecorded", "RecordedCall", "StillGoing",
]  # fmt: skip


class NoRun(UsageError):
    """The journal holds no such run."""


class StillGoing(UsageError):
    """The run is being worked on, here or by another process."""


class NoJournal(UsageError):
    """The journal cannot be read or written now, whichever run is asked for."""


class Journal:
    """The file at `path`, made when it is missing and brought to today's form when it is older.

    `patience` is for how many seconds a file that somebody else holds is waited for: by the writer before it tries
    again, by a reader before it gives up. `damage` has a line for each record that was left out because it could not be
    read.
    """

    def __init__(self, path: Path, patience: float = PATIENCE) -> None:
        self.path = path
        self.damage = Damage()
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600, exist_ok=True)  # for the user alone: it contains questions, answers and sources
            check_locks(path.parent)
            migrate(path, patience)
            self._reader = connect(path, patience)
            self._reader.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
            self._reader.text_factory = partial(str, encoding="utf-8", errors="replace")
            self._writer = Writer(path, patience)
        except (OSError, sqlite3.Error) as error:
            full = getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL or getattr(error, "errno", 0) in FULL
            fix = f"{'free some space there, or ' if full else ''}name another file with --journal or journal="
            raise UsageError(f"the journal cannot be opened: {error}", where=f"at {path}", fix=fix) from None
        self._reading = threading.Lock()

    def begin(  # noqa: PLR0913 - the columns of a run
        self,
        run: str,
        question: str = "",
        workflow: str = "",
        *,
        settings: Mapping[str, Any],
        files: Sequence[Path],
        versions: Mapping[str, str],
        scope: str = "",
        reuse: float | None = None,
    ) -> Log:
        """Open the record of a new run. With `reuse`, what other runs brought for the same is not asked for again:
        completions of any age, results of tools of runs with the same `scope` that are younger than `reuse` seconds.
        """
        began = time.time()
        columns = (dict(settings), [str(path) for path in files], dict(versions))
        texts = [json.dumps(column, separators=(",", ":")) for column in columns]
        row = (run, storable(question), workflow, *texts, began, began, os.getpid(), socket.gethostname(), scope)
        self._writer.begin(run, [("begin", row)])
        reused = None if reuse is None else self._reuse(scope, reuse)
        if reused:
            self._writer.write([("find by digest", ())])  # once made, it costs at every call that is written
        return Log(run, self._writer, reuse=reused, began=began, dialects=settings.get("dialects", {}))

    def resume(self, run: "str | Entry", *, without: str = "") -> Log:
        """Open the record of a run that ended early. Recorded calls are not made again, except those of the
        conversation `without`, and those with which the run ended.

        Raises `StillGoing` if another process has resumed the run since this entry was read: its calls would be paid
        for twice.
        """
        entry = self.entry(run) if isinstance(run, str) else run
        run = entry.id
        self._claim(entry)
        known, sources = {call.key: call for call in self.calls(run)}, self.sources(run)
        from hira.journal.records import find_ending  # a new run reads none

        latest = max((call.ended for call in known.values()), default=0.0)
        ahead = max(time.time(), latest) - time.monotonic()
        again = find_ending(known, cut=entry.status == "partial") | {key for key in known if key[1] == without}
        self._writer.begin(run)
        began, dialects = entry.began, entry.settings.get("dialects", {})
        return Log(run, self._writer, known, sources, began=began, ahead=ahead, dialects=dialects, again=again)

    def replay(self, run: str) -> Log:
        """Open the record only to read. A missing call raises `NotRecorded`, or what ended a run that has an answer."""
        entry = self.entry(run)
        stop = _STOPS.get(entry.status) if entry.answer else None
        ended = stop(entry.error.partition("\n")[0]) if stop else None
        dialects = entry.settings.get("dialects", {})
        known, sources = {call.key: call for call in self.calls(entry.id)}, self.sources(entry.id)
        return Log(entry.id, None, known, sources, ended=ended, began=entry.began, dialects=dialects, is_replay=True)

    def runs(self, limit: int = 50, named: str = "") -> "list[Entry]":
        """The newest runs, newest first, of those whose id holds `named`."""
        from hira.journal.records import read_entry  # a new run reads none

        query = "select * from runs where ? = '' or instr(id, ?) > 0 order by began desc limit ?"
        most = limit if 0 <= limit <= MOST_RUNS else MOST_RUNS
        entries = []
        for number, row in enumerate(self._stream(query, (named, named, most)), 1):
            try:
                entries.append(read_entry(row))
            except DamagedRecord as error:
                self.damage.add(f"run {row['id']!s:.80} cannot be read: {error.what}")
            if number == MOST_RUNS:
                self.damage.add(f"only the newest {MOST_RUNS:,} runs are read")
        return entries

    def entry(self, run: str) -> "Entry":
        """The run with this id, or the only one whose id begins so. `last` is the newest."""
        from hira.journal.records import read_entry

        if run == "last":
            rows = self._rows("select * from runs order by began desc limit 1")
        else:
            rows = self._rows("select * from runs where substr(id, 1, ?) = ? order by id limit 2", (len(run), run))
        exact = [row for row in rows if row["id"] == run] or rows
        if len(exact) != 1:
            what = f"no run {run!r}" if not rows else f"several runs begin with {run!r}"
            raise NoRun(what, where=f"in the journal {self.path}", fix="hira runs lists them")
        try:
            return read_entry(exact[0])
        except DamagedRecord as error:
            what = f"run {exact[0]['id']!s:.80} cannot be read: {error.what}"
            raise NoRun(what, where=f"in the journal {self.path}", fix="hira runs lists the others") from None

    def holds(self, run: str) -> bool:
        """Return whether the database contains the run now, without waiting for pending writes."""
        return bool(self._read("select 1 from runs where id = ?", (run,)))

    def calls(self, run: str) -> list[RecordedCall]:
        """All calls of the run in the order in which they began."""
        from hira.journal.records import read_call

        query = "select * from calls where run = ? order by began, position"
        read = (read_call(row, run, self.damage) for row in self._bounded(query, run, MOST_OF_CALLS))
        return [call for call in read if call]

    def events(self, run: str) -> list[dict[str, Any]]:
        """Return the records of the run's events, as far as they are JSON objects."""
        events: list[dict[str, Any]] = []
        for row in self._bounded("select * from events where run = ? order by number", run, MOST_OF_EVENTS):
            try:
                value = read_json(row["event"])
            except DamagedRecord as error:
                self.damage.add(f"run {run}: the events from number {row['number']!s:.20} cannot be read: {error.what}")
                continue
            records = value if isinstance(value, list) else [value]
            events += [record for record in records if isinstance(record, dict)]
            if damaged := sum(not isinstance(record, dict) for record in records):
                self.damage.add(f"run {run}: {damaged} events from number {row['number']!s:.20} are no JSON objects")
        return events

    def sources(self, run: str) -> dict[str, str]:
        """Return the ids of the run's sources, by location."""
        rows = self._stream("select * from sources where run = ? limit ?", (run, MOST_RUNS))
        pairs = ((row["location"], row["id"]) for row in rows)
        return {location: name for location, name in pairs if isinstance(location, str) and isinstance(name, str)}

    def ids(self, question: str, before: float) -> dict[str, str]:
        """The ids, by location, that the newest run of this question gave that began `before` this time."""
        query = "select id from runs where question = ? and began < ? order by began desc limit 1"
        rows = self._rows(query, (storable(question), before))
        return self.sources(rows[0]["id"]) if rows else {}

    def find_cached(self, kind: Kind, digest: str, since: float, scope: str = "") -> Any:
        """Return the newest good result of a call with this digest that began after `since`, None without one."""
        from hira.journal.records import decode_result

        for row in self._read(_CACHED, (digest, kind, since, scope)):
            try:
                result = decode_result(kind, row["result"])
            except DamagedRecord:
                continue
            if isinstance(result, dict) and "failed" not in result and result.get("ok", True) and not result.get(OWN):
                return result
        return None

    async def wait_written(self) -> None:
        """Return when everything recorded so far can be read, or can never be written."""
        await self._writer.commit()

    def delete(self, runs: Sequence[str]) -> None:
        """Remove runs with all they hold, and give their room back.

        Raises `NoJournal` where they are still there afterwards, as when somebody else holds the file.
        """
        self._writer.settle()  # what waits must not come after the deletion
        deleted: list[Statement] = [
            (name, (run,)) for run in runs for name in ("no calls", "no events", "no sources", "no run")
        ]
        try:
            with self._reading:
                self._reader.execute("pragma secure_delete = on")
                do(self._reader, deleted)
        except sqlite3.Error as error:
            raise _unreadable(error, "the runs are not deleted", self.path) from None
        # a process that writes at this moment, or a damaged page, keeps the room from being given back
        with self._reading, suppress(sqlite3.Error):
            self._reader.execute("vacuum")
            self._reader.execute("pragma wal_checkpoint(truncate)")

    def close(self) -> None:
        self._writer.close()
        self._reader.close()

    def _claim(self, entry: "Entry") -> None:
        """Make the run this process's and forget the events it had, both or neither, unless another one was quicker."""
        self._writer.settle()
        values = (os.getpid(), socket.gethostname(), time.time(), entry.id, entry.status, entry.ended, entry.heard)
        try:
            with self._reading, self._reader:
                self._reader.execute("begin immediate")
                claimed = self._reader.execute(STATEMENTS["claim unchanged"], values).rowcount
                if claimed:
                    self._reader.execute(STATEMENTS["no events"], (entry.id,))
        except sqlite3.Error as error:  # locked, perhaps by a process that resumes this run
            raise _unreadable(error, "the run cannot be resumed", self.path) from None
        if not claimed and self.holds(entry.id):
            raise StillGoing(f"another process is resuming run {entry.id}", fix="see hira runs")

    def _reuse(self, scope: str, seconds: float) -> Reuse:
        settled = False

        async def reuse(kind: Kind, digest: str) -> Any:
            nonlocal settled
            if not settled:  # once: runs before this one are what it looks for
                settled = True
                await self._writer.commit()
            if kind == "tool" and not scope:
                return None
            since = time.time() - seconds if kind == "tool" else 0.0
            try:
                result = await asyncio.to_thread(self.find_cached, kind, digest, since, scope)
            except NoJournal:
                return None  # what cannot be looked up now is asked for
            return {**result, "usage": {}} if result and kind == "policy" else result

        return reuse

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        self._writer.settle()
        return self._read(query, values)

    def _read(self, query: str, values: Sequence[Any]) -> list[sqlite3.Row]:
        """Query the database. Raises `NoJournal` if it cannot be read now, as while another process holds it."""
        try:
            with self._reading:
                return self._reader.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise _unreadable(error, "the journal cannot be read", self.path) from None

    def _stream(self, query: str, values: Sequence[Any]) -> Iterator[sqlite3.Row]:
        """Yield the rows of a query. If the file is damaged, those that can be read."""
        self._writer.settle()
        with self._reading:
            try:
                yield from self._reader.execute(query, values)
            except sqlite3.OperationalError as error:
                raise _unreadable(error, "the journal cannot be read", self.path) from None
            except sqlite3.Error as error:
                self.damage.add(f"the journal is damaged, and what follows cannot be read: {error}")

    def _bounded(self, query: str, run: str, most: int) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of a run, with their records decompressed, until these have more bytes than that."""
        left = most
        for row in self._stream(query, (run,)):
            try:
                values = {name: _expand(row[name], left) for name in row.keys()}  # noqa: SIM118 - a row iterates values
                left -= sum(len(value) for value in values.values() if isinstance(value, bytes | str))
            except RecordTooLarge:
                left = -1
            if left < 0:
                self.damage.add(f"run {run} has more than {most // 2**20} MB of records; the rest is left out")
                return
            yield values


def _expand(value: Any, most: int) -> Any:
    """Decompress a record; one that is damaged is reported where it is decoded. Raises `RecordTooLarge`."""
    try:
        return decompress(value, most) if isinstance(value, bytes) else value
    except RecordTooLarge:
        raise
    except DamagedRecord:
        return value


def _unreadable(error: sqlite3.Error, what: str, path: Path) -> NoJournal:
    if isinstance(error, sqlite3.OperationalError) and busy(error):
        return NoJournal(f"{what}: another process holds the journal", where=f"at {path}", fix="try again later")
    fix = "check that the disk has space, and that the file is a journal of hira"
    return NoJournal(f"{what}: {error}", where=f"at {path}", fix=fix)
