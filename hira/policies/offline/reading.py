"""Finding the sentence that answers a question in passages that were read, or finding that there is none.

A sentence is scored by the share of the question's words that it and its neighbours hold (rare words weigh more, BM25's
weight), and by whether it holds something of the kind that is asked for: a number, a date, a name, a place. It answers
only if what stands around it covers enough of the question, every name and number of the question included.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hira.policies.offline.wording import category, exact, fits, holds, keywords, kind, measured, names, numbers
from hira.relevance import BM25, words

ENOUGH = 0.6
"""The least share of the question's weight that has to stand in a sentence, its neighbours and its title."""
ENOUGH_REST = 0.55
"""The same without its names: what is asked about them."""
BESIDE = 0.5
"""What a word is worth that stands beside a sentence and not in it."""
ROW = " | "

_HEADER = re.compile(r"^\[(s\d+)\] (.*) \(([^()\n]*)\)$", re.MULTILINE)
_END = re.compile(r"(?<=[.!?])[\"”’)\]]*\s+(?=[\"“(\[]?[A-Z0-9À-Þ])|(?<=[。！？；])")
_ABBREVIATED = re.compile(
    r"(?:\b[A-Z]|\b(?:e\.g|i\.e|al|Dr|Mr|Mrs|Ms|Prof|St|Figs?|Eqs?|No|vs|cf|Sec|ca|approx|Jr|Sr))\.$"
)
_OPEN = re.compile(r"[\w,;(–-]$")
_ITEM = re.compile(r"^\s*(?:[-*•‣#>]|\d{1,3}[.)]\s|\[)")
_HEADING = re.compile(r"^#|›|\|")
_WRAPPED = 60
_BACK = re.compile(r"(?:It|He|She|They|This|These|Its|His|Her|Their)\b|[它他她]")
_NOTE = re.compile(r"^(.*) \(source: (s\d+)[^()]*\)$")


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a source as it was shown: `id` is what to cite, `location` where it lies."""

    id: str
    title: str
    location: str
    text: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence or a row of a table, the one `before` it; its words, those `beside` it, all of its passage's."""

    text: str
    before: str
    passage: Passage
    own: frozenset[str]
    beside: frozenset[str]
    around: frozenset[str]


@dataclass(frozen=True, slots=True)
class Found:
    """The sentence that answers, and the share of the question that it covers."""

    sentence: Sentence
    coverage: float

    @property
    def text(self) -> str:
        """The sentence with its id, as an answer cites it; with the one before it, if it points back there."""
        one = self.sentence
        lead = f"{one.before} " if _BACK.match(one.text) and one.before.endswith((".", "。")) else ""
        return f"{lead}{one.text} [{one.passage.id}]"


