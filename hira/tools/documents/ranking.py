"""The order of the passages that a search finds.

The words of the question give the first order (FTS5's BM25), an encoder may give a second one; reciprocal rank fuses
them. Of the first passages at most four are of one document, the newest vintage of a document precedes older ones, and
the last places go to documents that the best passages mention by title, and to passages that share words with the
question and a name with the best passage: questions often need the second document that the first one names.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile, groupby
from pathlib import PurePosixPath
from typing import NamedTuple, TypeVar

from hira.core.bm25 import words

T = TypeVar("T")
MOST_OF_ONE = 4
"""Passages of one document among the first; others follow only if no other document has any."""
MENTIONING = 3
"""The best passages, in which titles are looked for."""
SHARE_OF_LINKED = 0.4
"""Places among the first that go to what the best passages name."""
_LONGEST_TITLE = 8
"""Words of a title that is looked for."""
_AMBIGUOUS = 3
"""A title of more documents names none of them."""
_CLOSE = 0.8
"""Vintages score alike; a passage that scores less than this share of another says something else."""
_CONSTANT = 60
"""Of reciprocal rank fusion (Cormack et al., 2009)."""
NEAR_CONSTANT = 10
"""The constant with which an encoder's order joins that of the words: what one of them puts first stays among the ten.
It was chosen on the questions of `benchmarks/retrieval.py` that may be looked at."""
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_GAP = re.compile(r"[^\w '’-]+|\n")
_MOST_NAMES = 32
_ADDED = re.compile(r"\s*\([^()]*\)\s*$")
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_MONTH_NAMES = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_DATE = re.compile(
    r"(?<!\d)(?P<year>(?:19|20)\d\d)(?:[-_. ]?(?P<month>0[1-9]|1[0-2])(?:[-_. ]?(?P<day>0[1-9]|[12]\d|3[01]))?)?(?!\d)"
    r"|(?<![^\W_])q(?P<quarter>[1-4])(?!\d)"
    rf"|(?<![^\W\d_])(?P<name>{_MONTH_NAMES})(?![^\W\d_])"
    r"|(?<![^\W_])v(?:ersion)?[-_. ]?(?P<version>\d{1,4})(?![^\W_])",
    re.IGNORECASE,
)
_STATE = re.compile(r"(?<![^\W_])(?:superseded|final|draft|old|latest|updated|archived?)(?![^\W_])", re.IGNORECASE)


class Ranked(NamedTuple):
    """A passage in an order: its row, its file, and its score by words, 0 if it shares none."""

    row: int
    file: int
    score: float


class Vintage(NamedTuple):
    """A document among its vintages: their name without dates, and its date or version, "" if it has none."""

    series: str
    date: str


@dataclass(frozen=True, slots=True)
class Issue:
    """A vintage among others: its date, how many there are, and the file of the newest, "" if this is the newest."""

    date: str
    count: int
    newest: str

    def describe(self) -> str:
        """Return what the model needs to know about it."""
        if self.newest:
            return f"of {self.date}; {self.newest} is newer"
        return f"of {self.date}, the newest of {self.count} versions"


def read_vintage(name: str, title: str) -> Vintage:
    """Read the date or version in the name of a file, or else in its title."""
    for text in (PurePosixPath(name).stem, title):
        parts = {part: value for match in _DATE.finditer(text) for part, value in match.groupdict().items() if value}
        date = _write_date(parts)
        if date:
            series = " ".join(re.findall(r"[^\W_]+", _STATE.sub(" ", _DATE.sub(" ", text)).lower()))
            return Vintage(series, date) if re.search(r"[^\W\d]", series) else Vintage("", date)
    return Vintage("", "")


def _write_date(parts: Mapping[str, str]) -> str:
    if "year" not in parts:
        return f"version {int(parts['version'])}" if "version" in parts else ""
    month = f"{_MONTHS.index(parts['name'][:3].lower()) + 1:02d}" if "name" in parts else parts.get("month", "")
    quarter = f"Q{parts['quarter']}" if "quarter" in parts else ""
    return "-".join(filter(None, (parts["year"], quarter or month, parts.get("day", ""))))


def sort_key(date: str) -> tuple[int, ...]:
    """Return a key for dates and versions: "version 10" is newer than "version 9"; a quarter is its last month."""
    return tuple(int(number) * (3 if quarter else 1) for quarter, number in re.findall(r"(Q?)(\d+)", date))


def fuse(orders: Sequence[Sequence[T]], key: Callable[[T], Hashable], constant: int = _CONSTANT) -> list[T]:
    """Merge orders by reciprocal rank; the smaller the `constant`, the more the first ranks weigh. Of what has the same
    key, the first order's is kept."""
    scores: Counter[Hashable] = Counter()
    kept: dict[Hashable, T] = {}
    for order in orders:
        for place, item in enumerate(order, 1):
            scores[key(item)] += 1 / (constant + place)  # type: ignore[assignment]  # a Counter counts fractions too
            kept.setdefault(key(item), item)
    return [kept[name] for name, _ in scores.most_common()]


