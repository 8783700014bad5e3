"""The durable record of runs: every policy and tool call, written before its result is used.

One SQLite file for a user or a project, in write-ahead mode, safe for several processes. Resume, replay, cache, trace
and the training set are readings of it.
"""

import json
import os
import socket
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hira.errors import UsageError
from hira.journal.log import Asked, Call, Key, Kind, Log, NotRecorded
from hira.journal.store import Writer, connected, migrate, unpacked

_BEGIN = """
insert into runs
  (id, question, workflow, status, answer, error, settings, files, versions, began, pid, host)
values
  (:id, '', '', 'running', '', '', :settings, :files, :versions, :began, :pid, :host)
"""

__all__ = ["Asked", "Call", "Entry", "Journal", "Log", "NotRecorded"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A run as the journal lists it. `status` is `running` until the run ends; times are seconds since the epoch."""

    id: str
    question: str
    workflow: str
    status: str
    answer: str
    error: str
    settings: Mapping[str, Any]
    files: tuple[str, ...]
    versions: Mapping[str, str]
    began: float
    ended: float | None
    pid: int
    host: str

    @property
    def alive(self) -> bool:
        """Whether the process that wrote it is still at it, as far as this machine can tell."""
        if self.status != "running" or self.host != socket.gethostname():
            return self.status == "running"
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True


class Journal:
    """The file at `path`, made when it is missing and brought to today's form when it is older."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._reader = connected(path)
            migrate(self._reader)
        except (OSError, sqlite3.Error) as error:
            raise UsageError(
                f"the journal cannot be opened: {error}", where=f"at {path}", fix="name another file with --journal"
            ) from None
        self._writer = Writer(path)

    def begin(
        self, run: str, *, settings: Mapping[str, Any], files: Sequence[Path], versions: Mapping[str, str]
    ) -> Log:
        """Open the record of a new run."""
        row = {
            "id": run,
            "settings": json.dumps(dict(settings)),
            "files": json.dumps([str(path) for path in files]),
            "versions": json.dumps(dict(versions)),
            "began": time.time(),
            "pid": os.getpid(),
            "host": socket.gethostname(),
        }
        self._writer.put([(_BEGIN, row)])
        return Log(run, self._writer)

    def resume(self, run: str) -> Log:
        """Open the record of a run that ended early; what it holds is not asked for again."""
        self._writer.put(
            [
                ("update runs set status = 'running', ended = null, pid = ?, host = ? where id = ?",
                 (os.getpid(), socket.gethostname(), self.entry(run).id)),
                ("delete from events where run = ?", (run,)),
            ]
        )  # fmt: skip
        return Log(run, self._writer, *self._known(run))

    def replay(self, run: str) -> Log:
        """The record as it is: nothing is written, and a call that it does not hold raises `NotRecorded`."""
        return Log(self.entry(run).id, None, *self._known(run))

    def runs(self, limit: int = 50) -> list[Entry]:
        """The newest runs, newest first."""
        rows = self._rows("select * from runs order by began desc limit ?", (limit,))
        return [_entry(row) for row in rows]

    def entry(self, run: str) -> Entry:
        """The run with this id, or the only one whose id begins so. `last` is the newest."""
        if run == "last":
            rows = list(self._rows("select * from runs order by began desc limit 1"))
        else:
            rows = list(self._rows("select * from runs where substr(id, 1, ?) = ? limit 2", (len(run), run)))
        exact = [row for row in rows if row["id"] == run] or rows
        if len(exact) != 1:
            what = f"no run {run!r}" if not rows else f"several runs begin with {run!r}"
            raise UsageError(what, where=f"in the journal {self.path}", fix="hira runs lists them")
        return _entry(exact[0])

    def calls(self, run: str) -> list[Call]:
        """All calls of the run in the order in which they began."""
        return [_call(row) for row in self._rows("select * from calls where run = ? order by began, position", (run,))]

    def events(self, run: str) -> list[dict[str, Any]]:
        rows = self._rows("select event from events where run = ? order by number", (run,))
        return [unpacked(row["event"]) for row in rows]

    def cached(self, kind: Kind, digest: str, since: float) -> Any:
        """The result of the newest finished call with this digest that began after `since`, None if there is none."""
        query = (
            "select result from calls where digest = ? and kind = ? and began > ? and result is not null"
            " order by began desc limit 1"
        )
        row = next(self._rows(query, (digest, kind, since)), None)
        return unpacked(row["result"]) if row else None

    def close(self) -> None:
        """Write what waits and close the file."""
        self._writer.close()
        self._reader.close()

    def _known(self, run: str) -> tuple[dict[Key, Call], dict[str, str]]:
        calls: dict[Key, Call] = {
            (one.kind, one.conversation, one.position, one.digest): one for one in self.calls(run)
        }
        sources: dict[str, str] = {
            row["location"]: row["id"] for row in self._rows("select * from sources where run = ?", (run,))
        }
        return calls, sources

    def _rows(self, query: str, values: Sequence[Any] = ()) -> Iterator[sqlite3.Row]:
        self._writer.settle()
        return iter(self._reader.execute(query, values).fetchall())


def _entry(row: sqlite3.Row) -> Entry:
    fields = dict(row)
    for name in ("settings", "files", "versions"):
        fields[name] = json.loads(fields[name])
    return Entry(**{**fields, "files": tuple(fields["files"])})


def _call(row: sqlite3.Row) -> Call:
    result = None if row["result"] is None else unpacked(row["result"])
    return Call(
        row["kind"], row["conversation"], row["position"], row["digest"], row["name"],
        unpacked(row["request"]), result, row["began"], row["seconds"],
    )  # fmt: skip