def passages(text: str) -> list[Passage]:
    """The passages in a result, each once; empty if it holds none."""
    heads = list(_HEADER.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    found = [
        Passage(head[1], head[2], head[3], text[head.end() : end].strip())
        for head, end in zip(heads, ends, strict=False)
    ]
    return list(dict.fromkeys(found))


def noted(notes: Sequence[str]) -> list[Passage]:
    """The recalled notes that name a source, as passages of it."""
    return [Passage(match[2], "", "", match[1]) for note in notes if (match := _NOTE.match(note))]


def split(text: str) -> list[str]:
    """The sentences of a text; a row of a table, an item and a heading stand alone, broken lines are joined."""
    lines: list[str] = []
    for line in (line.strip() for line in text.splitlines()):
        wrapped = lines and len(lines[-1]) >= _WRAPPED and _OPEN.search(lines[-1]) and not _HEADING.search(lines[-1])
        if wrapped and line and ROW not in line and not _ITEM.match(line):
            lines[-1] = f"{lines[-1]} {line}"
        else:
            lines.append(line)
    found: list[str] = []
    for line in filter(None, lines):
        parts = [line] if ROW in line else [part.strip() for part in _END.split(line) if part and part.strip()]
        for at, part in enumerate(parts):
            if at and _ABBREVIATED.search(found[-1]):
                found[-1] = f"{found[-1]} {part}"
            else:
                found.append(part)
    return found


def sentences(read: Sequence[Passage]) -> list[Sentence]:
    """Every sentence of the passages once, in order."""
    found: dict[tuple[str, str], Sentence] = {}
    for passage in read:
        texts = split(passage.text)
        held = [frozenset(words(text)) for text in texts]
        title = frozenset(words(passage.title))
        around = title.union(*held)
        for at, (text, own) in enumerate(zip(texts, held, strict=True)):
            near = title.union(*held[max(0, at - 1) : at], *held[at + 1 : at + 2])
            found.setdefault(
                (passage.id, text), Sentence(text, texts[at - 1] if at else "", passage, own, near - own, around)
            )
    return list(found.values())


@dataclass(frozen=True, slots=True)
class Query:
    """A question taken apart: what each of its words weighs, which are names, and which have to be covered."""

    text: str
    kind: str
    weights: dict[str, float]
    names: frozenset[str]
    rest: tuple[str, ...]
    measures: frozenset[str]
    pairs: frozenset[tuple[str, str]]

    def coverage(self, one: Sentence) -> float:
        """The share of the question that stands in a sentence and around it: of all of it, and of all but its names."""
        near = {word: self.near(word, one) for word in self.weights}
        parts = [self._share(near, self.weights), self._share(near, self.rest) * ENOUGH / ENOUGH_REST]
        if self.measures:
            parts.append(1.0 if self.measures & one.own else 0.5 if self.measures & one.beside else 0.0)
        return min(parts)

    def score(self, one: Sentence) -> float:
        inside = {word: max(holds(word, one.own), BESIDE * self.near(word, one)) for word in self.weights}
        score = self._share(inside, self.weights)
        score += 0.25 * fits(self.kind, one.text, self.text) if self.kind else 0.0
        score += 0.2 * bool(self.measures & one.own)
        score += 0.04 * min(3, len(self.pairs & set(pairwise(words(one.text)))))
        bare = len(one.own) < 3 or one.text.startswith("#") or one.text.endswith(("?", ":"))
        return score - 0.2 * bare - 0.1 * (len(one.own) > 60)

    def near(self, word: str, one: Sentence) -> float:
        """Whether a word stands beside a sentence; a name may stand anywhere in its passage."""
        return max(holds(word, one.own), holds(word, one.around if word in self.names else one.beside))

    def _share(self, held: dict[str, float], of: Iterable[str]) -> float:
        total = sum(self.weights[word] for word in of)
        return sum(self.weights[word] * held[word] for word in of) / total if total else 1.0


def query(question: str, candidates: Sequence[Sentence]) -> Query:
    """Rare words weigh more (BM25's weight), names and numbers half as much again, the noun of "which …" less."""
    asked, marked, noun = keywords(question), names(question), category(question)
    collection = BM25([one.text for one in candidates])
    most = max(map(collection.weight, asked), default=1.0)
    lifted = marked | numbers(question)
    weights = {
        word: (1 + collection.weight(word) / most) * (1.5 if word in lifted else 0.5 if word in noun else 1.0)
        for word in asked
    }
    rest = tuple(word for word in asked if word not in marked)
    return Query(
        question,
        kind(question),
        weights,
        frozenset(marked),
        rest,
        measured(question),
        frozenset(pairwise(words(question))),
    )


def best(question: str, read: Sequence[Passage]) -> list[tuple[float, float, Sentence]]:
    """Sentences with (score, coverage), best first, earlier first among equals."""
    candidates = sentences(read)
    if not keywords(question):
        return []
    asked = query(question, candidates)
    ranked = [(asked.score(one), asked.coverage(one), one) for one in candidates]
    return sorted(ranked, key=lambda entry: -entry[0])


def find(question: str, read: Sequence[Passage], enough: float = ENOUGH) -> Found | None:
    """The sentence that answers the question, None if the passages do not hold the answer.

    Every name of the question has to stand in the sentence's passage, and every number.
    """
    wanted, marked, figures = kind(question), names(question), numbers(question)
    literal = [re.compile(rf"(?<!\w){re.escape(name)}(?!\w)") for name in exact(question)]

    def answers(one: Sentence) -> bool:
        text = f"{one.passage.title}\n{one.passage.text}"
        named = all(holds(name, one.around) for name in marked) and all(form.search(text.lower()) for form in literal)
        return named and figures <= numbers(text)

    ranked = [entry for entry in best(question, read) if entry[1] >= enough and answers(entry[2])]
    fitting = [entry for entry in ranked if fits(wanted, entry[2].text, question)]
    if not ranked or (wanted in ("date", "number") and not fitting):
        return None
    _, coverage, top = (fitting or ranked)[0]
    return Found(top, coverage)
