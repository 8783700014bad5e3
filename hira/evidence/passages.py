"""A text as sentences of comparable tokens, with an index of the sentences of each. Built once per source.

Tokens are compared by `key`: a number by its value, a word by its stem, cut to six letters. Scripts without spaces
become pairs of characters. Everything here takes time linear in the length of the text.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from hira.core.bm25 import STOP, stem
from hira.core.patterns import compile_lazily
from hira.evidence.citations import CITED

BULLET = compile_lazily(r"\s*(?:(?:[-*+•‣>]|\d{1,3}[.)])\s+)*")
FENCE = compile_lazily(r"^[ \t]*(?:```|~~~)(?s:.*?)(?:^[ \t]*(?:```|~~~)[^\n]*$|\Z)", re.MULTILINE)
WRAPPED = 50
"""If a longer line ends inside a sentence, the next one continues it; shorter lines are items of a list."""
_BEGINS = compile_lazily(r"\s*(?:#{1,6}\s|[-*+•|>]\s?|\d+[.)]\s)")
_STOP = compile_lazily(
    rf"(?:(?<=[^\W\d_][^\W\d_])|(?<=[\d)\]\"'”’»%*_`]))[.!?…]++[\"'”’»)\]*_]*+(?:\s*+{CITED.pattern})*+\s++(?=[^a-z\s])"
    rf"|[。！？؟۔।]++[」』”]*+(?:\s*+{CITED.pattern})*+\s*+"
)
_NO_STOP = compile_lazily(
    r"(?:\b(?:e\.g|i\.e|al|Dr|Mr|Mrs|Ms|Prof|St|Figs?|No|vs|cf|ca|approx|Jr|Sr)|^[\s#*]*\d{1,3})\.\Z", re.MULTILINE
)
"""Abbreviations, and the number of a list item or heading."""


def find_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of every sentence, list item and line, with the citation marks after it."""
    for start, end in _find_blocks(text):
        begin = start
        for match in _STOP.finditer(text, start, end):
            if not _NO_STOP.search(text, max(begin, match.start() - 8), match.start() + 1):
                yield begin, match.end()
                begin = match.end()
        if text[begin:end].strip():
            yield begin, end


