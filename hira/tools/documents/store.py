"""The storage of an index's passages: SQLite with full-text search, in a file or in memory."""

import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hira.core.errors import ToolError
from hira.tools.documents.pieces import Piece, drop_title, list_terms, quote_term
from hira.tools.documents.ranking import (
    MENTIONING,
    SHARE_OF_LINKED,
    Issue,
    Ranked,
    Vintage,
    choose_mentioned,
    find_names,
    find_possible_titles,
    fuse,
    put_newest_first,
    read_vintage,
    sort_key,
    spread,
)
from hira.tools.documents.walk import Refused, Stamp

_WAIT = 30.0
_UNWRITABLE = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY})
DEEP = 100
"""Passages that are ranked before the first are chosen."""
_AMONG = 500
_LARGE = 10_000
"""Passages of an index in which common words take most of the time of a search."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS files (
  id INTEGER PRIMARY KEY, path TEXT UNIQUE, name TEXT, size INTEGER, changed INTEGER, digest BLOB, title TEXT,
  note TEXT, first INTEGER, count INTEGER, series TEXT, date TEXT
);
CREATE INDEX IF NOT EXISTS files_by_series ON files (series) WHERE series <> '';
CREATE TABLE IF NOT EXISTS titles (key TEXT, file INTEGER, PRIMARY KEY (key, file)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS vectors (row INTEGER PRIMARY KEY, vector BLOB);
CREATE TABLE IF NOT EXISTS encoder (
  id INTEGER PRIMARY KEY, asked TEXT, answered TEXT, length INTEGER, changes INTEGER
);
CREATE INDEX IF NOT EXISTS titles_by_file ON titles (file);
CREATE TABLE IF NOT EXISTS warned (line TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS refused (
  path TEXT PRIMARY KEY, size INTEGER, changed INTEGER, line TEXT, textless INTEGER, tried REAL
);
CREATE VIRTUAL TABLE IF NOT EXISTS passages USING fts5(
  title, heading, text, beside, place UNINDEXED, span UNINDEXED, file UNINDEXED,
  tokenize = 'porter unicode61 remove_diacritics 2'
);
"""


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """One indexed file. `name` is its shown name, `note` something that a person should know about it."""

    path: str
    name: str
    stamp: Stamp
    title: str
    note: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class PassageHit:
    """A passage that was found; `name` is the shown name of its file, a higher `score` is better, and 0 if another
    passage mentions its document. `issue` is set if there are other vintages of the document."""

    name: str
    title: str
    piece: Piece
    score: float
    row: int = 0
    issue: Issue | None = None


