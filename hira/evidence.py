"""Answers bound to evidence: what was really read, and whether a cited passage says what the answer claims.

A model never writes a URL. It cites `[s3]`; the id is resolved here and the claim is held against the stored text.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

from hira.relevance import words

Kind = Literal["page", "hit", "file", "computation", "media"]
Verdict = Literal["supported", "contradicted", "not found", "unchecked"]

OUTPUT = "\n\nOutput:\n"
"""Stands between the program and what it printed in the text of a computation."""

ENOUGH = 0.6
SAME_STATEMENT = 0.8
CITED = re.compile(r"\[\s*(s\d+(?:\s*[,;]\s*s\d+)*)\s*\]")
_MARK = re.compile(r"\[\s*/?\s*s\d+(?:\s*[,;]\s*s\d+)*\s*\]")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NAME = re.compile(r"\b[A-Z][\w'’-]+")
_QUOTE = re.compile(r"[\"“«]([^\"”»]{8,})[\"”»]")


@dataclass(frozen=True, slots=True)
class Source:
    """A page, file or computation that was really read, with its text. `id` is given when it enters the run."""

    location: str
    title: str
    text: str
    kind: Kind = "page"
    id: str = ""

    @property
    def evidence(self) -> str:
        """What a claim may rest on: all of the text, but of a computation only what it printed."""
        return self.text.rpartition(OUTPUT)[2] if self.kind == "computation" else self.text


@dataclass(frozen=True, slots=True)
class Citation:
    """One claim of the answer and the source it cites; `quote` is the passage of the source nearest to the claim."""

    source: str
    claim: str
    quote: str
    verdict: Verdict


@dataclass(slots=True)
class Sources:
    """All sources of one run, by id in the order in which they were first read.

    `reserved` are the ids by location that an earlier part of the run gave out.
    """

    read: dict[str, Source] = field(default_factory=dict)
    reserved: dict[str, str] = field(default_factory=dict)
    _ids: dict[str, str] = field(default_factory=dict)

    def add(self, source: Source) -> Source:
        """The source under its id. One location keeps one id; text that is new there is added to what is stored."""
        known = self.read.get(self._ids.get(source.location, ""))
        if known is None:
            known = replace(source, id=self.reserved.get(source.location) or self._free())
            self._ids[source.location] = known.id
        elif source.text not in known.text:
            text = source.text if known.text in source.text else f"{known.text}\n\n{source.text}"
            known = replace(known, text=text, kind=source.kind, title=known.title or source.title)
        elif known.kind == "hit":
            known = replace(known, kind=source.kind)
        self.read[known.id] = known
        return known

    def _free(self) -> str:
        taken = {*self.read, *self.reserved.values()}
        at = len(self.read) + 1
        while f"s{at}" in taken:
            at += 1
        return f"s{at}"

    def __contains__(self, source_id: object) -> bool:
        return source_id in self.read

    def __len__(self) -> int:
        return len(self.read)


def cited(text: str) -> list[str]:
    """The ids that a text cites, in order, each once: `[s1]`, `[s1, s2]`."""
    return list(dict.fromkeys(one for match in CITED.finditer(text) for one in re.findall(r"s\d+", match[1])))


def unmarked(text: str) -> str:
    """What was read without marks like our own: no page cites a source, or opens and closes the frame around another."""
    return _MARK.sub("", text)


def drop_unknown(text: str, sources: Sources) -> tuple[str, list[str]]:
    """The text without citations of ids that nobody read, and those ids."""
    unknown = [one for one in cited(text) if one not in sources]

    def kept(match: re.Match[str]) -> str:
        ids = [one for one in re.findall(r"s\d+", match[1]) if one in sources]
        return f"[{', '.join(ids)}]" if ids else ""

    return (re.sub(r"\s+([.,;:])", r"\1", CITED.sub(kept, text)) if unknown else text), unknown


def claims(text: str) -> list[tuple[str, list[str]]]:
    """The statements of a text with the ids each cites. A mark after the full stop belongs to the sentence before."""
    joined = re.sub(r"([.!?。！？])\s*(" + CITED.pattern + ")", r" \2\1", text)
    return [
        (CITED.sub("", sentence).strip(" -*•.\t"), ids)
        for sentence in _SENTENCE.split(joined)
        if (ids := cited(sentence))
    ]


def verify(text: str, sources: Sources, question: str = "") -> list[Citation]:
    """Hold every cited claim of the answer against the stored text of its source.

    The question's own words are no evidence: a bare answer ("Jakarta [s1]") is looked for beside them.
    """
    return [check(claim, sources.read[one], question) for claim, ids in claims(text) for one in ids if one in sources]


def check(claim: str, source: Source, question: str = "") -> Citation:
    """One claim against one source: an exact quotation first, then its numbers and names, then its words.

    The numbers have to stand in the passages that hold the claim's words. A passage that says the same with another
    number contradicts the claim.
    """
    passages = _passages(source.evidence)
    nearest = _nearest(claim, question, passages)
    if any(_folded(quoted) not in _folded(source.evidence) for quoted in _QUOTE.findall(claim)):
        return Citation(source.id, claim, nearest, "not found")
    numbers = _numbers(claim)
    quote = _holding(numbers, claim, question, passages)
    named = all(name in f"{source.title} {source.evidence}".lower() for name in _names(claim))
    if quote and named and _share(claim, quote) >= ENOUGH and _about(claim, question, source):
        return Citation(source.id, claim, quote, "supported")
    verdict: Verdict = "contradicted" if named and _otherwise(claim, numbers, nearest) else "not found"
    return Citation(source.id, claim, nearest, verdict)


def _otherwise(claim: str, numbers: set[str], passage: str) -> bool:
    """Whether the passage says what the claim says, but with another number."""
    told = _numbers(passage)
    rest = set(words(claim)) - numbers
    held = len(rest & set(words(passage))) / len(rest) if rest else 0.0
    return bool(numbers and told) and not numbers <= told and held >= SAME_STATEMENT


def _folded(text: str) -> str:
    return " ".join(text.replace("’", "'").lower().split())


def _numbers(text: str) -> set[str]:
    return {number.replace(",", "") for number in _NUMBER.findall(text)}


def _names(claim: str) -> list[str]:
    """Names of the claim in small letters; its first word may be capital for another reason."""
    return [name.lower() for name in _NAME.findall(claim)[1:]]


def _passages(text: str) -> list[str]:
    """Every sentence, and every two that follow each other: what a claim may rest on."""
    sentences = [part.strip() for part in _SENTENCE.split(text) if part and part.strip()]
    return sentences + [f"{a} {b}" for a, b in pairwise(sentences)]


def _nearest(claim: str, question: str, passages: Iterable[str]) -> str:
    """The passage that holds most of the claim's words, then most of the question's, the shortest among equals."""
    wanted, beside = set(words(claim)), set(words(question))
    best: tuple[int, int, int, str] = (0, 0, 0, "")
    for passage in passages:
        present = set(words(passage))
        if held := len(wanted & present):
            best = max(best, (held, len(beside & present), -len(passage), passage))
    return best[3]


def _holding(numbers: set[str], claim: str, question: str, passages: Sequence[str]) -> str:
    """The nearest passage that holds all numbers of the claim, or the few that hold them together; else empty."""
    chosen: list[str] = []
    missing = set(numbers)
    while missing and len(chosen) < 3:
        able = [passage for passage in passages if missing & _numbers(passage)]
        most = max((len(missing & _numbers(passage)) for passage in able), default=0)
        nearest = _nearest(claim, question, [one for one in able if len(missing & _numbers(one)) == most])
        if not nearest:
            return ""
        chosen.append(nearest)
        missing -= _numbers(nearest)
    return " … ".join(chosen) if numbers else _nearest(claim, question, passages)


def _share(claim: str, passage: str) -> float:
    """The share of the claim's words that the passage holds, 0 to 1."""
    wanted = set(words(claim))
    return len(wanted & set(words(passage))) / len(wanted) if wanted else 0.0


def _about(claim: str, question: str, source: Source) -> bool:
    """Whether a bare answer of a word or two stands in a source about the question. A computation is its own."""
    asked = set(words(question))
    if len(words(claim)) > 2 or not asked or source.kind == "computation":
        return True
    return bool(asked & set(words(f"{source.title} {source.text}")))


def accepted(citations: Sequence[Citation]) -> bool:
    """Whether the answer rests on evidence: at least one claim is supported and none is contradicted."""
    verdicts = {citation.verdict for citation in citations}
    return "supported" in verdicts and "contradicted" not in verdicts
