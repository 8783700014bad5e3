"""A text as sentences of comparable tokens, with an index of who says what. Built once for a source.

Tokens are compared by `key`: a number by its value, a word by its stem, cut to six letters. Scripts without spaces
become pairs of characters. Everything here takes time linear in the length of the text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from hira.relevance import STOP, stem

LONGEST = 600
"""Characters of a sentence; a longer one is cut at a space."""
_TOKEN = re.compile(
    r"(?P<number>\d+(?:[.,’'\u00a0\u202f]\d+)*)"
    r"|(?P<dense>[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+)"
    r"|(?P<word>[^\W\d_]+(?:['’][^\W\d_]+)*)|(?P<percent>%)"
)
_END = re.compile(
    r"(?:(?<=[^\W\d_][^\W\d_])|(?<=[\d)\]\"'”’»%]))[.!?]+[\"'”’»)\]]*\s+(?=[^a-z\s])|[。！？؟۔।]+[」』”]?\s*"
)
_MARKED = re.compile(r"\s*(?:#{1,6}\s|[-*+•|>]\s?|\d+[.)]\s)")
_MAGNITUDES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_WORDS = {word: str(at) for at, word in enumerate("zero one two three four five six seven eight nine ten".split())}
NEGATIONS = frozenset(
    "not no never neither nor none without cannot nicht kein keine keinen keiner nie ohne ne pas jamais sin nunca"
    " لا لم لن ليس ليست غير 不 没 沒 未 無 无 非".split()
)
PRONOUNS = frozenset(
    "he she it they this that these those his her hers its their him them er sie es dieser diese dieses ihr sein"
    " il elle ils elles هو هي 他 她 它 其 该 這 这".split()
)
SILENT = STOP | NEGATIONS | PRONOUNS | frozenset("yes ja nein oui non sí نعم 是 否".split())
"""Words that say nothing by themselves."""
Kind = Literal["number", "name", "word"]


@dataclass(frozen=True, slots=True)
class Token:
    key: str
    text: str
    kind: Kind
    content: bool  # carries meaning: no stop word


def read_number(text: str) -> str:
    """A number as digits and a power of ten ("3,100,000" and "3.1" million are "31e7"); a string, of any length."""
    separators = [char for char in text if not char.isdigit()]
    whole, fraction = text, ""
    if separators:
        last = separators[-1]
        head, _, tail = text.rpartition(last)
        grouped = separators.count(last) > 1 or (len(tail) == 3 and last != "." and head not in ("", "0"))
        if not grouped:
            whole, fraction = head, tail
    whole = "".join(str(int(char)) for char in whole if char.isdigit()).lstrip("0")
    fraction = "".join(str(int(char)) for char in fraction).rstrip("0")
    digits = whole + fraction
    significant = digits.lstrip("0").rstrip("0")
    if not significant:
        return "0"
    return f"{significant}e{len(whole) - (len(digits) - len(digits.lstrip('0')))}"


def shift(key: str, places: int) -> str:
    """The number times ten to the power of `places`."""
    digits, _, power = key.partition("e")
    return f"{digits}e{int(power) + places}" if power else key


@lru_cache(maxsize=50_000)
def fold(word: str) -> str:
    """The key of a lower-case word: its stem, cut to six letters."""
    return stem(word)[:6]


def read_tokens(text: str) -> list[Token]:
    """The tokens of a text in order, stop words included."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        kind, written = match.lastgroup, match[0]
        if kind == "number":
            found.append(Token(read_number(written), written, "number", content=True))
        elif kind == "dense":
            pairs = [written[at : at + 2] for at in range(len(written) - 1)] or [written]
            found += [Token(pair, pair, "word", content=True) for pair in pairs]
        elif kind == "percent":
            found.append(Token("percen", written, "word", content=True))
        else:
            lower = written.lower()
            previous = found[-1] if found else None
            if lower in _MAGNITUDES and previous and previous.kind == "number":
                key, wording = shift(previous.key, _MAGNITUDES[lower]), f"{previous.text} {written}"
                found[-1] = Token(key, wording, "number", content=True)
            elif lower in _WORDS and lower != "one":
                found.append(Token(read_number(_WORDS[lower]), written, "number", content=True))
            else:
                content = lower not in SILENT and len(lower) > 1
                named = content and written[0] != lower[0] and (bool(found) or written[1:] != lower[1:])
                found.append(Token(fold(lower), written, "name" if named else "word", content=content))
    if len(found) > 1 and found[1].kind == "name" and found[0].content and found[0].text[:1].isupper():
        found[0] = Token(found[0].key, found[0].text, "name", content=True)
    return found


def split_sentences(text: str) -> Iterator[str]:
    """Sentences, list items and lines, in order. Wrapped lines of one paragraph are joined."""
    for block in _join_lines(text):
        start = 0
        for end in (*(match.end() for match in _END.finditer(block)), len(block)):
            yield from _cut(block[start:end].strip())
            start = end


def _join_lines(text: str) -> Iterator[str]:
    held: list[str] = []
    for line in text.splitlines():
        wrapped = held and len(held[-1]) > 50 and held[-1].rstrip()[-1:] not in (".", "!", "?", ":", ";", "|")
        if not (line.strip() and wrapped and not _MARKED.match(line)):
            yield " ".join(held)
            held = []
        held.append(line)
    yield " ".join(held)


def _cut(sentence: str) -> Iterator[str]:
    start = 0
    while len(sentence) - start > LONGEST:
        space = sentence.rfind(" ", start, start + LONGEST)
        end = space if space > start else start + LONGEST
        yield sentence[start:end]
        start = end
    if sentence[start:].strip():
        yield sentence[start:].strip()


class Passages:
    """The sentences of one source and, for every key, the sentences with it. Build it once, use it for many claims."""

    def __init__(self, text: str) -> None:
        self.sentences = list(split_sentences(text))
        self.postings: dict[str, list[int]] = {}
        self.headings: list[int] = []  # for every sentence the heading above it, or -1
        self._tokens: dict[int, list[Token]] = {}
        heading = -1
        for at, sentence in enumerate(self.sentences):
            self.headings.append(heading)
            if sentence.startswith("#") or (len(sentence) < 80 and sentence[-1] not in ".!?;,|。！？"):
                heading = at
            for key in {token.key for token in read_tokens(sentence) if token.content}:
                self.postings.setdefault(key, []).append(at)

    def tokens(self, at: int) -> list[Token]:
        """The tokens of one sentence."""
        if at not in self._tokens:
            self._tokens[at] = read_tokens(self.sentences[at])
        return self._tokens[at]
