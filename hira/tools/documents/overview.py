"""Questions about the documents as a whole, which find their list and how they begin."""

import re
from pathlib import Path

from hira.core.bm25 import STOP
from hira.core.sources import LISTED, LISTING
from hira.evidence import Source
from hira.tools.documents.ranking import Ranked
from hira.tools.documents.store import PassageHit, Store

_LISTED = 60
"""Documents that the list names."""
_DOCUMENTS = frozenset(
    "document documents file files folder directory dokument dokumente dokumenten datei dateien ordner fichier fichiers"
    " dossier documento documentos archivo archivos carpeta".split()
)
_ASKS = frozenset(
    """documents files dokumente dokumenten dateien fichiers documentos archivos about have list there kind kinds
    topic topics subject subjects theme themes content contents contain cover deal discuss describe summary
    summarize summarise outline overview gist worum wovon handeln handelt habe gibt liste thema themen inhalt
    inhalte enthalten enthält steht stehen zusammen zusammenfassung überblick parle parlent traite traitent ai
    liste sujet thème résumé résume résumer aperçu contient contiennent trata tratan tengo hay lista tema temas
    resumen resume contiene contienen""".split()
)
"""Words that ask what the documents as a whole are about, or which ones there are. A plural alone is the query of a
role that looks for documents."""
_LIGHT = frozenset(
    """tell say show give please brief briefly short es in den die der das dem dies diese dieser diesen um was
    welche geht gehts ist sind ich hier gib mir einen bitte fasse kurz le la les de des du dans ces ce cet est
    sont quoi que quel quels moi donne el los las en estos este son qué cuáles sobre dame un una""".split()
)


def asks_overview(question: str) -> bool:
    """Return whether a question asks what the documents as a whole are about, or which ones there are, and nothing
    else: "What are these documents about?"."""
    asked = {*re.findall(r"[^\W_]+", question.lower())}
    only = asked - STOP <= _DOCUMENTS | _ASKS | _LIGHT and "not" not in asked
    return only and not (asked.isdisjoint(_DOCUMENTS) or asked.isdisjoint(_ASKS))


def survey(store: Store, paths: tuple[Path, ...], most: int) -> tuple[Source, list[PassageHit]]:
    """Return the list of the documents as a source, their number and the name and title of each; and the first passage
    of at most `most` documents, evenly spaced by name, none of them outdated."""
    rows = store.select("SELECT name, title FROM files ORDER BY name")
    lines = [name if title in ("", name) else f"{name}: {title}" for name, title in rows[:_LISTED]]
    more = [f"… and {len(rows) - _LISTED} more"] if len(rows) > _LISTED else []
    text = "\n".join([f"{LISTED} {len(rows)}.", *(f"- {line}" for line in lines), *more])
    listed = Source(", ".join(path.name or str(path) for path in paths), LISTING, text, "file")
    firsts = store.select("SELECT first, id FROM files WHERE count > 0 ORDER BY name")
    hits = store.read_hits([Ranked(first, file, 0.0) for first, file in firsts])
    newest = [hit for hit in hits if not (hit.issue and hit.issue.newest)]
    step = max(1.0, len(newest) / most)
    return listed, [newest[int(place * step)] for place in range(min(most, len(newest)))]
