"""A question taken apart, and how well a sentence answers it: the share of its words that stand there, and the kind."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hira.policies.offline import plain
from hira.policies.offline.kinds import (
    PAID,
    acts,
    defines,
    denies,
    did,
    does,
    fits,
    holds_office,
    kind,
    measured,
    measures,
    sized,
    term,
)
from hira.policies.offline.sentences import ASKS, PAIR, ROW, Sentence, points_back
from hira.policies.offline.succession import RELATING, Order, order
from hira.policies.offline.table import EXTREMES, operation
from hira.policies.offline.wording import category, folded, holds, keywords, names, numbers, words
from hira.relevance import BM25

ENOUGH = 0.6
"""The least share of the question's weight that has to stand in a sentence and around it.

Chosen on 190 questions of our own, 48 of them without an answer: none of these is answered at this value
(benchmarks/results/offline.md).
"""
ENOUGH_REST = 0.55
"""The same without its names: what is asked about them."""
BESIDE = 0.5
"""What a word is worth that stands beside a sentence and not in it."""
PATH = " › "
"""Stands between the headings above a text."""
_SUBJECT = re.compile(r"(?:(?:The|An?) (?:[a-z-]+ ){1,2})?((?:The |An? )?[A-Z][\w’'-]+(?: [A-Z][\w’'-]+)*)")
_VERSION = frozenset(words("version release"))
_STARTS = frozenset(words("However Both First Then Two Three Today Here Finally Additionally"))
_ARTICLE = re.compile(r"^\W*(?:what(?: is|[’']s) an? |define\b|what does\b)", re.IGNORECASE)
_INTRODUCED = re.compile(r"\W*(?:The |An? )?[A-Z][\w’'.-]*(?: [\w’'.-]+){0,3}?(?::| (?:is|was|are|were)\b)")
"""How a sentence begins that answers a question of nothing but names: "What does Ruth have to do?"."""
_EXTREME = re.compile(
    r"\b(?:most|least|first|last|top|record|maximum|minimum|only|than (?:any|all)|\w{2,}est)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Query:
    """A question taken apart: what each of its words weighs, which are names, and which have to be covered."""

    text: str
    kind: str
    weights: dict[str, float]
    names: frozenset[str]
    rest: tuple[str, ...]
    measures: frozenset[str]
    category: frozenset[str]
    term: str
    words: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    order: Order | None

    def coverage(self, one: Sentence, near: Mapping[str, float]) -> float:
        """The share of the question that stands in a sentence and around it: of all of it, and of all but its names.

        `near` says how near each of the question's words stands.
        """
        parts = [self._share(near, self.weights), self._share(near, self.rest) * ENOUGH / ENOUGH_REST]
        if self.measures:
            parts.append(
                1.0
                if measures(self.measures, one.text, one.own)
                or sized(self.text, one.text)
                or (self.kind == "duration" and fits(self.kind, one.text, self.text))
                else 0.5
                if self.measures & one.beside
                else 0.0
            )
        return min(parts)

    def tells(self, one: Sentence) -> bool:
        """Whether the sentence says anything: no question, no code, and not only what the question says itself."""
        if ASKS.search(one.text) or plain.is_code(one.raw) or not one.own - self.words:
            return False
        if PATH in one.text:
            return False
        return self._superlative(one) and self._in_form(one) and (denies(one.text) or not denies(self.text))

    def headed(self, one: Sentence) -> bool:
        """Whether the heading above a list's item tells what is asked for and the item does not: a date, a version."""
        if not one.listed or not re.search(r"\d", one.section):
            return False
        if self.category & _VERSION:
            return True
        return self.kind == "date" and not fits("date", one.text, self.text) and fits("date", one.section, self.text)

    def says(self, one: Sentence) -> bool:
        """Whether all that is asked, but for the noun of "which …" and names, stands in the sentence itself."""
        return all(holds(word, one.own) for word in self.rest if word not in self.category)

    def _done(self, one: Sentence) -> bool:
        """Whether a sentence says of whom is asked what is asked that they did."""
        if ROW in one.raw:  # a row tells no deeds
            return True
        if self.kind:
            return self.kind == "money" or does(self.text, one.own | one.beside)
        if not self.rest and not self._introduced(one):
            return False
        if acts(self.text) and not self.names & one.own and (others := subject(one)) and not others & self.names:
            return False
        return does(self.text, one.own | one.asked)

    def _introduced(self, one: Sentence) -> bool:
        """Whether a sentence begins with the name that is all there is to a question."""
        match = _INTRODUCED.match(one.text)
        return match is not None and self.names <= set(words(match[0]))

    def _superlative(self, one: Sentence) -> bool:
        """Whether a sentence speaks of a most or a least where one is asked for; a row may."""
        return operation(self.text) not in EXTREMES or ROW in one.raw or bool(_EXTREME.search(one.text))

    def _in_form(self, one: Sentence) -> bool:
        """Whether a sentence says what the form of the question asks for: a definition, an order, an office, a deed."""
        if self.term and _ARTICLE.search(self.text) and not defines(one.text, self.term):
            return False
        if self.kind == "money" and not any(holds(word, one.own) for word in self.words):
            return False
        if not self._done(one):
            return False
        if self.order:
            return self.order.told(f"{one.before} {one.text}" if points_back(one.text) else one.text, self.text)
        return self.kind != "person" or (holds_office(one.text, self.text) and did(self.text, one.own | one.beside))

    def score(self, one: Sentence, near: Mapping[str, float]) -> float:
        back = 0.9 if points_back(one.text) else BESIDE
        inside = {
            word: max(holds(word, one.own), (back if word in self.names else BESIDE) * near[word])
            for word in self.weights
        }
        score = 0.25 * self._share(inside, self.names) + 0.75 * self._share(inside, self.rest)
        score += 0.25 * fits(self.kind, one.text, self.text) if self.kind else 0.0
        score += 0.4 * bool(self.term and defines(one.text, self.term))
        score += 0.2 * measures(self.measures, one.text, one.own) + 0.15 * bool(self.category & one.own)
        score += 0.06 * min(3, len(self.pairs & set(pairwise(one.order))))
        bare = len(one.own) < 3 or one.raw.startswith("#") or one.text.endswith(":")
        return score - 0.2 * bare - 0.1 * (len(one.own) > 60)

    def near(self, word: str, one: Sentence) -> float:
        """How near a word stands to a sentence: in it, beside it; names also in what it goes on from, or around it."""
        if word not in self.names:
            return max(holds(word, one.own), holds(word, one.beside))
        if own := holds(word, one.own):
            return own
        other = 0.4 if subject(one) - self.words else 1.0
        dated = other if self.kind in ("date", "number") else 1.0
        far = (other if self.kind == "person" else dated) * 0.35 * holds(word, one.around)
        return max(dated * 0.8 * holds(word, one.earlier), dated * 0.6 * holds(word, one.title), far)

    def _share(self, held: Mapping[str, float], of: Iterable[str]) -> float:
        total = sum(self.weights[word] for word in of)
        return sum(self.weights[word] * held[word] for word in of) / total if total else 1.0


