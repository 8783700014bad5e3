"""Questions about the documents as a whole, which find their list and how they begin."""

import re
from pathlib import Path

from hira.core.bm25 import STOP
from hira.core.sources import LISTING
from hira.evidence import Source
from hira.tools.documents.ranking import Ranked
from hira.tools.documents.store import PassageHit, Store

_LISTED = 60
"""Documents that the list names."""
_DOCUMENTS = frozenset(
    "document documents file files folder directory dokument dokumente dokumenten datei"
    " dateien ordner fichier fichiers dossier documento documentos archivo archivos carpeta".split()
)
_OVERVIEW = frozenset(
    "    "
    """"text texts content contents contain contained include topic topics subject subjects theme themes cover
    covered deal discuss describe summary summarize summarise outline overview gist kind kinds main key tell say
    show list name give please brief briefly short available provided attached uploaded given whole entire um
    worum geht gehts es in den die der das dem dies diese dieser diesen was welche wovon handeln handelt ist sind
    ich habe hier gib mir einen bitte fasse zusammen zusammenfassung überblick inhalt inhalte thema themen enthält
    enthalten stehen steht le la les de des du dans ces ce cet est sont quoi que quel quels parle parlent traite
    traitent sujet thème moi donne résumé résume résumer aperçu contient contiennent el los las en estos este son
    es qué cuáles sobre trata tratan tema temas dame un una resumen contiene contienen""".split()
)
"""With the names of documents: all that is in a question about the documents as a whole."""


def asks_overview(question: str) -> bool:
    """Return whether a question asks about nothing but the documents as a whole: "What are these documents about?"."""
    asked = {word for word in re.findall(r"[^\W_]+", question.lower()) if word not in STOP}
    return not asked.isdisjoint(_DOCUMENTS) and asked <= _DOCUMENTS | _OVERVIEW


def survey(store: Store, paths: tuple[Path, ...], most: int) -> tuple[Source, list[PassageHit]]:
    """Return the list of the documents, and the first passages of at most `most` of them."""
    return _list_documents(store, paths), _choose_beginnings(store, most)


def _list_documents(store: Store, paths: tuple[Path, ...]) -> Source:
    """Return the list of the documents as a source: their number, and the name and title of each."""
    rows = store.select("SELECT name, title FROM files ORDER BY name")
    lines = [name if title in ("", name) else f"{name}: {title}" for name, title in rows[:_LISTED]]
    more = [f"… and {len(rows) - _LISTED} more"] if len(rows) > _LISTED else []
    text = "\n".join([f"Documents in the folder: {len(rows)}.", *(f"- {line}" for line in lines), *more])
    return Source(", ".join(path.name or str(path) for path in paths), LISTING, text, "file")


def _choose_beginnings(store: Store, most: int) -> list[PassageHit]:
    """Return the first passage of at most `most` documents, evenly spaced by name, none of them outdated."""
    rows = store.select("SELECT first, id FROM files WHERE count > 0 ORDER BY name")
    hits = store.read_hits([Ranked(first, file, 0.0) for first, file in rows])
    newest = [hit for hit in hits if not (hit.issue and hit.issue.newest)]
    step = max(1.0, len(newest) / most)
    return [newest[int(place * step)] for place in range(min(most, len(newest)))]
