"""What search services answered, kept on disk for a while: the same question is not paid for twice."""

import asyncio
import json
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from hira.tools.once import Once
from hira.tools.search.service import Backend, Hit

DAY = 86_400.0
_TABLE = "CREATE TABLE IF NOT EXISTS answers (asked TEXT PRIMARY KEY, at REAL NOT NULL, hits TEXT NOT NULL)"


class Cache:
    """A SQLite file of answers, each good for `seconds`. Many processes may share it; a damaged one is replaced.

    It is a convenience only: where the disk fails, answers are kept in memory or not at all.
    """

    def __init__(self, path: Path, *, seconds: float = DAY, clock: Callable[[], float] = time.time) -> None:
        self.seconds = seconds
        self.clock = clock
        self._lock = threading.Lock()
        self._db = self._open(path)

    def _open(self, path: Path) -> sqlite3.Connection:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return self._prepared(path)
        except (OSError, sqlite3.OperationalError):  # no place to write
            return self._prepared(":memory:")
        except sqlite3.DatabaseError:  # the file is no database
            path.unlink()
            return self._prepared(path)

    def _prepared(self, path: Path | str) -> sqlite3.Connection:
        db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=2.0)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = OFF")
            db.execute(_TABLE)
            db.execute("DELETE FROM answers WHERE at < ?", (self.clock() - self.seconds,))
        except sqlite3.DatabaseError:
            db.close()
            raise
        return db

    def get(self, asked: str) -> list[Hit] | None:
        """The answer that is kept, None where there is no fresh one."""
        with self._lock:
            try:
                row = self._db.execute("SELECT at, hits FROM answers WHERE asked = ?", (asked,)).fetchone()
            except sqlite3.Error:
                return None
        if row is None or row[0] < self.clock() - self.seconds:
            return None
        return [Hit(**hit) for hit in json.loads(row[1])]

    def put(self, asked: str, hits: list[Hit]) -> bool:
        """Keep an answer; whether that succeeded."""
        row = (asked, self.clock(), json.dumps([asdict(hit) for hit in hits], ensure_ascii=False))
        with self._lock:
            try:
                self._db.execute("REPLACE INTO answers VALUES (?, ?, ?)", row)
            except sqlite3.Error:
                return False
        return True

    def close(self) -> None:
        with self._lock:
            self._db.close()


@dataclass(frozen=True, slots=True)
class Cached:
    """A service whose answers are kept. That nothing was found is not: it may have been a bad moment.

    `place` tells servers of one name apart.
    """

    backend: Backend
    cache: Cache
    place: str = ""

    @property
    def name(self) -> str:
        return self.backend.name

    async def search(self, query: str, n: int) -> list[Hit]:
        asked = _spelled(f"{self.name} {self.place}".strip(), query, n)
        kept = await asyncio.to_thread(self.cache.get, asked)
        if kept is not None:
            return kept
        hits = await self.backend.search(query, n)
        if hits:
            await asyncio.to_thread(self.cache.put, asked, hits)
        return hits


@dataclass(frozen=True, slots=True)
class Shared:
    """A service that several runs ask at once: the same question is sent once. An answer without hits is not kept."""

    backend: Backend
    once: Once

    @property
    def name(self) -> str:
        return self.backend.name

    async def search(self, query: str, n: int) -> list[Hit]:
        return await self.once(_spelled(self.name, query, n), lambda: self.backend.search(query, n), bool)


def _spelled(name: str, query: str, n: int) -> str:
    """What tells one question to a service from another."""
    return json.dumps([name, " ".join(query.split()).casefold(), n], ensure_ascii=False)
