"""A knowledge graph: entities and what they have to do with one another, from JSON lines or from RDF and OWL files.

A line of JSON is `{"subject": "…", "relation": "…", "object": "…"}`. RDF is read by `rdflib`: what is between two
entities, and the values of their properties; names are their labels, else the end of their IRI.
"""

import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hira.core.errors import UsageError
from hira.evaluation.files import rows_of

RDF = {".ttl": "turtle", ".nt": "nt", ".n3": "n3", ".rdf": "xml", ".owl": "xml", ".jsonld": "json-ld"}
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-]+")


@dataclass(frozen=True, slots=True, order=True)
class Fact:
    """Subject, relation, object. `value` where the object is a value, such as a year, which nothing goes on from."""

    subject: str
    relation: str
    object: str
    value: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """Facts of which each begins where the one before ends; no entity comes twice."""

    facts: tuple[Fact, ...]

    @property
    def start(self) -> str:
        return self.facts[0].subject

    @property
    def end(self) -> str:
        return self.facts[-1].object

    @property
    def between(self) -> tuple[str, ...]:
        """The entities that have to be found on the way."""
        return tuple(fact.object for fact in self.facts[:-1])


def facts_of(path: Path) -> list[Fact]:
    """The facts of a file, each once, in a fixed order. Raises `UsageError` for what cannot be read."""
    found = _rdf(path, RDF[path.suffix]) if path.suffix in RDF else _lines(path)
    if not found:
        raise UsageError("there are no facts", where=f"in {path}", fix="give relations between entities")
    return sorted(set(found))


def _lines(path: Path) -> list[Fact]:
    found = []
    for at, row in enumerate(rows_of(path), 1):
        parts = [str(row.get(name, "")).strip() for name in ("subject", "relation", "object")]
        if not all(parts):
            fix = 'each line is {"subject": "…", "relation": "…", "object": "…"}'
            raise UsageError("a fact lacks a part", where=f"line {at} of {path}", fix=fix)
        found.append(Fact(parts[0], parts[1], parts[2], value=bool(row.get("value", False))))
    return found


def _rdf(path: Path, form: str) -> list[Fact]:
    if find_spec("rdflib") is None:
        raise UsageError("rdflib is not installed", where=str(path), fix="pip install 'hira[curate]'")
    from rdflib import OWL, RDFS, Graph, Literal, URIRef
    from rdflib import RDF as TYPES

    graph = Graph()
    try:
        graph.parse(data=path.read_bytes(), format=form, publicID=path.resolve().as_uri())
    except OSError as error:
        raise UsageError(f"the graph cannot be read: {error.strerror}", where=str(path)) from None
    except Exception as error:  # noqa: BLE001 - each of rdflib's parsers has errors of its own
        first = str(error).strip().partition("\n")[0][:200]
        fix = f"the ending {path.suffix} stands for {form}"
        raise UsageError(f"the graph cannot be read: {first}", where=str(path), fix=fix) from None

    def name(node: Any) -> str:
        labels = sorted(graph.objects(node, RDFS.label), key=lambda one: (getattr(one, "language", "") != "en", one))
        return str(labels[0]).strip() if labels else _words(str(node))

    own = (str(OWL), str(RDFS), str(TYPES))
    found = []
    for subject, relation, thing in graph.triples((None, None, None)):
        if not isinstance(subject, URIRef) or str(relation).startswith(own):
            continue
        if isinstance(thing, Literal):
            found.append(Fact(name(subject), name(relation), str(thing).strip(), value=True))
        elif isinstance(thing, URIRef):
            found.append(Fact(name(subject), name(relation), name(thing)))
    return [one for one in found if one.subject and one.relation and one.object]


def _words(iri: str) -> str:
    """The end of an IRI as words: `…#discoveredBy` is "discovered by"."""
    end = re.split(r"[#/]", iri.rstrip("#/"))[-1]
    words = " ".join(part for part in _CAMEL.split(end) if part)
    return words if words[:1].isupper() else words.lower()


@dataclass(frozen=True, slots=True)
class Hops:
    """Paths of `least` to `most` facts. `unique` wants each step to be the only one of its relation from there, so that
    the end is the one answer; `branching` is the most facts that an entity on the way may have: through a country or a
    year everything is connected to everything."""

    least: int = 2
    most: int = 4
    unique: bool = True
    branching: int = 50

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise UsageError(f"there are no paths of {self.least} to {self.most} facts", fix="1 ≤ least ≤ most")


def paths(facts: Sequence[Fact], many: int, hops: Hops = Hops(), *, seed: int = 0, tries: int = 50) -> list[Chain]:
    """So many different paths, or as many as `tries` walks for each find; the same seed walks the same ones.

    A walk begins at any entity with equal chance and takes relations with equal chance, so that those with many objects
    do not crowd out the others.
    """
    onward: dict[str, list[Fact]] = defaultdict(list)
    only: dict[tuple[str, str], int] = defaultdict(int)
    for fact in sorted(set(facts)):
        onward[fact.subject].append(fact)
        only[fact.subject, fact.relation] += 1
    starts, chance = sorted(onward), random.Random(seed)  # noqa: S311 - walks that can be repeated
    found: dict[tuple[str, str], Chain] = {}
    for _ in range(many * tries if starts else 0):
        walked = _walk(chance, starts, onward, only, hops)
        if walked is not None:
            found.setdefault((walked.start, walked.end), walked)
        if len(found) == many:
            break
    return list(found.values())


def _walk(
    chance: random.Random,
    starts: Sequence[str],
    onward: Mapping[str, Sequence[Fact]],
    only: Mapping[tuple[str, str], int],
    hops: Hops,
) -> Chain | None:
    here, wanted = chance.choice(starts), chance.randint(hops.least, hops.most)
    seen, walked = {here}, list[Fact]()
    while len(walked) < wanted:
        if walked and len(onward.get(here, ())) > hops.branching:
            break
        choices: dict[str, list[Fact]] = defaultdict(list)
        for fact in onward.get(here, ()):
            if fact.object not in seen and not (hops.unique and only[fact.subject, fact.relation] > 1):
                choices[fact.relation].append(fact)
        if not choices:
            break
        walked.append(chance.choice(choices[chance.choice(sorted(choices))]))
        here = walked[-1].object
        seen.add(here)
        if walked[-1].value:
            break
    return Chain(tuple(walked)) if len(walked) >= hops.least else None