def subject(one: Sentence) -> set[str]:
    """The stems of the name that a sentence begins with, or the paragraph of one that points back or names nothing."""
    first, _, below = one.paragraph.partition("\n")
    headed = below and (PATH in first or first == one.passage.title)  # a search shows the heading above the text
    for text in (one.text, below if headed else one.paragraph):
        begins = _SUBJECT.match(text)
        if begins and not points_back(text) and (own := set(keywords(begins[1])) - _STARTS):
            return own
    return set()


def query(question: str, candidates: Sequence[Sentence]) -> Query:
    """Rare words weigh more (BM25's weight), names and numbers half as much again, the noun of "which …" less."""
    asked, noun = keywords(question), category(question)
    if kind(question) == "money":  # a sum says by itself that it is paid
        asked = [word for word in asked if word not in PAID] or asked
    wanted = order(question)
    if wanted:
        asked = [word for word in asked if word not in RELATING]
    marked = names(question) & set(asked)
    collection = BM25([folded(one.text) for one in candidates])
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
        frozenset(noun),
        term(question),
        frozenset(words(question)),
        frozenset(pairwise(words(question))),
        wanted,
    )


def best(asked: Query, candidates: Sequence[Sentence]) -> list[tuple[float, float, Sentence]]:
    """Sentences with (score, coverage), best first, earlier first among equals."""
    if not asked.weights:
        return []
    ranked = []
    for one in candidates:
        near = {word: asked.near(word, one) for word in asked.weights}
        ranked.append((asked.score(one, near), asked.coverage(one, near), one))
    return sorted(ranked, key=lambda entry: -entry[0])


def bare_row(one: Sentence) -> bool:
    """Whether a sentence is a row of a table in Markdown with more than a name and a value: cells without names."""
    cells = [cell for cell in one.raw.strip("| ").split("|") if cell.strip()]
    return one.raw.startswith("|") and len(cells) > PAIR and not any(len(cell.split()) > PAIR + 2 for cell in cells)