def spread(order: Sequence[Ranked], top: int) -> list[Ranked]:
    """Return the order with at most `MOST_OF_ONE` passages of one document among the first `top`, if it can be."""
    counts: Counter[int] = Counter()
    first: list[Ranked] = []
    later: list[Ranked] = []
    for ranked in order:
        counts[ranked.file] += 1
        (first if counts[ranked.file] <= MOST_OF_ONE and len(first) < top else later).append(ranked)
    return [*first, *later]


def put_newest_first(order: Sequence[Ranked], vintages: Mapping[int, Vintage], question: str) -> list[Ranked]:
    """Exchange vintages of a document that score alike: first the date that the question names, else the newest."""
    asked = read_vintage("", question).date
    places: dict[str, list[int]] = {}
    for place, ranked in enumerate(order):
        if series := vintages[ranked.file].series:
            places.setdefault(series, []).append(place)
    result = list(order)
    for held in places.values():
        while held:
            first = held.pop(0)
            alike = [first, *(place for place in held if order[place].score >= _CLOSE * order[first].score)]
            held[:] = [place for place in held if place not in alike]
            dates = {place: vintages[order[place].file].date for place in alike}
            if asked:
                wanted = sorted(alike, key=lambda place: not dates[place].startswith(asked))
            else:
                wanted = sorted(alike, key=lambda place: sort_key(dates[place]), reverse=True)
            for place, other in zip(alike, wanted, strict=True):
                result[place] = order[other]
    return result


def name_document(title: str) -> str:
    """Return a title as other texts mention it: without what is in parentheses at its end, one space between words."""
    words = _WORD.findall(_ADDED.sub("", title))
    key = " ".join(words)
    mentionable = 0 < len(words) <= _LONGEST_TITLE and re.search(r"[^\W\d]", key) and not key[0].islower()
    return key if mentionable else ""


def find_possible_titles(text: str) -> Iterator[str]:
    """Yield what may be the title of a document: every run of words that does not begin in lower case."""
    words = _WORD.findall(text)
    for begin, word in enumerate(words):
        if not word[0].islower():
            for end in range(begin + 1, min(begin + _LONGEST_TITLE, len(words)) + 1):
                yield " ".join(words[begin:end])


def find_names(text: str, question: str) -> list[str]:
    """Return the names in a text, runs of words with capitals, without those that the question has."""
    question_text = f" {' '.join(_WORD.findall(question)).lower()} "
    names: dict[str, str] = {}
    for phrase in _GAP.split(text):
        for is_capital, run in groupby(phrase.split(), key=lambda word: word[0].isupper()):
            name = " ".join(dropwhile(lambda word: not words(word), run)) if is_capital else ""
            if name and f" {name.lower()} " not in question_text:
                names.setdefault(name.lower(), name)
    return list(names.values())[:_MOST_NAMES]


def choose_mentioned(
    mentioned: Iterable[tuple[str, int, int]], question: str, order: Sequence[Ranked], kept: int
) -> list[Ranked]:
    """Choose the passages of documents that the best passages mention, except those among the first `kept`: of each the
    one that fits the question best, else its first.

    `mentioned` are the titles, with the file and the first row of each document that has it. Titles in the
    question are left out, because the words of the question have found them.
    """
    question_text = f" {' '.join(_WORD.findall(question)).lower()} "
    documents: dict[str, list[tuple[int, int]]] = {}
    for title, file, first in mentioned:
        documents.setdefault(title, []).append((file, first))
    best: dict[int, tuple[int, Ranked]] = {}
    for place, ranked in enumerate(order):
        best.setdefault(ranked.file, (place, ranked))
    shown = {ranked.file for ranked in order[:kept]}
    chosen: dict[int, tuple[int, Ranked]] = {}
    for title, files in documents.items():
        if len(files) <= _AMBIGUOUS and f" {title.lower()} " not in question_text:
            for file, first in files:
                if file not in shown:
                    chosen.setdefault(file, best.get(file, (len(order), Ranked(first, file, 0.0))))
    return [ranked for _, ranked in sorted(chosen.values(), key=lambda entry: entry[0])]
