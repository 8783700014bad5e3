"""Answers of search services, shared by runs and kept on disk for a day: nobody pays twice for one query."""

import asyncio
import json
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from hira.core.concurrency import Once
from hira.core.errors import ToolError
from hira.tools.search.service import Backend, Hit

DAY = 86_400.0


class Cache:
    """A SQLite file of answers, each valid for `seconds`. Several processes may share it; a damaged file is replaced.

    Raises `ToolError` if it cannot be opened. If the disk fails later, the services are asked.
    """

    def __init__(self, path: Path, *, seconds: float = DAY, clock: Callable[[], float] = time.time) -> None:
        self.seconds = seconds
        self.clock = clock
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._db = self._open(path)
        except (OSError, sqlite3.Error) as error:
            raise ToolError(f"answers of search services cannot be kept in {path} ({error})") from None

    def _open(self, path: Path) -> sqlite3.Connection:
        path.touch(mode=0o600)
        db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=2.0)
        try:
            db.execute("PRAGMA synchronous = OFF")
            db.execute(
                "CREATE TABLE IF NOT EXISTS answers (asked TEXT PRIMARY KEY, at REAL NOT NULL, hits TEXT NOT NULL)"
            )
            db.execute("DELETE FROM answers WHERE at < ?", (self.clock() - self.seconds,))
        except sqlite3.DatabaseError as error:
            db.close()
            if isinstance(error, sqlite3.OperationalError):
                raise
            path.unlink()
            return self._open(path)
        return db

    def get(self, asked: str) -> list[Hit]:
        """Return the hits of a valid answer, [] without one."""
        rows: list[tuple[str]] = []
        with self._lock, suppress(sqlite3.Error):
            since = self.clock() - self.seconds
            rows = self._db.execute("SELECT hits FROM answers WHERE asked = ? AND at >= ?", (asked, since)).fetchall()
        kept = [hit for (hits,) in rows for hit in json.loads(hits)]  # of an earlier version with more about each
        return [Hit(hit["title"], hit["url"], hit["snippet"], hit["date"]) for hit in kept]

    def put(self, asked: str, hits: list[Hit]) -> None:
        row = (asked, self.clock(), json.dumps([asdict(hit) for hit in hits], ensure_ascii=False))
        with self._lock, suppress(sqlite3.Error):
            self._db.execute("REPLACE INTO answers VALUES (?, ?, ?)", row)

    def close(self) -> None:
        with self._lock:
            self._db.close()


@dataclass(frozen=True, slots=True)
class Cached:
    """A service whose answers are kept, unless they are empty. `place` distinguishes servers of one name."""

    backend: Backend
    cache: Cache
    place: str = ""

    @property
    def name(self) -> str:
        return self.backend.name

    async def search(self, query: str, n: int) -> list[Hit]:
        asked = spell_query(f"{self.name} {self.place}", query, n)
        if kept := await asyncio.to_thread(self.cache.get, asked):
            return kept
        if hits := await self.backend.search(query, n):
            await asyncio.to_thread(self.cache.put, asked, hits)
        return hits


@dataclass(frozen=True, slots=True)
class SharedSearch:
    """A service that several runs share: equal queries are sent once. An answer without hits is not kept."""

    backend: Backend
    once: Once

    @property
    def name(self) -> str:
        return self.backend.name

    async def search(self, query: str, n: int) -> list[Hit]:
        return await self.once(spell_query(self.name, query, n), lambda: self.backend.search(query, n), bool)


def spell_query(name: str, query: str, n: int) -> str:
    """Return a key that ignores spaces and capitals for a query for `n` hits from the service `name`."""
    return json.dumps([name, " ".join(query.split()).casefold(), n], ensure_ascii=False)
