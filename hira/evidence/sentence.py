"""A sentence of a text with what it leans on: headings, title, what its pronoun refers to, its label or its columns."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from hira.core.patterns import compile_lazily
from hira.evidence.passages import (
    CONDITIONS,
    IRREGULAR,
    LABEL,
    MONTHS,
    TRAIL,
    VOIDING,
    Passages,
    Word,
    begins_with_pointer,
    fold,
    is_related,
    is_row,
    is_taking_back,
    read_words,
)

if TYPE_CHECKING:
    from hira.evidence.cells import Cell

ANY_LINK = "*"
"""The link of a word that a question brings: how it is bound, the question does not say."""
_TIMES = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday weekend weekday spring summer autumn winter morning noon"
    " afternoon evening night midnight today yesterday tomorrow daily weekly monthly yearly annually century easter"
    " christmas never always montag dienstag mittwoch donnerstag freitag samstag sonntag frühling sommer herbst"
    " heute gestern morgen nie immer matin soir nuit hier demain jamais toujours hoy ayer mañana nunca siempre"
    " januar februar märz mai juni juli oktober dezember janvier février avril juin juillet août septembre octobre"
    " décembre enero febrero abril mayo junio julio agosto septiembre octubre noviembre diciembre".split()
)
TIME_UNITS = frozenset(
    fold(unit)
    for unit in "second minute hour day week month year decade century sekunde minuten stunde stunden tag tage woche"
    " wochen monat monate jahr jahre jahren heure jour semaine mois ans année".split()
)
"""Keys of the units of time."""
_PAST = frozenset("was were had did found left wurde wurden war waren hatte hatten était fut furent fue fueron".split())
_PAST_ENDING = compile_lazily(r"(?:[a-z]+[a-df-z]|[a-z]*(?:agr|decr|fr|nt)e)ed\Z(?<!hundred)")
"""The end of a regular past form: of "opened" and "agreed", not of "need"."""
VOIDING_ABOVE = VOIDING | frozenset(
    "former candidate candidates nominee nominees fiction fictional example examples idea ideas proposal proposals"
    " refused declined hypothetical scenario scenarios superseded obsolete outdated wishlist abgelehnte ehemalige"
    " frühere kandidaten beispiel beispiele ideen vorschläge".split()
)
"""Words of a heading below which nothing is said to be so."""
_STRUCK = compile_lazily(r"~~|\A>|\A[^\"“]*[.!?][\"”]\Z|\A(?:[-*+]\s+)?\[ \]\s|\A<!--|\Acolumns: A = ")
"""Marks of what is not said: struck out, quoted from another, not done yet, a comment, or the names of columns."""


@dataclass(frozen=True)
class Sentence:
    """A sentence of a text with what it leans on.

    `context` are the words of the title and of the file's name; `record` is the call that produced the text, if a tool
    or a program did.
    """

    passages: Passages
    place: int
    context: frozenset[str]
    record: frozenset[str] | None = None

    @property
    def text(self) -> str:
        return self.passages.sentences[self.place]

    @cached_property
    def words(self) -> list[Word]:
        return self.passages.words(self.place)

    @cached_property
    def keys(self) -> frozenset[str]:
        return frozenset(word.key for word in self.words)

    @cached_property
    def topic(self) -> frozenset[str]:
        """The keys of the headings and of the title."""
        headings = self.passages.list_headings(self.place)
        return self.context.union(word.key for place in headings for word in self.passages.words(place))

    @cached_property
    def is_denied(self) -> bool:
        """True if it is struck out or not done yet, or the next sentence takes it back: "This is a myth."."""
        if _STRUCK.search(self.text):
            return True
        following = self.passages.sentences[self.place + 1 : self.place + 2]
        return any(begins_with_pointer(other) and is_taking_back(read_words(other)) for other in following)

    @cached_property
    def is_past(self) -> bool:
        """True if a word tells that it is about the past, as far as words without grammar show it."""
        present = any(word.tense == "present" or is_condition(word) for word in self.words)
        words = pairwise([*self.words, Word("", "", "word")])
        past = any(is_past(word.text) and not (word.determined and after.close) for word, after in words)
        return not present and (past or not _PAST.isdisjoint(self.text.split()))

    @cached_property
    def conditions(self) -> set[str]:
        """The keys of conditions in headings ("Not allowed:"), and below the title of what takes back ("Cancelled")."""
        outermost = [-1, *self.passages.list_headings(self.place)][-1]
        is_title = outermost == 0 or len(self.above) > 1
        titled = is_title and not self.passages.sentences[outermost].startswith("##")
        below = self.above[:-1] if titled else self.above
        voids = {word.key for words in below for word in words if word.text.lower() in VOIDING_ABOVE}
        return voids.union(word.key for words in self.above for word in words if is_condition(word))

    @cached_property
    def above(self) -> list[list[Word]]:
        """The words of each heading above it, the nearest first: a line "Moss › Prices" has two."""
        places = self.passages.list_headings(self.place)
        trail = [part for place in places for part in reversed(self.passages.sentences[place].split(TRAIL))]
        return [read_words(part) for part in trail]

    @cached_property
    def request(self) -> str:
        """The key of its verb, if it tells a reader what to do: "Clean the filter". Else empty."""
        match = _REQUEST.match(self.text)
        return fold(match[1]) if match else ""

    def find_foreign(self, keys: Collection[str]) -> frozenset[str]:
        """Return the names above that a claim with these keys is not about, since it has neither the label nor the
        nearest heading where that is a name: under "Moss" nothing is said of the inn of the title."""
        nearest = [self.label, *self.above]
        for number, words in enumerate(nearest[:2]):
            if self.is_name(words) and {word.key for word in words}.isdisjoint(keys):
                above = {word.key for other in nearest[number + 1 :] for word in other if word.kind == "name"}
                return (self.context | above) - self.keys - {word.key for word in words}
        return frozenset()

    def find_other_subject(self, asked: Collection[str], start: int, *, by_name: bool) -> list[Word]:
        """Return the words of the subject of a sentence, or of its clause that begins at `start`, that are not `asked`:
        "café" of "The café closes at four" for "When does the library close?". With `by_name`, a name is one too."""
        is_sentence = self.text[-1] in ".!?" and not (self.is_row or self.value_start)
        if not is_sentence or _WITHOUT_SUBJECT.match(self.text) or _OBJECT.search(self.text):
            return []
        other: list[Word] = []
        for word in find_subject(self.words[start:]):
            known = is_related(word.key, asked)
            if is_past(word.text) or (known and word.close and word.text.endswith("s")):
                break
            light = word.kind == "number" or is_condition(word) or is_time(word.text)
            if not (known or light or (word.kind == "name" and not by_name)):
                other.append(word)
        return other

    def list_topics(self, subject: Sequence[Word]) -> frozenset[str]:
        """Return the keys of the title and the headings that have this subject: below "Lakeside Library", what a
        sentence says of the café says nothing of the library."""
        keys = {word.key for word in subject}
        lines = [self.context, *(frozenset(word.key for word in words) for words in self.above)]
        named = any(word.kind == "name" for word in subject)
        return frozenset().union(*(line for line in lines if keys <= line and not named)) if keys else self.topic

    def is_name(self, words: Sequence[Word]) -> bool:
        """Return whether the words of a heading or a label are a name that the text also has elsewhere, always
        capitalised. One word alone is a name within a sentence or as a label."""
        keys = [word.key for word in words]
        if not words or any(word.kind != "number" and word.text[0].islower() for word in words):
            return False
        named, headings = False, set(self.passages.list_headings(self.place))
        for place in self.passages.postings.get(keys[0], ()):
            if place == self.place:
                continue
            others, label = self.passages.words(place), LABEL.match(self.passages.sentences[place])
            found = [at for at, word in enumerate(others) if word.key == keys[0]]
            if any(others[at].text[0].islower() for at in found):
                return False
            alone = len(keys) > 1 or label or len(others) == len(keys)
            inside = [
                at for at in found if [word.key for word in others[at : at + len(keys)]] == keys and (at or alone)
            ]
            named = named or (bool(inside) and not (place in headings and inside[-1] == len(others) - len(keys)))
        return named

    @cached_property
    def antecedent(self) -> list[Word]:
        """The words of the sentence to which the pronoun refers."""
        place = self.passages.antecedents[self.place]
        return self.passages.words(place) if place >= 0 else []

    @cached_property
    def subject(self) -> frozenset[str]:
        """The keys of what its pronoun means."""
        return frozenset(word.key for word in find_subject(self.antecedent))

    @cached_property
    def leads(self) -> frozenset[str]:
        """The keys that may replace the subject of the sentence: of its antecedent, else of what is above it."""
        named = any(word.kind == "name" for word in find_subject(self.antecedent))
        return self.subject if named else self.topic | self.subject

    @cached_property
    def header(self) -> frozenset[str]:
        """The keys of the names of a row's columns, and of the call that produced a result."""
        names = " ".join(cell.name for cell in self.cells) if self.is_row else ""
        return read_keys(names) | (self.record or frozenset())

    @cached_property
    def cells(self) -> "list[Cell]":
        return self.passages.read_cells(self.place)

    @cached_property
    def value_start(self) -> int:
        """The place of the first word after the label ("Price: 48 euros"), 0 without a label."""
        label = None if self.is_row else LABEL.match(self.text)
        return len(read_words(self.text[: label.end(1)])) if label else 0

    @cached_property
    def label(self) -> list[Word]:
        """The words of the label, without the number of its item."""
        label = None if self.is_row else LABEL.match(self.text)
        return self.words[len(read_words(self.text[: label.start(1)])) : self.value_start] if label else []

    @cached_property
    def is_row(self) -> bool:
        return is_row(self.passages.sentences[self.place])

    @cached_property
    def around(self) -> frozenset[str]:
        """All keys that count with the sentence without being in it."""
        return self.topic | self.subject | self.header

    @cached_property
    def positions(self) -> dict[str, list[int]]:
        by_key: dict[str, list[int]] = {}
        for place, word in enumerate(self.words):
            by_key.setdefault(word.key, []).append(place)
        return by_key


