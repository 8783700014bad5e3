"""The dual-channel memory (HiRA, "Dual-Channel Memory Mechanism"): facts with sources, resources with paths."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from hira.core.bm25 import BM25, words
from hira.core.patterns import compile_lazily

NAMED = compile_lazily(
    r"\s*+[(（\[]\s*+sources?\s*+[:：]\s*+((?:[^()（）\[\]]|[(\[][^()（）\[\]]*+[)\]])*+)[)）\]]?", re.IGNORECASE
)
"""A source that a statement names in its own words, as memory names those that hira resolved."""
_FAILED = "fail failure error unable cannot timeout"


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement; `sources` names where it was read (ids such as `s3`, URLs, file names), empty for an inference."""

    text: str
    sources: tuple[str, ...] = ()
    subtask: str = ""


@dataclass(frozen=True, slots=True)
class Resource:
    """Something worth opening again: what it is, and its URL or path."""

    description: str
    path: str
    subtask: str = ""


@dataclass(frozen=True, slots=True)
class Recall:
    """The entries of memory for a subtask, most relevant first: facts and resources in one ranking."""

    entries: tuple[Fact | Resource, ...] = ()

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def lines(self) -> list[str]:
        """One line per entry, as a prompt shows it: a second one would count as another entry."""
        lines = []
        for entry in self.entries:
            if isinstance(entry, Resource):
                line = f"{entry.description}: {entry.path}"
            else:
                line = f"{NAMED.sub('', entry.text)} (source: {', '.join(entry.sources) or 'inferred'})"
            lines.append(" ".join(line.split()))
        return lines

    def take(self, chosen: Iterable[int], most: int | None = None) -> "Recall":
        """Return the entries at the chosen positions, each once, in the order chosen, at most `most` of them."""
        return Recall(tuple(self.entries[index] for index in list(dict.fromkeys(chosen))[:most]))


@dataclass(slots=True)
class DualMemory:
    """Facts and resources of one run, in the order of their arrival."""

    facts: list[Fact] = field(default_factory=list)
    resources: list[Resource] = field(default_factory=list)

    def add_fact(self, fact: Fact) -> bool:
        """Add the fact, unless its source has already stated it. Return whether memory has changed.

        No statement is lost, and none is ascribed to a source that does not make it.
        """
        from hira.core.statements import JOINED, is_alike, split_tokens  # many runs have no facts

        for index, known in enumerate(self.facts):
            if split_tokens(known.text) == split_tokens(fact.text) and _share(known, fact):
                self.facts[index] = replace(known, sources=tuple(dict.fromkeys((*known.sources, *fact.sources))))
                return self.facts[index] != known
        if any(_holds(known, fact) for known in self.facts):
            return False
        if less := [index for index, known in enumerate(self.facts) if _holds(fact, known)]:
            self.facts[less[0]] = fact
            self.facts = [fact for index, fact in enumerate(self.facts) if index not in less[1:]]
            return True
        for index, known in enumerate(self.facts):
            if (known.sources, known.subtask) == (fact.sources, fact.subtask) and is_alike(known.text, fact.text):
                self.facts[index] = replace(known, text=f"{known.text.removesuffix('.')}{JOINED}{fact.text}")
                return True
        self.facts.append(fact)
        return True

    def add_resource(self, resource: Resource) -> bool:
        """Add the resource unless its path is known already. Return whether memory grew."""
        if any(known.path == resource.path for known in self.resources):
            return False
        self.resources.append(resource)
        return True

    def recall(self, task: str, n: int) -> Recall:
        """Return at most `n` entries, the most relevant to the task: BM25, weighted by quality.

        Entries that share no word with the task are left out, unless all entries fit into `n` anyway.
        """
        everything = Recall((*self.facts, *self.resources))
        lines = everything.lines
        quality = [*map(_quality, self.facts), *(1.0 for _ in self.resources)]
        scores = [score * worth for score, worth in zip(BM25(lines).scores(task), quality, strict=True)]
        order = sorted(range(len(lines)), key=lambda index: -scores[index])
        return everything.take(order if len(lines) <= n else [index for index in order if scores[index] > 0][:n])


def _quality(fact: Fact) -> float:
    """Weigh a fact: a source counts more than an inference, a report of failure less (HiRA, memory quality)."""
    return (1.0 if fact.sources else 0.6) * (0.3 if {*words(_FAILED)} & {*words(fact.text)} else 1.0)


def _share(fact: Fact, other: Fact) -> bool:
    """Return whether both facts have a common source, or neither has any."""
    return bool(set(fact.sources) & set(other.sources)) or not (fact.sources or other.sources)


def _holds(more: Fact, less: Fact) -> bool:
    """Return whether one fact contains the other word for word, without reversing it, and has all of its sources."""
    from hira.core.statements import contains

    return _share(more, less) and set(less.sources) <= set(more.sources) and contains(more.text, less.text)