class Store:
    """SQLite FTS5. Several processes may use one file, several threads one store.

    The rank is FTS5's own and never set in the file: a query that ranks by a setting fails ("SQL logic error") while
    another process writes it. The passages of a file have consecutive row ids, `first` and `count` in `files`.
    """

    def __init__(self, file: Path | None, trouble: str = "") -> None:
        self.trouble = trouble
        self._file = file
        self._lock = threading.RLock()
        self._db = _connect(file)

    def write(self, change: Callable[[sqlite3.Connection], object]) -> None:
        """Make a change in one transaction, begun as a writer, so that it waits for other processes only here. If the
        file can no longer be written, as on a full disk, the store continues as a copy in memory."""
        try:
            with self._lock:
                try:
                    self._transact(change)
                except sqlite3.OperationalError as error:
                    if self._file is None or error.sqlite_errorcode & 0xFF not in _UNWRITABLE:
                        raise
                    copy = _connect(None)
                    self._db.backup(copy)
                    self._db.close()
                    self.trouble = _describe_trouble(self._file, error)
                    self._db, self._file = copy, None
                    self._transact(change)
        except sqlite3.Error as error:
            raise ToolError(
                f"the index of the documents ({self._file or 'in memory'}) cannot be written: {error}"
            ) from None

    def _transact(self, change: Callable[[sqlite3.Connection], object]) -> None:
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            change(self._db)

    def select(self, statement: str, *values: object) -> list[Any]:
        try:
            with self._lock:
                return self._db.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise ToolError(
                f"the index of the documents ({self._file or 'in memory'}) cannot be read: {error}"
            ) from None

    def read_known(self) -> tuple[dict[str, Stamp], dict[str, Refused]]:
        """Return the files that are indexed, and those that could not be read, by their paths."""
        indexed = self.select("SELECT path, size, changed, digest FROM files")
        refused = self.select("SELECT path, size, changed, line, textless, tried FROM refused")
        return {path: Stamp(*marks) for path, *marks in indexed}, {path: Refused(*rest) for path, *rest in refused}

    def drop(self, paths: Sequence[str]) -> None:
        def change(db: sqlite3.Connection) -> None:
            for path in paths:
                delete_file(db, path)
                db.execute("DELETE FROM refused WHERE path = ?", (path,))

        self.write(change)

    def find_matches(self, question: str, top: int, relevant: float = 0.0) -> list[Ranked]:
        """Return the passages that share words with a question, best first, more than `top`. Those with less than the
        share `relevant` of the best score are left out: they share only common words."""
        terms = self._drop_common(list_terms(question))
        if not terms:
            return []
        order = self._match(" OR ".join(terms), max(top, DEEP))
        return [ranked for ranked in order if ranked.score >= relevant * order[0].score]

    def _match(self, query: str, top: int) -> list[Ranked]:
        statement = "SELECT rowid, file, -rank FROM passages WHERE passages MATCH ? ORDER BY rank LIMIT ?"
        return [Ranked(*row) for row in self.select(statement, query, top)]

    def _drop_common(self, terms: list[str]) -> list[str]:
        """Return the terms without those that more than half of the passages of a large index have, unless all do.
        FTS5 gives them no weight, but computes a score for every passage that has one."""
        passages = self.select("SELECT count(*) FROM passages_docsize")[0][0]
        if passages <= _LARGE:
            return terms
        having = "SELECT count(*) FROM passages WHERE passages MATCH ?"
        rare = [term for term in terms if self.select(having, term)[0][0] <= passages / 2]
        return rare or terms

    def choose(self, order: Sequence[Ranked], question: str, top: int) -> list[PassageHit]:
        """Return the first `top` passages of an order, with those of documents that the best of them mention."""
        spread_out = spread(order, top)
        if not read_vintage("", question).date:
            spread_out = spread(self._add_current(spread_out, top), top)
        files = {ranked.file for ranked in spread_out[:top]}
        rows = self.select_among("SELECT id, series, date FROM files WHERE id IN ({})", list(files))
        vintages = {file: Vintage(series, date) for file, series, date in rows}
        first = put_newest_first(spread_out[:top], vintages, question)
        linked = self._find_linked(first, spread_out, question, top) if first else []
        taken = {ranked.row for ranked in linked}
        kept = [ranked for ranked in first if ranked.row not in taken][: top - len(linked)]
        return self.read_hits([*kept, *linked])

    def read_full_texts(self, rows: Sequence[int]) -> dict[int, str]:
        """Return the texts of passages with the titles and headings above them, by row."""
        statement = (
            "SELECT p.rowid, f.title, p.heading, p.text FROM passages p JOIN files f ON f.id = p.file"
            " WHERE p.rowid IN ({})"
        )
        texts: dict[int, str] = {}
        for row, title, heading, text in self.select_among(statement, rows):
            texts[row] = "\n".join(filter(None, (title, drop_title(heading, title), text)))
        return texts

    def _add_current(self, order: Sequence[Ranked], top: int) -> list[Ranked]:
        """Put what the newest vintage of a document has under the same heading after each of the first passages that is
        of an older one, with the same score. An outdated passage that comes alone misleads."""
        statement = (
            "SELECT p.rowid, f.series, f.title, p.heading FROM passages p JOIN files f ON f.id = p.file"
            " WHERE f.series <> '' AND p.rowid IN ({})"
        )
        rows = self.select_among(statement, [ranked.row for ranked in order[:top]])
        headings = {row: (series, drop_title(heading, title)) for row, series, title, heading in rows}
        statement = "SELECT series, date, id, title, first, first + count - 1 FROM files WHERE series IN ({})"
        newest: dict[str, list[Any]] = {}
        for series, *issue in self.select_among(statement, list({series for series, _ in headings.values()})):
            newest[series] = max(newest.get(series, [""]), issue, key=lambda held: sort_key(held[0]))
        current: dict[tuple[str, str], Ranked] = {}
        statement = "SELECT rowid, heading FROM passages WHERE rowid BETWEEN ? AND ?"
        for series, (_, file, title, first, last) in newest.items():
            for row, heading in self.select(statement, first, last):
                current.setdefault((series, drop_title(heading, title)), Ranked(row, file, 0.0))
        arranged: dict[int, Ranked] = {}
        for ranked in order:
            arranged.setdefault(ranked.row, ranked)
            if (beside := current.get(headings.get(ranked.row, ("", "")))) and headings[ranked.row][1]:
                arranged.setdefault(beside.row, beside._replace(score=ranked.score))
        return list(arranged.values())

    def _find_linked(self, first: Sequence[Ranked], order: Sequence[Ranked], question: str, top: int) -> list[Ranked]:
        """Return the passages that the best ones name, for the last of the first places: those of documents whose title
        they mention, and those that share words with the question and a name with the best passage."""
        most = int(top * SHARE_OF_LINKED)
        texts = self.read_full_texts([ranked.row for ranked in first[:MENTIONING]])
        keys = [key for text in texts.values() for key in find_possible_titles(text)]
        statement = "SELECT t.key, t.file, f.first FROM titles t JOIN files f ON f.id = t.file WHERE t.key IN ({})"
        titles = self.select_among(statement, list(dict.fromkeys(keys)))
        mentioned = choose_mentioned(titles, question, [*first, *order[top:]], top - most)
        sharing: dict[int, Ranked] = {}
        names = [quote_term(name) for name in find_names(texts.get(first[0].row, ""), question)]
        if names and (terms := self._drop_common(list_terms(question))):
            for ranked in self._match(f"({' OR '.join(terms)}) AND ({' OR '.join(names)})", top):
                sharing.setdefault(ranked.file, ranked)
        shown = {ranked.file for ranked in first[: top - most]}
        orders = [[ranked for ranked in found if ranked.file not in shown] for found in (mentioned, sharing.values())]
        return fuse(orders, lambda ranked: ranked.file)[:most]

    def select_among(self, statement: str, values: Sequence[object]) -> list[Any]:
        """Run a statement with a list of values in place of {}, a few hundred at a time."""
        rows: list[Any] = []
        for begin in range(0, len(values), _AMONG):
            some = values[begin : begin + _AMONG]
            rows += self.select(statement.format(",".join("?" * len(some))), *some)
        return rows

    def read_neighbours(self, hits: Sequence[PassageHit]) -> list[PassageHit]:
        """Return the passages before and after each hit, in the same document."""
        beside = [row for hit in hits for row in (hit.row - 1, hit.row + 1)]
        names = {hit.row: hit.name for hit in hits}
        read = self.read_hits([Ranked(row, 0, 0.0) for row in dict.fromkeys(beside)])
        return [hit for hit in read if hit.name in (names.get(hit.row - 1), names.get(hit.row + 1))]

    def read_hits(self, order: Sequence[Ranked]) -> list[PassageHit]:
        """Return the passages of an order."""
        statement = (
            "SELECT p.rowid, f.name, f.title, p.place, p.heading, p.text, p.span, f.series, f.date FROM passages p"
            " JOIN files f ON f.id = p.file WHERE p.rowid IN ({})"
        )
        rows = {row[0]: row for row in self.select_among(statement, [ranked.row for ranked in order])}
        issues: dict[str, dict[str, str]] = {}  # the dates of all vintages of a series, by the names of their files
        statement = "SELECT series, name, date FROM files WHERE series IN ({})"
        for series, name, date in self.select_among(statement, list({row[7] for row in rows.values() if row[7]})):
            issues.setdefault(series, {})[name] = date
        hits: list[PassageHit] = []
        for ranked in order:
            if ranked.row in rows:  # another process may have replaced the document meanwhile
                _, name, title, *piece, series, date = rows[ranked.row]
                dates = issues.get(series, {})
                newest = max(dates, key=lambda other: sort_key(dates[other])) if len(dates) > 1 else ""
                issue = Issue(date, len(dates), "" if dates[newest] == date else newest) if newest else None
                hits.append(PassageHit(name, title, Piece(*piece), ranked.score, ranked.row, issue))
        return hits

    def notes(self) -> dict[str, str]:
        """Return the note of each file that has one, by its path."""
        return dict(self.select("SELECT path, note FROM files WHERE note <> '' ORDER BY name"))

    def entry(self, name: str) -> IndexedFile | None:
        rows = self.select(
            "SELECT f.path, f.size, f.changed, f.digest, f.title, f.note, p.place, p.heading, p.text, p.span"
            " FROM files f LEFT JOIN passages p ON p.rowid BETWEEN f.first AND f.first + f.count - 1"
            " WHERE f.name = ? ORDER BY p.rowid",
            name,
        )
        if not rows:
            return None
        path, size, changed, digest, title, note = rows[0][:6]
        pieces = tuple(Piece(*row[6:]) for row in rows if row[8] is not None)
        return IndexedFile(path, name, Stamp(size, changed, digest), title, note, pieces)

    def take_new(self, lines: Sequence[str]) -> list[str]:
        """Return the lines that the last call did not have."""
        known = {line for (line,) in self.select("SELECT line FROM warned")}

        def change(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM warned")
            db.executemany("INSERT INTO warned VALUES (?)", [(line,) for line in lines])

        if known != set(lines):
            self.write(change)
        return [line for line in lines if line not in known]

    def close(self) -> None:
        with self._lock:
            self._db.close()


def open_store(file: Path | None) -> Store:
    """Open the store in this file (None: in memory). Its `trouble` says why another place had to be used.

    A damaged file is replaced: all its content can be read again from the documents.
    """
    if file is None:
        return Store(None)
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch(mode=0o600)
        file.chmod(0o600)  # for an index from an earlier version
        try:
            return Store(file)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            remove_index(file)
            file.touch(mode=0o600)
            return Store(file)
    except (OSError, sqlite3.Error) as error:
        return Store(None, _describe_trouble(file, error))


def remove_index(file: Path) -> None:
    """Remove the file of an index and the two that SQLite keeps next to it."""
    for name in (file.name, f"{file.name}-wal", f"{file.name}-shm"):
        file.with_name(name).unlink(missing_ok=True)


def _describe_trouble(file: Path, error: Exception) -> str:
    return f"the index cannot be kept in {file} ({error}); it is kept in memory for this run"


def _connect(file: Path | None) -> sqlite3.Connection:
    db = sqlite3.connect(file or ":memory:", timeout=_WAIT, isolation_level=None, check_same_thread=False)
    try:
        # two processes may switch a new file at once; the second one finds it switched
        with suppress(sqlite3.OperationalError):
            db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.executescript(f"BEGIN IMMEDIATE;{_SCHEMA}COMMIT;")
    except sqlite3.Error:
        db.close()
        raise
    return db


def delete_file(db: sqlite3.Connection, path: str) -> None:
    for identity, first, count in db.execute("SELECT id, first, count FROM files WHERE path = ?", (path,)).fetchall():
        db.execute("DELETE FROM passages WHERE rowid BETWEEN ? AND ?", (first, first + count - 1))
        if db.execute("DELETE FROM vectors WHERE row BETWEEN ? AND ?", (first, first + count - 1)).rowcount:
            db.execute("UPDATE encoder SET changes = changes + 1")
        db.execute("DELETE FROM files WHERE id = ?", (identity,))
        db.execute("DELETE FROM titles WHERE file = ?", (identity,))
