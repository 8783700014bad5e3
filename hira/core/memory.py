"""The dual-channel memory (HiRA, "Dual-Channel Memory Mechanism"): facts with sources, resources with paths."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from hira.core.bm25 import BM25, stem, words
from hira.core.patterns import compile_lazily

NAMED = compile_lazily(
    r"\s*+[(（\[]\s*+sources?\s*+[:：]\s*+((?:[^()（）\[\]]|[(\[][^()（）\[\]]*+[)\]])*+)[)）\]]?", re.IGNORECASE
)
"""A source that a statement names in its own words, as memory names those that hira resolved."""
SIMILAR = 0.7
"""The share of the longer statement's tokens that precede and follow the one stretch in which two statements differ."""
_FAILED = frozenset(map(stem, ["fail", "failure", "error", "unable", "cannot", "timeout"]))
_JOINED = "; "
_QUOTES = "\"'“”„‘’«»"
_STOPS = ".,;:?…。，、；：？"
# A longer statement with one of these may say the opposite of its part.
_TURNING = frozenset(
    """not no never none nobody nothing neither nor cannot without hardly only except unless if whether until false
    falsely untrue wrong wrongly allegedly supposedly denies denied may might could would should""".split()
)


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
        """One line per entry, as a prompt shows it."""
        return list(map(_line, self.entries))

    def take(self, chosen: Iterable[int], most: int | None = None) -> "Recall":
        """Return the entries at the chosen positions, each once, in the order chosen, at most `most` of them."""
        return Recall(tuple(self.entries[index] for index in list(dict.fromkeys(chosen))[:most]))


def _line(entry: Fact | Resource) -> str:
    """Return the entry on one line, because a second one would count as another entry, with its resolved sources."""
    if isinstance(entry, Resource):
        line = f"{entry.description}: {entry.path}"
    else:
        line = f"{NAMED.sub('', entry.text)} (source: {', '.join(entry.sources) or 'inferred'})"
    return " ".join(line.split())


@dataclass(slots=True)
class DualMemory:
    """Facts and resources of one run, in the order of their arrival."""

    facts: list[Fact] = field(default_factory=list)
    resources: list[Resource] = field(default_factory=list)

    def add_fact(self, fact: Fact) -> bool:
        """Add the fact, unless its source has already stated it. Return whether memory has changed.

        No statement is lost, and none is ascribed to a source that does not make it.
        """
        for index, known in enumerate(self.facts):
            if _parts(known.text) == _parts(fact.text) and _share(known, fact):
                self.facts[index] = replace(known, sources=tuple(dict.fromkeys((*known.sources, *fact.sources))))
                return self.facts[index] != known
        if any(_holds(known, fact) for known in self.facts):
            return False
        if less := [index for index, known in enumerate(self.facts) if _holds(fact, known)]:
            self.facts[less[0]] = fact
            self.facts = [fact for index, fact in enumerate(self.facts) if index not in less[1:]]
            return True
        for index, known in enumerate(self.facts):
            if (known.sources, known.subtask) == (fact.sources, fact.subtask) and _alike(known, fact):
                self.facts[index] = replace(known, text=f"{known.text.removesuffix('.')}{_JOINED}{fact.text}")
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
    return (1.0 if fact.sources else 0.6) * (0.3 if _FAILED & set(words(fact.text)) else 1.0)


def tokens(statement: str) -> list[str]:
    """Return the words of a statement in order, without punctuation around them; signs stay with their number."""
    return [word.casefold() for word in _words(statement)]


def _words(statement: str) -> list[str]:
    bare = (word.lstrip(_QUOTES).rstrip(_QUOTES + _STOPS) for word in statement.replace("’", "'").split())
    return [word for word in bare if word]


def _parts(text: str) -> list[list[str]]:
    """Return the tokens of each statement of an entry."""
    return [tokens(part) for part in text.split(_JOINED)]


def _share(fact: Fact, other: Fact) -> bool:
    """Return whether both facts have a common source, or neither has any."""
    return bool(set(fact.sources) & set(other.sources)) or not (fact.sources or other.sources)


def _holds(more: Fact, less: Fact) -> bool:
    """Return whether one fact contains the other word for word, without reversing it, and has all of its sources."""
    if not _share(more, less) or not set(less.sources) <= set(more.sources):
        return False
    (wanted, *others), size = _parts(less.text), len(tokens(less.text))
    return not others and any(
        part[start : start + size] == wanted and not _turns_round([*part[:start], *part[start + size :]])
        for part in _parts(more.text)
        for start in range(len(part) - size + 1)
    )


def _alike(known: Fact, new: Fact) -> bool:
    """Return whether the new statement differs from one of the entry in a single short stretch that does not reverse
    it.

    Statements with another name or another number in that stretch are about something else.
    """
    theirs = _words(new.text)
    for part in known.text.split(_JOINED):
        ours = _words(part)
        front = _common(ours, theirs)
        back = _common(ours[front:][::-1], theirs[front:][::-1])
        mine, other = ours[front : len(ours) - back], theirs[front : len(theirs) - back]
        close = front + back >= SIMILAR * max(len(ours), len(theirs))
        if close and not (_has_mark(mine) and _has_mark(other)) and not _turns_round(mine + other):
            return True
    return False


def _common(first: Sequence[str], other: Sequence[str]) -> int:
    """Count the words with which both begin."""
    pairs = enumerate(zip(first, other, strict=False))
    return next((index for index, (a, b) in pairs if a.casefold() != b.casefold()), min(len(first), len(other)))


def _has_mark(tokens: Sequence[str]) -> bool:
    """Return whether any of the words is a name or has a digit."""
    return any(sign.isupper() or sign.isdigit() for word in tokens for sign in word)


def _turns_round(tokens: Sequence[str]) -> bool:
    return any(word.casefold() in _TURNING or word.casefold().endswith("n't") for word in tokens)
