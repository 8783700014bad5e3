"""Memory across conversations: claims of earlier answers that were verified against documents of this machine.

A claim is kept with the passage that supports it, the document and the digest of its content. A search over documents
shows claims again that fit the query, with their dates, as long as the document has the same content. The passage alone
is evidence, so that every use of a claim is verified again.
"""

import asyncio
import hashlib
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from hira.agents.trajectory import Rollout
from hira.core.bm25 import BM25
from hira.core.errors import ToolError, UsageError
from hira.core.tool import Observation, Passage, Tool, tool
from hira.evidence import CITED, Citation, Source

if TYPE_CHECKING:
    from hira.tools.documents import Index

MOST = 10_000
"""Claims that are kept; the oldest make room."""
SHOWN = 3
"""Claims that one search shows."""
LONGEST = 4_000
"""Characters of a claim and of its passage; longer ones are not kept."""
_PARTS = re.compile(r" … |\n")
"""Separates the parts of a quotation."""
_TABLE = """
CREATE TABLE IF NOT EXISTS claims (
  id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, digest TEXT NOT NULL, title TEXT NOT NULL,
  claim TEXT NOT NULL, passage TEXT NOT NULL, place TEXT NOT NULL, question TEXT NOT NULL, run TEXT NOT NULL,
  date TEXT NOT NULL, UNIQUE (path, digest, claim)
)
"""


class VerifiedClaim(NamedTuple):
    """A claim of an earlier answer: its number, its document with the digest of the content, the passage that supports
    it with its place, and the question, the run and the day of the answer."""

    id: int
    path: str
    digest: str
    title: str
    claim: str
    passage: str
    place: str
    question: str
    run: str
    date: str


@dataclass(frozen=True, slots=True)
class ClaimMemory:
    """The claims in one file. Several processes may use it at once."""

    file: Path

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction. Raises `UsageError` if that is not possible."""
        try:
            if not self.file.exists():
                self.file.parent.mkdir(parents=True, exist_ok=True)
                self.file.touch(mode=0o600)
            database = sqlite3.connect(self.file, timeout=10)
            try:
                with database:
                    database.execute(_TABLE)
                    yield database
            finally:
                database.close()
        except (OSError, sqlite3.Error) as error:
            raise UsageError(
                f"the memory cannot be used: {error}", where=f"at {self.file}", fix="leave out --memory or memory="
            ) from None

    def add(self, claims: Sequence[VerifiedClaim]) -> None:
        """Keep the claims; one that is known keeps its date."""
        if not claims:
            return
        with self._open() as database:
            rows = [(None, *claim[1:]) for claim in claims]
            database.executemany("INSERT OR IGNORE INTO claims VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            database.execute("DELETE FROM claims WHERE id <= (SELECT max(id) FROM claims) - ?", (MOST,))

    def list(self) -> "list[VerifiedClaim]":
        """Return all claims, the newest first."""
        with self._open() as database:
            rows = database.execute("SELECT * FROM claims ORDER BY id DESC").fetchall()
        return [VerifiedClaim(*row) for row in rows]

    def forget(self, ids: Sequence[int] | None = None) -> int:
        """Delete the claims with these ids, all of them without ids, and return how many there were."""
        with self._open() as database:
            if ids is None:
                return database.execute("DELETE FROM claims").rowcount
            return sum(database.execute("DELETE FROM claims WHERE id = ?", (number,)).rowcount for number in ids)

    async def keep(self, record: Rollout, index: "Index") -> None:
        """Keep the supported claims of an answer whose documents are in the index, and unchanged since it was read."""
        if record.status != "answered":
            return
        day = time.strftime("%Y-%m-%d")
        claims = [await _verify(citation, record, index, day) for citation in record.citations]
        await asyncio.to_thread(self.add, [claim for claim in claims if claim])

    def make_search(self, index: "Index") -> Tool:
        """Create a tool "search" that shows the claims that fit a query and whose documents have not changed."""
        from pydantic import Field

        async def search(query: Annotated[str, Field(description="a question or its key words")]) -> Observation:
            """Verified claims of earlier answers come first."""
            try:
                claims = await asyncio.to_thread(self.list)
            except UsageError as error:
                raise ToolError(str(error)) from None
            versions = await index.read_versions() if claims else {}
            current = [claim for claim in claims if versions.get(claim.path, ("", ""))[1] == claim.digest]
            best = BM25([f"{claim.question} {claim.claim}" for claim in current]).best(query, SHOWN)
            chosen = [current[position] for position in best]
            return Observation(passages=tuple(_show(claim, versions[claim.path][0]) for claim in chosen))

        return tool(search, pure=True)


def is_current(claim: VerifiedClaim) -> bool:
    """Return whether the document of a claim has the content that it had."""
    try:
        with Path(claim.path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest().upper() == claim.digest
    except OSError:
        return False


async def _verify(citation: Citation, record: Rollout, index: "Index", day: str) -> VerifiedClaim | None:
    """Return the claim of a citation if it is to be kept: supported by a document that still has the quotation."""
    source = record.sources.read.get(citation.source)
    if not citation.verdict.holds or not citation.by or source is None or source.kind != "file":
        return None
    entry = await index.open(source.location)
    parts = [" ".join(part.split()) for part in _PARTS.split(citation.quote) if part.strip()]
    if entry is None or not parts:
        return None
    claim, question = CITED.sub("", citation.claim).strip(), record.question[:LONGEST]
    document = (entry.path, entry.stamp.digest.hex().upper(), entry.title)
    for piece in entry.pieces:
        text = " ".join(piece.full.split())
        if all(part in text for part in parts) and max(len(text), len(claim)) <= LONGEST:
            place = piece.locate(entry.title)
            return VerifiedClaim(0, *document, claim, piece.full, place, question, record.run, day)
    return None


def _show(claim: VerifiedClaim, name: str) -> Passage:
    """Return the claim as a passage of its document: only the passage is evidence."""
    source = Source(name, claim.title, claim.passage, "file", places=((0, claim.place),) if claim.place else ())
    place = f"({claim.place})\n" if claim.place else ""
    return Passage(source, f"(verified in an answer of {claim.date}: {claim.claim})\n{place}{claim.passage}")
