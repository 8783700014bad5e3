"""What a folder holds, for a question about its documents as a whole: their list, and how they begin."""

from pathlib import Path

from hira.evidence import Source
from hira.tools.documents.ranking import Ranked
from hira.tools.documents.store import PassageHit, Store

_LISTED = 60
"""Documents that the list names."""


def list_documents(store: Store, paths: tuple[Path, ...]) -> Source:
    """Return the list of the documents as a source: their number, and the name and title of each."""
    rows = store.select("SELECT name, title FROM files ORDER BY name")
    lines = [name if title in ("", name) else f"{name}: {title}" for name, title in rows[:_LISTED]]
    more = [f"… and {len(rows) - _LISTED} more"] if len(rows) > _LISTED else []
    text = "\n".join([f"Documents in the folder: {len(rows)}.", *(f"- {line}" for line in lines), *more])
    return Source(", ".join(path.name or str(path) for path in paths), "List of the documents", text, "file")


def choose_beginnings(store: Store, most: int) -> list[PassageHit]:
    """Return the first passage of at most `most` documents, evenly spaced by name, none of them outdated."""
    rows = store.select("SELECT first, id FROM files WHERE count > 0 ORDER BY name")
    hits = store.read_hits([Ranked(first, file, 0.0) for first, file in rows])
    newest = [hit for hit in hits if not (hit.issue and hit.issue.newest)]
    step = max(1.0, len(newest) / most)
    return [newest[int(place * step)] for place in range(min(most, len(newest)))]
