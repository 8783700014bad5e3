"""A sentence taken apart: its names, numbers, dates and words in order, the pieces it has, and where it denies."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from hira.evidence.quantities import Date, Quantity, dates, quantities
from hira.evidence.wording import NEGATIONS, OPPOSITES, cjk_chunks, folded, root

Sort = Literal["name", "number", "date", "word", "cjk"]

CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_LATIN = r"(?![\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])\w"
_WORD = re.compile(rf"{CJK.pattern}|{_LATIN}(?:{_LATIN})*(?:[-'’.&](?:{_LATIN})+)*")
_BREAK = re.compile(
    r"[;:()—–，；：（）、\n]|,(?!\d)|\b(?:and|but|while|whereas|although|though|which|who|whose|where)\b", re.IGNORECASE
)
_CLAUSE = re.compile(r"[;；\n]|\b(?:while|whereas|but)\b", re.IGNORECASE)
_LINES, _CELLS = re.compile(r"\n"), re.compile(r"\|")
_VERB = re.compile(
    r"\b(?:is|are|was|were|be|been|has|have|had|do|does|did|can|could|will|would|may|might|must|shall|should|became|"
    r"becomes?|lies?|stands?|stood|lay)\b",
    re.IGNORECASE,
)
_BACK = re.compile(
    r"\s*[-*•]?\s*(?:(?:it|he|she|they|this|these|those|its|his|her|their|both|here|there|the (?:\w+ )?[a-z]+"
    r"|in (?:\w+ )?\d{4}|then|later|today|since)\b|[它他她该此其这])",
    re.IGNORECASE,
)
_OPENERS = frozenset(
    """however moreover furthermore additionally according overall finally also thus therefore although while since when
    after before during under over between among many several some most all both each every no yes only about around
    approximately nearly almost roughly first second third one two three four five six seven eight nine ten it he she
    they this that these those there here the a an in on at by for from with as if of to its his her their our my we i
    you not today currently built founded located born water people
    """.split()
)


@dataclass(frozen=True, slots=True)
class Token:
    """A name, number, date or word: `key` is what it is compared by, `piece` and `clause` where it stands."""

    sort: Sort
    key: str
    text: str
    start: int
    piece: int
    clause: int = 0
    quantity: Quantity | None = None
    date: Date | None = None
    lead: bool = False


@dataclass(frozen=True)
class Statement:
    """A claim or a sentence of a source with its tokens."""

    text: str
    tokens: tuple[Token, ...] = field(repr=False)
    breaks: tuple[int, ...] = field(repr=False)

    @cached_property
    def low(self) -> str:
        return folded(self.text)

    @cached_property
    def denied(self) -> frozenset[Token]:
        """What is denied: the tokens behind a negation in its piece; the whole piece where none follows ("is not")."""
        found: set[Token] = set()
        for match in NEGATIONS.finditer(self.text):
            piece = [one for one in self.tokens if one.piece == self.piece_at(match.start())]
            found |= {one for one in piece if one.start > match.start()} or set(piece)
        return frozenset(found)

    @cached_property
    def denies(self) -> bool:
        return bool(NEGATIONS.search(self.text))

    @cached_property
    def keys(self) -> frozenset[str]:
        return frozenset(token.key for token in self.tokens)

    @cached_property
    def initials(self) -> str:
        return "".join(match[0] for match in re.finditer(r"\b[A-Z](?=[a-z])", self.text)).lower()

    @cached_property
    def back(self) -> bool:
        """Whether it begins with a word that stands for something said before it."""
        return bool(_BACK.match(self.text))

    @cached_property
    def subject(self) -> frozenset[str]:
        """The names that it begins with, before its verb."""
        verb = _VERB.search(self.text)
        end = verb.start() if verb else 40
        return frozenset(token.key for token in self.tokens if token.sort == "name" and token.start < end)

    @cached_property
    def opening(self) -> frozenset[str]:
        """What stands before its verb."""
        verb = _VERB.search(self.text)
        end = verb.start() if verb else 40
        return frozenset(token.key for token in self.tokens if token.start < end)

    @property
    def has_verb(self) -> bool:
        return bool(_VERB.search(self.text))

    def piece_at(self, place: int) -> int:
        return sum(at <= place for at in self.breaks)


def statement(text: str) -> Statement:
    """Take a sentence apart."""
    numbers, days = quantities(text), dates(text)
    covered = [(day.start, day.end) for day in days]
    numbers = [one for one in numbers if not any(start <= one.start < end for start, end in covered)]
    covered += [(one.start if one.told < 0 else one.told, one.end) for one in numbers]
    breaks = tuple(match.start() for match in _form(text).finditer(text) if not _within(match.start(), covered))

    def piece(start: int) -> int:
        return sum(at <= start for at in breaks)

    tokens = [
        Token(
            "date",
            f"{one.year}-{one.month}-{one.day}",
            text[one.start : one.end],
            one.start,
            piece(one.start),
            date=one,
        )
        for one in days
    ]
    tokens += [
        Token(
            "number",
            f"{one.readings[0]:.12g}",
            text[one.start : one.end].strip(),
            one.start,
            piece(one.start),
            quantity=one,
        )
        for one in numbers
    ]
    for at, match in enumerate(_WORD.finditer(_blanked(text, covered))):
        tokens += _worded(match, piece, first=at == 0)
    clauses = [match.start() for match in _CLAUSE.finditer(text)] if _form(text) is _BREAK else breaks
    ordered = [
        replace(one, clause=sum(at <= one.start for at in clauses))
        for one in sorted(tokens, key=lambda token: token.start)
        if not (one.key in _BOUNDS and _BOUND.search(text[: one.start]))
    ]
    return Statement(text, tuple(ordered), breaks)


_BOUNDS = frozenset(["most", "least", "more", "less", "fewer"])
_BOUND = re.compile(r"\b(?:at|or)\s+$", re.IGNORECASE)


def _form(text: str) -> re.Pattern[str]:
    """What parts the pieces: lines of a list or table, cells of a row, else clauses."""
    return _LINES if "\n" in text else _CELLS if " | " in text else _BREAK


def _within(place: int, covered: list[tuple[int, int]]) -> bool:
    return any(start <= place < end for start, end in covered)


def _blanked(text: str, covered: list[tuple[int, int]]) -> str:
    """The text with spaces where numbers and dates stand."""
    for start, end in covered:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _worded(match: re.Match[str], piece: Callable[[int], int], *, first: bool) -> list[Token]:
    word, start = match[0], match.start()
    place = piece(start)
    if CJK.match(word):
        found, at = [], 0
        for chunk in cjk_chunks(word):
            at = word.index(chunk, at)
            found.append(Token("cjk", chunk, chunk, start + at, place))
            at += len(chunk)
        return found
    key = root(word)
    capital = word[:1].isupper() or any(sign.isupper() for sign in word[1:])
    plain = folded(word).removesuffix("'s").removesuffix("'").strip(".")
    proper = bool(key) or (word.isupper() and len(word) > 1)
    if capital and proper and plain not in _OPENERS and not (first and key in OPPOSITES):
        return [Token("name", plain, word, start, place, lead=first)]
    return [Token("word", key, word, start, place)] if key else []
