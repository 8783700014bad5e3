"""The vectors of an index's passages: made once, kept in its SQLite file next to the words, searched with numpy.

The file knows which model made them. Vectors of another model, or of another length, are not comparable: they are
removed, and made anew with the next question.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from hira.tools.documents.encoder import BATCH, Encoded, Encoder, Spend
from hira.tools.documents.pieces import EncoderFailed
from hira.tools.documents.ranking import Ranked
from hira.tools.documents.store import DEEP, Store

if TYPE_CHECKING:
    import numpy as np

MOST = 300_000
"""Passages whose vectors are searched one by one."""
_AT_ONCE = 2
"""Requests in progress."""
_CHUNK = 16_384
# CROSS JOIN, because SQLite keeps its order: passages are looked up only in files that lack vectors
_MISSING = """
SELECT p.rowid, f.id, f.digest FROM files f CROSS JOIN passages p ON p.rowid BETWEEN f.first AND f.first + f.count - 1
WHERE f.count > (SELECT count(*) FROM vectors WHERE row BETWEEN f.first AND f.first + f.count - 1)
AND NOT EXISTS (SELECT 1 FROM vectors WHERE row = p.rowid)
"""
_PUT = """
INSERT OR REPLACE INTO vectors
SELECT ?, ? WHERE EXISTS (SELECT 1 FROM files WHERE id = ? AND digest = ? AND ? BETWEEN first AND first + count - 1)
"""
_COUNT = "INSERT INTO encoder VALUES (0, ?, ?, ?, 1) ON CONFLICT (id) DO UPDATE SET changes = changes + 1"


class Maker(NamedTuple):
    """Who made the vectors: the model that was asked for, the one that answered, the length; and how often the vectors
    have changed."""

    requested: str
    answered: str
    length: int
    changes: int


class Place(NamedTuple):
    """A passage without a vector: its row, its file, and the digest that the file had."""

    row: int
    file: int
    digest: bytes


@dataclass(slots=True)
class Vectors:
    """The vectors of a store, made by an encoder."""

    store: Store
    encoder: Encoder
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _loaded: "tuple[int, np.ndarray, np.ndarray, np.ndarray] | None" = None

    async def complete(self, on_progress: Callable[[int, int], None] | None, spend: Spend | None) -> None:
        """Encode the passages without a vector, and keep each batch at once. Raises `EncoderFailed`."""
        places = await asyncio.to_thread(self._find_missing)
        batches = [places[begin : begin + BATCH] for begin in range(0, len(places), BATCH)]
        done = 0
        for begin in range(0, len(batches), _AT_ONCE):
            some = batches[begin : begin + _AT_ONCE]
            # none is left behind when another fails: what it was paid for is kept
            ended = await asyncio.gather(*(self._encode(batch, spend) for batch in some), return_exceptions=True)
            for failure in filter(None, ended):
                raise failure
            done += sum(map(len, some))
            if on_progress:
                on_progress(done, len(places))

    async def find_near(self, question: str, spend: Spend | None) -> list[Ranked]:
        """Return the passages whose vectors are nearest to that of the question. Raises `EncoderFailed`."""
        encoded = await self.encoder.encode([question], question=True, spend=spend)
        return await asyncio.to_thread(self._find_near, encoded)

    def _find_missing(self) -> list[Place]:
        maker = self._read_maker()
        if maker and maker.requested != self.encoder.endpoint.model:
            self._forget()
        total = self.store.select("SELECT coalesce(sum(count), 0) FROM files")[0][0]
        if total > MOST:
            raise EncoderFailed(f"the documents have {total:,} passages; vectors are searched up to {MOST:,}")
        return [Place(*row) for row in self.store.select(_MISSING)]

    async def _encode(self, places: Sequence[Place], spend: Spend | None) -> None:
        texts = await asyncio.to_thread(self.store.read_full_texts, [place.row for place in places])
        held = [place for place in places if place.row in texts]  # another process may have replaced a document
        if held:
            encoded = await self.encoder.encode([texts[place.row] for place in held], spend=spend)
            await asyncio.to_thread(self._put, held, encoded)

    def _put(self, places: Sequence[Place], encoded: Encoded) -> None:
        import numpy as np

        self._check(encoded)
        rows = [
            (place.row, vector.astype(np.float16).tobytes(), place.file, place.digest, place.row)
            for place, vector in zip(places, encoded.vectors, strict=True)
        ]

        def change(db: sqlite3.Connection) -> None:
            db.executemany(_PUT, rows)
            db.execute(_COUNT, (self.encoder.endpoint.model, encoded.model, encoded.vectors.shape[1]))

        self.store.write(change)

    def _check(self, encoded: Encoded) -> None:
        """Raise `EncoderFailed` and remove the vectors if the server has another model than the one that made them."""
        maker, length = self._read_maker(), encoded.vectors.shape[1]
        if maker and (maker.answered, maker.length) != (encoded.model, length):
            self._forget()
            raise EncoderFailed(
                f"{self.encoder.endpoint.name} has changed: {encoded.model!r} with {length} dimensions instead of"
                f" {maker.answered!r} with {maker.length}; the next question encodes the documents anew"
            )

    def _read_maker(self) -> Maker | None:
        rows = self.store.select("SELECT asked, answered, length, changes FROM encoder")
        return Maker(*rows[0]) if rows else None

    def _forget(self) -> None:
        def change(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM vectors")
            db.execute("DELETE FROM encoder")

        self.store.write(change)

    def _find_near(self, encoded: Encoded) -> list[Ranked]:
        import numpy as np

        self._check(encoded)
        rows, files, vectors = self._load()
        question = encoded.vectors[0]
        parts = [
            vectors[start : start + _CHUNK].astype(np.float32) @ question for start in range(0, len(vectors), _CHUNK)
        ]
        scores = np.concatenate(parts) if parts else np.zeros(0)
        best = np.argsort(-scores)[:DEEP] if len(scores) <= DEEP else np.argpartition(-scores, DEEP)[:DEEP]
        ordered = best[np.argsort(-scores[best], kind="stable")]
        return [Ranked(int(rows[index]), int(files[index]), 0.0) for index in ordered]

    def _load(self) -> "tuple[np.ndarray, np.ndarray, np.ndarray]":
        """Return rows, files and vectors, read again only after a change, which another process may have made."""
        import numpy as np

        with self._lock:
            maker = self._read_maker()
            changes, length = (maker.changes, maker.length) if maker else (0, 1)
            if self._loaded is None or self._loaded[0] != changes:
                held = self.store.select(
                    "SELECT v.row, f.id, v.vector FROM files f"
                    " JOIN vectors v ON v.row BETWEEN f.first AND f.first + f.count - 1"
                )
                rows = np.array([row[0] for row in held], dtype=np.int64)
                files = np.array([row[1] for row in held], dtype=np.int64)
                joined = b"".join(row[2] for row in held)
                vectors = np.frombuffer(joined, dtype=np.float16).reshape(len(held), length)
                self._loaded = (changes, rows, files, vectors)
            return self._loaded[1:]
