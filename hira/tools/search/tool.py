"""The tools "search", "scholar" and "follow_citations", and the cache: nobody pays twice for one query in a day."""

import asyncio
import json
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from hira.core.concurrency import SingleFlight
from hira.core.errors import ToolDown, ToolError
from hira.core.events import Notice
from hira.core.sanitize import clean
from hira.core.tool import Observation, Passage, Tool, tool
from hira.evidence import Source
from hira.tools import LONGEST_QUERY
from hira.tools.addresses import canonicalise_url
from hira.tools.search.service import RETRACTED, Backend, Hit, Service, Unusable

# Hosts that publish the answers of benchmarks; MATPO keeps them out of its training and evaluation.
LEAKING = ("huggingface.co", "hf.co", "hf-mirror.com")

_DOI = re.compile(r"10\.\d{4,9}/[^\s<>\"]+")
_ARXIV = re.compile(
    r"(?:^|arxiv\.org/\w+/|arxiv:\s*)(\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v\d+)?(?:\.pdf)?$", re.IGNORECASE
)

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

    def get(self, query: str) -> list[Hit]:
        """Return the hits of a valid answer, [] without one."""
        rows: list[tuple[str]] = []
        with self._lock, suppress(sqlite3.Error):
            since = self.clock() - self.seconds
            rows = self._db.execute("SELECT hits FROM answers WHERE asked = ? AND at >= ?", (query, since)).fetchall()
        kept = [hit for (hits,) in rows for hit in json.loads(hits)]  # of an earlier version with more about each
        return [Hit(hit["title"], hit["url"], hit["snippet"], hit["date"], hit.get("quoted", True)) for hit in kept]

    def put(self, query: str, hits: list[Hit]) -> None:
        row = (query, self.clock(), json.dumps([asdict(hit) for hit in hits], ensure_ascii=False))
        with self._lock, suppress(sqlite3.Error):
            self._db.execute("REPLACE INTO answers VALUES (?, ?, ?)", row)

    def close(self) -> None:
        with self._lock:
            self._db.close()


def cache_search(backend: Backend, cache: Cache, place: str = "") -> Backend:
    """Return the service with its answers, unless empty, in the cache; `place` tells servers of one name apart."""

    async def ask(query: str, n: int) -> list[Hit]:
        key = spell_query(f"{backend.name} {place}", query, n)
        if kept := await asyncio.to_thread(cache.get, key):
            return kept
        if hits := await backend.search(query, n):
            await asyncio.to_thread(cache.put, key, hits)
        return hits

    return Service(backend.name, ask)


def share_search(backend: Backend, once: SingleFlight) -> Backend:
    """Return the service for several runs: equal queries are sent once. An answer without hits is not kept."""

    async def ask(query: str, n: int) -> list[Hit]:
        return await once(spell_query(backend.name, query, n), lambda: backend.search(query, n), bool)

    return Service(backend.name, ask)


def spell_query(name: str, query: str, n: int) -> str:
    """Return a key that ignores spaces and capitals for a query for `n` hits from the service `name`."""
    return json.dumps([name, " ".join(query.split()).casefold(), n], ensure_ascii=False)


async def _ask_in_turn(
    backends: Sequence[Backend], unusable: dict[int, Unusable], tell: Callable[[Notice], object], query: str, n: int
) -> list[Hit]:
    """Return the hits of the first service that answers; a notice reports one that fails."""
    failures: list[ToolError] = []
    for index, backend in enumerate(backends):  # two may have the same name
        if index in unusable:
            failures.append(unusable[index])
            continue
        try:
            return await backend.search(query, n)
        except ToolError as error:
            failures.append(error.with_traceback(None))  # kept without the frames that it went through
            if isinstance(error, Unusable):
                unusable[index] = error
        rest = range(index + 1, len(backends))
        following = next((backends[later].name for later in rest if later not in unusable), "")
        instead = f"; {following} is used instead" if following else ""
        tell(Notice(f"search: {failures[-1].what}{instead}"))
    kind = ToolDown if all(isinstance(error, ToolDown) for error in failures) else ToolError
    raise kind("no search service answers: " + "; ".join(error.what for error in failures))