_WITHOUT_SUBJECT = compile_lazily(
    r"\W*(?:yes|no|ja|nein|please|bitte|we|you|i|they|he|she|it|this|these|there|here|wir|sie|er|es|ich|dies\w*|nous|vous|ils?|elles?|hay)\b",
    re.IGNORECASE,
)
"""The beginning of a sentence whose subject is what the text is about, or its reader."""
_REQUEST = compile_lazily(
    r"(?:[-*+•]\s+|\d+[.)]\s+)?(?:(?:please|do not|don['’]t|never|always) )*([^\W\d_]+)"
    r" (?:the|an?|your|any\w*|all|it|them)\b",
    re.IGNORECASE,
)
_OBJECT = compile_lazily(r"\b(?:it|its|them|their|him|his|her)\b")


def read_keys(text: str) -> frozenset[str]:
    """Return the keys of the content words of a text."""
    return frozenset(word.key for word in read_words(text))


def find_subject(words: Sequence[Word]) -> list[Word]:
    """Return the words of a sentence up to its verb, as far as words without grammar show it."""
    start = 0
    if words and words[0].link in ("in", "after", "before", "by", "for", "with"):  # "In 1912, Anna opened …"
        start = next((place for place, word in enumerate(words) if place and word.marked), len(words))
    subject: list[Word] = []
    for word in words[start:]:
        verb = subject and word.close and subject[-1].kind == "name" and word.kind == "word"
        if subject and (word.marked or word.link not in ("", "of", "in", "for", "near") or verb):
            break
        subject.append(word)
    return subject


def is_past(word: str) -> bool:
    """Return whether a word is a past form of a verb, as far as that shows in the word."""
    return word in IRREGULAR or _PAST_ENDING.match(word) is not None


def is_time(word: str) -> bool:
    """Return whether a word names a day, a season or another time."""
    lower = word.lower()
    return not _TIMES.isdisjoint((lower, lower.removesuffix("s")))


def is_condition(word: Word) -> bool:
    """Return whether a statement with this word says something else without it. The month of May is no condition."""
    if word.kind == "number":
        return False
    lower = word.text.lower()
    return lower in CONDITIONS or lower.endswith(("n't", "n’t")) or (word.dense and word.text[0] in CONDITIONS)


def is_day(words: Sequence[Word]) -> bool:
    """Return whether the first of two words is the day of a month: "4" of "4 May"."""
    word, *rest = words
    named = [after for after in rest if after.close and after.kind != "word"]
    month = any(after.key in MONTHS or is_time(after.text) for after in named)
    return month and word.text.rstrip(".").isdecimal() and len(word.text) < 4