def _find_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of each line, joined with the next line if that continues its sentence."""
    begin = at = 0
    wrapped = False
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if not (wrapped and bare and not _BEGINS.match(line)):
            yield begin, at
            begin = at
        at += len(line)
        wrapped = len(bare) > WRAPPED and bare[-1:] not in (".", "!", "?", ":", ";", "|")
    yield begin, at


LONGEST = 600
"""The most characters of a sentence; a longer one is cut at a space."""
_TOKEN = compile_lazily(
    r"(?P<number>\d+(?:[.,’'\u00a0\u202f]\d+)*)"
    r"|(?P<dense>[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+)"
    r"|(?P<word>[^\W\d_]+(?:['’][^\W\d_]+)*)|(?P<percent>%)"
)
_FINAL = ".!?;,|。！？؟"
_MAGNITUDES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_WORDS = {word: str(at) for at, word in enumerate("two three four five six seven eight nine ten".split(), start=2)}
NEGATIONS = frozenset(
    "not no never neither nor none without cannot nicht kein keine keinen keiner nie ohne ne pas jamais sin nunca"
    " لا لم لن ليس ليست غير 不 没 沒 未 無 无 非".split()
)
PRONOUNS = frozenset("he she it they er sie es il elle ils elles هو هي 他 她 它".split())
POINTERS = PRONOUNS | frozenset(
    "this that these those his her hers its their him them dieser diese dieses 其 该 這 这".split()
)
SILENT = STOP | NEGATIONS | POINTERS | frozenset("yes ja nein oui non sí نعم 是 否".split())
"""Words without a meaning on their own."""
Kind = Literal["number", "name", "word"]


class Token(NamedTuple):
    """One word, number or pair of characters. `content` is false for words without a meaning on their own."""

    key: str
    text: str
    kind: Kind
    content: bool


@lru_cache(maxsize=50_000)
def read_number(text: str) -> str:
    """Return a number as digits and a power of ten ("3,100,000" and "3.1" million are "31e7"); a string."""
    whole, fraction = text, ""
    if separators := [char for char in text if not char.isdigit()]:
        head, _, tail = text.rpartition(separators[-1])
        grouped = len(tail) == 3 and separators[-1] != "." and head.strip("0")
        if separators.count(separators[-1]) == 1 and not grouped:
            whole, fraction = head, tail
    whole, fraction = ("".join(str(int(char)) for char in part if char.isdigit()) for part in (whole, fraction))
    digits = whole.lstrip("0") + fraction
    leading = digits.lstrip("0")
    return f"{leading.rstrip('0')}e{len(whole.lstrip('0')) - len(digits) + len(leading)}" if leading else "0"


def shift_number(key: str, places: int) -> str:
    """Return the number times ten to the power of `places`."""
    digits, _, power = key.partition("e")
    return f"{digits}e{int(power) + places}" if power else key


@lru_cache(maxsize=50_000)
def read_word(written: str) -> Token:
    """Return the token of a word inside a sentence. Its key is the stem without a doubled end, cut to six letters."""
    lower = written.lower()
    if lower in _WORDS:
        return Token(read_number(_WORDS[lower]), written, "number", content=True)
    found = stem(lower)
    doubled = len(found) > 3 and found != lower and found[-1] == found[-2]
    content = lower not in SILENT and len(lower) > 1
    kind: Kind = "name" if content and written[0] != lower[0] else "word"
    return Token(found[:-1] if doubled else found[:6], written, kind, content)


def read_tokens(text: str) -> list[Token]:
    """Return the tokens of a text in order, stop words included. The first word is a name if a name follows it, if it
    is a possessive ("Ada's") or if it has capitals inside."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        kind, written = match.lastgroup, match[0]
        if kind == "word":
            previous = found[-1] if found else None
            if previous and previous.kind == "number" and (places := _MAGNITUDES.get(written.lower())):
                key, wording = shift_number(previous.key, places), f"{previous.text} {written}"
                found[-1] = Token(key, wording, "number", content=True)
            else:
                found.append(read_word(written))
        elif kind == "number":
            found.append(Token(read_number(written), written, "number", content=True))
        elif kind == "dense":
            pairs = [written[at : at + 2] for at in range(len(written) - 1)] or [written]
            found += [Token(pair, pair, "word", content=True) for pair in pairs]
        else:
            found.append(Token("percen", written, "word", content=True))
    if found and found[0].kind == "name" and not (len(found) > 1 and found[1].kind == "name"):
        inner = found[0].text[1:]
        named = inner != inner.lower() or inner.endswith(("'s", "’s"))
        found[0] = found[0]._replace(kind="name" if named else "word")
    return found


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences, each on one line, in order; a sentence longer than `LONGEST` is cut at spaces."""
    for begin, end in find_sentences(text):
        sentence = " ".join(text[begin:end].split())
        at = 0
        while len(sentence) - at > LONGEST:
            space = sentence.rfind(" ", at + 1, at + LONGEST)
            yield sentence[at : space if space > 0 else at + LONGEST]
            at = space + 1 if space > 0 else at + LONGEST
        if sentence[at:]:
            yield sentence[at:]


class Passages:
    """The sentences of one source and, for every key, the sentences with it. Build it once, use it for many claims.

    `headings` and `antecedents` hold, for every sentence, the heading above it (a short line before a text, or one that
    begins with # or ends with a colon) and the sentence that its pronoun refers to, or -1.
    """

    def __init__(self, text: str) -> None:
        self.sentences = list(split_sentences(text))
        self.postings: dict[str, list[int]] = {}
        self.headings: list[int] = []
        self.antecedents: list[int] = []
        self._tokens: dict[int, list[Token]] = {}
        heading = -1
        for at, sentence in enumerate(self.sentences):
            tokens = read_tokens(sentence)
            self.headings.append(heading)
            antecedent = -1
            if at and _points_back(tokens):
                antecedent = at - 1 if self.antecedents[at - 1] < 0 else self.antecedents[at - 1]
            self.antecedents.append(antecedent)
            if sentence[0] == "#" or (len(sentence) < 80 and _leads(sentence, self.sentences[at + 1 : at + 2])):
                heading = at
            for key in {token.key for token in tokens if token.content}:
                self.postings.setdefault(key, []).append(at)

    def tokens(self, at: int) -> list[Token]:
        """Return the tokens of one sentence."""
        if at not in self._tokens:
            self._tokens[at] = read_tokens(self.sentences[at])
        return self._tokens[at]

    def keys(self, at: int) -> frozenset[str]:
        """Return the keys of the content words of one sentence."""
        return frozenset(token.key for token in self.tokens(at) if token.content)


def _leads(line: str, following: list[str]) -> bool:
    """Return whether a short line is a heading: it ends with a colon, or it is not a sentence and precedes one."""
    return line[-1] == ":" or (line[-1] not in _FINAL and bool(following) and following[0][-1] in _FINAL)


def _points_back(tokens: list[Token]) -> bool:
    """Return whether a sentence has a pronoun as subject ("It was", "In 1990 she"), or begins with one ("Its roof")."""
    return any(token.text.lower() in (PRONOUNS if at else POINTERS) for at, token in enumerate(tokens[:4]))