def search_tool(
    backends: Sequence[Backend],
    *,
    top: int = 10,
    seen: set[str] | None = None,
    retracted: set[str] | None = None,
    on_notice: Callable[[Notice], object] = lambda _: None,
) -> Tool:
    """Create the tool "search" for one run over services in order of preference; if one fails, the next one answers.

    URLs of hits are added to `seen`, so that `browse` may open them, and those of retracted works to `retracted`.
    """
    from pydantic import Field

    if not backends:
        raise ValueError("a search needs at least one service")
    unusable: dict[int, Unusable] = {}

    async def search(
        query: Annotated[str, Field(description="what to look for, as one would type it into a search engine")],
    ) -> Observation:
        """Search the web. Returns titles, addresses and short extracts of the best pages; open a page to read it."""
        query = " ".join(query.split())
        if not query:
            raise ToolError("the query is empty; write what to look for")
        if len(query) > LONGEST_QUERY:
            sent = f"at most {LONGEST_QUERY} are sent; shorten it to key words"
            raise ToolError(f"the query has {len(query)} characters, {sent}")
        hits = await _ask_in_turn(backends, unusable, on_notice, query, top)
        note = "" if hits else f"nothing found; try other words for {clean(query)!r}"
        return show_hits(hits, note, top, seen, retracted)

    return tool(search, pure=True)


def scholar_tool(
    backends: Sequence[Backend],
    *,
    seen: set[str] | None = None,
    retracted: set[str] | None = None,
    on_notice: Callable[[Notice], object] = lambda _: None,
) -> Tool:
    """Create the tool "scholar": the same over services of scholarly works, with five hits per query (MARS, 2.1)."""
    shown = "titles, addresses and abstracts of those that fit best; open one to read it."
    search = search_tool(backends, top=5, seen=seen, retracted=retracted, on_notice=on_notice)
    return replace(search, name="scholar", description=f"Search scholarly works. Returns {shown}")


_WORKS = 10
"""The most works that a call of "follow_citations" lists."""


def citations_tool(backends: Mapping[str, Backend], *, seen: set[str], retracted: set[str] | None = None) -> Tool:
    """Create the tool "follow_citations" over the backends that find the work of a title ("match"), the works that
    cite a work ("citations") and those that it cites ("references")."""
    from pydantic import Field

    async def follow_citations(
        work: Annotated[str, Field(description="the DOI, the arXiv id or the exact title of a scholarly work")],
        direction: Annotated[
            Literal["references", "citations"],
            Field(description="references: the works that it cites; citations: the works that cite it"),
        ] = "references",
    ) -> Observation:
        """List the works that a scholarly work cites, or those that cite it: titles, addresses and abstracts."""
        work = " ".join(work.split())
        if not work or len(work) > LONGEST_QUERY:
            most = f"at most {LONGEST_QUERY} characters"
            raise ToolError(f"the work is named by its DOI, its arXiv id or its title, {most}")
        named = note = ""
        if (doi := _DOI.search(work)) and not {".", ".."} & set(doi[0].split("/")):
            named = f"DOI:{doi[0].rstrip('.,;')}"
        elif arxiv := _ARXIV.search(work):
            named = f"ARXIV:{arxiv[1]}"
        else:
            matches = await backends["match"].search(work.removeprefix(RETRACTED), 1)
            if not matches:
                raise ToolError(f"no work has the title {clean(work)!r}; give its DOI or arXiv id")
            named, note = matches[0].url.rpartition("/")[2], f"{direction} of {clean(matches[0].title)!r}"
        hits = await backends[direction].search(named, _WORKS)
        note = note if hits else f"{clean(work)!r} has no known {direction}"
        return show_hits(hits, note, _WORKS, seen, retracted)

    return tool(follow_citations, pure=True)


def show_hits(
    hits: Iterable[Hit], note: str, most: int, seen: set[str] | None, retracted: set[str] | None = None
) -> Observation:
    """Return at most `most` hits as passages, one per place, in the order of the first; of two snippets the longer.
    Only words of the page itself are evidence.

    Their addresses are added to those that may be opened (`seen`), those of retracted works to `retracted`.
    """
    places: dict[str, Hit] = {}
    for hit in hits:
        known = places.setdefault(canonicalise_url(hit.url), hit)
        if len(hit.snippet) > len(known.snippet):
            places[canonicalise_url(hit.url)] = replace(known, snippet=hit.snippet)
    passages: list[Passage] = []
    for url, hit in islice(places.items(), most):
        if seen is not None:
            seen.add(url)
        if retracted is not None and hit.title.startswith(RETRACTED):
            retracted.add(url)
        text = hit.snippet or hit.title
        source = Source(hit.url, hit.title, text if hit.quoted else hit.title, "hit", date=hit.date)
        passages.append(Passage(source, f"{hit.date[:10]}: {text}" if hit.date else text))
    return Observation(note, tuple(passages))
