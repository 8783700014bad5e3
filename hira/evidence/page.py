"""The sentences of a source, indexed by word, so that each source is read once for all claims about it."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate

from hira.evidence.marks import SENTENCE, ends_in_abbreviation
from hira.evidence.source import Source
from hira.evidence.statement import CJK, Statement, statement
from hira.evidence.wording import folded, root

NEAR = 24
"""How many sentences are looked at for a claim."""
_WRAPPED = 60
_CHAIN = 8
_LISTED = 40
_LONGEST = 1500
_ITEM = re.compile(r"^\s*(?:[-*•‣#>|]|\d{1,3}[.)]\s|\[)")
_OPEN = re.compile(r"[\w,(–’”-]$")
_ENDED = re.compile(r"[.!?。！？:：;；][\"”’)\]]*$")
_TERM = re.compile(r"\d[\d.,]*|[^\W\d_]+(?:['’-][^\W\d_]+)*")
_SMALL = {
    word: f"#{value}"
    for value, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
}


class Page:
    """A source's sentences. `sentences` first, then whole lists as one passage each."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.sentences: list[str] = []
        self.headings: list[int] = []
        self.paragraphs: list[int] = []
        self._split(source.evidence)
        self._statements: dict[int, Statement] = {}
        self._postings = self._indexed()

    def _split(self, text: str) -> None:
        heading = -1
        for block in re.split(r"\n[ \t]*\n+", text):
            lines = _unwrapped(block)
            start = len(self.sentences)
            listed = []
            for line in lines:
                begins = len(self.sentences)
                for part in _parts(line):
                    self.sentences.append(part)
                    self.headings.append(heading if heading != begins else -1)
                    self.paragraphs.append(start)
                if len(line) <= 120 and not _ENDED.search(line):
                    listed.append(line)
            first = self.sentences[start] if len(self.sentences) > start else ""
            if first and (first.startswith("#") or (len(first) <= 80 and not _ENDED.search(first))):
                heading = start
            if len(listed) >= 2 and 2 <= len(lines) <= _LISTED and sum(map(len, lines)) <= _LONGEST:
                self._add("\n".join(lines), heading, start)

    def _add(self, text: str, heading: int, start: int) -> None:
        self.sentences.append(text)
        self.headings.append(heading)
        self.paragraphs.append(start)

    def _indexed(self) -> dict[str, list[int]]:
        postings: dict[str, list[int]] = {}
        known: dict[str, tuple[str, ...]] = {}
        for at, sentence in enumerate(self.sentences):
            for term in set(_TERM.findall(sentence)):
                keys = known.get(term)
                if keys is None:
                    keys = known[term] = terms(term)
                for key in keys:
                    postings.setdefault(key, []).append(at)
        return postings

    def statement(self, at: int) -> Statement:
        """A sentence taken apart, remembered."""
        if at not in self._statements:
            self._statements[at] = statement(self.sentences[at])
        return self._statements[at]

    @cached_property
    def title(self) -> Statement:
        return statement(self.source.title)

    @cached_property
    def flat(self) -> str:
        """The evidence in small letters with single spaces: what an exact passage is looked for in."""
        return " ".join(self._lines)

    @cached_property
    def _lines(self) -> list[str]:
        plain = self.source.evidence.replace("’", "'").lower()
        return [" ".join(line.split()) for line in plain.splitlines() if line.strip()]

    @cached_property
    def edges(self) -> frozenset[int]:
        """Where the lines of `flat` begin."""
        return frozenset(accumulate((len(line) + 1 for line in self._lines), initial=0))

    def passage(self, flat: str) -> str:
        """The shortest sentence of the source that holds these words, else the words themselves."""
        near = (self.sentences[at] for at in self.near(terms(flat), ()))
        found = [one for one in near if flat in " ".join(one.replace("’", "'").lower().split())]
        return min(found, key=len, default=flat)

    @cached_property
    def keys(self) -> frozenset[str]:
        """Every root that stands in the source or its title."""
        return frozenset(self._postings) | self.title.keys

    @cached_property
    def low(self) -> str:
        return " ".join(folded(f"{self.source.title}\n{self.source.evidence}").split())

    def chain(self, at: int) -> int:
        """How many sentences before it a sentence goes on from."""
        many = 0
        while many < min(_CHAIN, at) and self.statement(at - many).back:
            many += 1
        return many

    def context(self, at: int) -> list[Statement]:
        """What a sentence goes on from: the sentences it points back to, its block's first line, heading and title."""
        found = [self.statement(at - back) for back in range(1, self.chain(at) + 1)]
        if (
            0 <= (start := self.paragraphs[at]) < at
            and len(self.sentences[start]) <= 200
            and not _ENDED.search(self.sentences[start])
        ):
            found.append(self.statement(start))
        if self.headings[at] >= 0:
            found.append(self.statement(self.headings[at]))
        return [*found, self.title]

    def near(self, wanted: Iterable[str], beside: Iterable[str], most: int = NEAR) -> Sequence[int]:
        """The sentences that share the most weight with the claim's terms, then with the question's."""
        scores: Counter[int] = Counter()
        total = len(self.sentences) + 1
        for words, factor in ((wanted, 1.0), (beside, 0.15)):
            for word in set(words):
                found = self._postings.get(word, ())
                weight = factor * math.log(1 + total / (len(found) + 0.5))
                for at in set(found):
                    scores[at] += weight  # type: ignore[assignment]
        best = sorted(scores, key=lambda at: (-scores[at], len(self.sentences[at]), at))[:most]
        after = [at + 1 for at in best[: most // 2] if at + 1 < len(self.sentences) and self.statement(at + 1).back]
        return list(dict.fromkeys([*best, *after]))


def terms(text: str) -> tuple[str, ...]:
    """What a text is found by: roots of words, pairs of Chinese signs, the first two digits of a number."""
    found: list[str] = []
    for term in _TERM.findall(text):
        if term[0].isdigit():
            found.append(f"#{term.replace('.', '').replace(',', '').lstrip('0')[:2]}")
        elif CJK.search(term):
            found += [term[at : at + 2] for at in range(len(term) - 1)] or [term]
        else:
            low = folded(term)
            found += [one for one in (root(low), _SMALL.get(low)) if one]
            if "-" in low:
                found += [one for one in map(root, low.split("-")) if one]
    return tuple(found)


def _unwrapped(block: str) -> list[str]:
    """The lines of a block; lines that were only broken to fit a width are joined."""
    lines: list[str] = []
    for line in filter(None, (line.strip() for line in block.splitlines())):
        wrapped = lines and len(lines[-1]) >= _WRAPPED and _OPEN.search(lines[-1]) and " | " not in lines[-1]
        if wrapped and not _ITEM.match(line) and " | " not in line:
            lines[-1] = f"{lines[-1]} {line}"
        else:
            lines.append(line)
    return lines


def _parts(line: str) -> list[str]:
    found: list[str] = []
    for part in filter(None, (part.strip() for part in SENTENCE.split(line) if part)):
        if found and ends_in_abbreviation(found[-1]):
            found[-1] = f"{found[-1]} {part}"
        else:
            found.append(part)
    return found
