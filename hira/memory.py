"""The dual-channel memory (HiRA, "Dual-Channel Memory Mechanism"): facts with sources, resources with paths."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hira.relevance import BM25, words

SIMILAR = 0.7
_NEGATED = re.compile(r"\b(?:not?|never|none|without)\b|n['’]t\b", re.IGNORECASE)
_DIGIT = re.compile(r"\d+(?:[.,]\d+)*")
_NAME = re.compile(r"(?<!^)\b[A-Z]\w+")
_FAILED = frozenset(["fail", "error", "unable", "cannot", "timeout"])


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement; `sources` are where it was read (ids such as `s3`, URLs, file names), empty for an inference."""

    text: str
    sources: tuple[str, ...] = ()
    subtask: str = ""


@dataclass(frozen=True, slots=True)
class Resource:
    """Something worth opening again: what it is, and its URL, path or variable name."""

    description: str
    path: str
    subtask: str = ""


@dataclass(frozen=True, slots=True)
class Recall:
    """What memory holds for a subtask, most relevant first."""

    facts: tuple[Fact, ...] = ()
    resources: tuple[Resource, ...] = ()

    def __len__(self) -> int:
        return len(self.facts) + len(self.resources)

    @property
    def lines(self) -> list[str]:
        """One line an entry, facts first: what a prompt shows."""
        facts = [f"{fact.text} (source: {', '.join(fact.sources) or 'inferred'})" for fact in self.facts]
        return facts + [f"{resource.description}: {resource.path}" for resource in self.resources]

    def take(self, chosen: Sequence[int]) -> "Recall":
        """The entries whose positions in `lines` were chosen, in the order chosen."""
        entries: list[Fact | Resource] = [*self.facts, *self.resources]
        kept = [entries[at] for at in dict.fromkeys(chosen)]
        return Recall(
            tuple(entry for entry in kept if isinstance(entry, Fact)),
            tuple(entry for entry in kept if isinstance(entry, Resource)),
        )


@dataclass(slots=True)
class DualMemory:
    """Facts and resources of one run, in the order in which they came."""

    facts: list[Fact] = field(default_factory=list)
    resources: list[Resource] = field(default_factory=list)

    def add_fact(self, fact: Fact) -> bool:
        """Keep the fact; a similar statement from the same source is merged into the older one. True if memory grew."""
        for at, known in enumerate(self.facts):
            shared = set(known.sources) & set(fact.sources) or not (known.sources or fact.sources)
            if shared and (merged := _merge(known.text, fact.text)):
                sources = tuple(dict.fromkeys((*known.sources, *fact.sources)))
                self.facts[at] = replace(known, text=merged, sources=sources)
                return self.facts[at] != known
        self.facts.append(fact)
        return True

    def add_resource(self, resource: Resource) -> bool:
        """Keep the resource unless its path is known already. True if memory grew."""
        if any(known.path == resource.path for known in self.resources):
            return False
        self.resources.append(resource)
        return True

    def recall(self, task: str, n: int) -> Recall:
        """The at most `n` entries most relevant to the task: BM25, weighted by quality.

        Entries that share no word with the task are left out, unless all entries fit into `n` anyway.
        """
        everything = Recall(tuple(self.facts), tuple(self.resources))
        lines = everything.lines
        quality = [*map(_quality, self.facts), *(1.0 for _ in self.resources)]
        scores = [score * worth for score, worth in zip(BM25(lines).scores(task), quality, strict=True)]
        order = sorted(range(len(lines)), key=lambda at: -scores[at])
        return everything.take(order if len(lines) <= n else [at for at in order if scores[at] > 0][:n])


def _quality(fact: Fact) -> float:
    """A fact with a source is worth more than an inference, a report of failure less (HiRA, memory quality)."""
    return (1.0 if fact.sources else 0.6) * (0.3 if _FAILED & set(words(fact.text)) else 1.0)


def _merge(known: str, new: str) -> str:
    """Two similar statements as one, nothing lost: the fuller one, or both. Empty if they are not similar.

    Statements that differ in a number, in a name, or in a negation are not similar, however many words they share.
    """
    ours, theirs = set(words(known)), set(words(new))
    if not ours or not theirs or bool(_NEGATED.search(known)) != bool(_NEGATED.search(new)):
        return ""
    for mark in (_DIGIT, _NAME):
        mine, others = set(mark.findall(known)), set(mark.findall(new))
        if not (mine <= others or others <= mine):
            return ""
    if theirs <= ours or ours < theirs:
        return known if theirs <= ours else new
    return f"{known}; {new}" if len(ours & theirs) / max(len(ours), len(theirs)) >= SIMILAR else ""
