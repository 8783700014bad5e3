"""Passages of a prompt and their sentences, as plain words with what surrounds them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hira.core.bm25 import words
from hira.core.tool import LEFT_OUT
from hira.evidence import OUTPUT

_HEADER = re.compile(r"^\[(s\d+)\] (.*) \(([^()\n]*)\)$", re.MULTILINE)
_FENCE = re.compile(r"^\s*(?:```|~~~).*?(?:^\s*(?:```|~~~)\s*$|\Z)", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"#{1,6}\s+|(?=[^|.]*› )")
_LEAD = re.compile(r"^[\s>]*(?:[-*+•]\s+|\d{1,3}[.)]\s+|row \d+: )?")
_LINK = re.compile(r"!?\[([^\]]+)\]\([^()\s]*\)")
_MARKUP = re.compile(r"\*\*|__|`+|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)")
_BREAK = re.compile(r"(?<=[.!?])[\"”')\]]*\s+(?=[\"“'(\[]*[A-Z0-9À-ÞА-Я])|(?<=[。！？])")
_ABBREVIATION = re.compile(r"(?:\b[A-Z]|\b(?:e\.g|i\.e|cf|vs|ca|No|St|Dr|Mr|Mrs|Ms|Prof|Jr|Sr))\.$")
_POINTS_BACK = re.compile(r"(?:\w+ \w+,? )?(?:he|she|it|they|his|her|its|their|this|these|that|those)\b", re.IGNORECASE)
_ROW = re.compile(r"\s*\|\s*")


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a source as it was shown: `id` is what to cite, `location` where the source is."""

    id: str
    title: str
    location: str
    text: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as plain text and its content words: its `own`, those of the title and heading `above` it, and those
    of the sentence `before` it if it begins with a pronoun. `subject` is the first of its own, if it does not."""

    text: str
    id: str
    location: str
    own: frozenset[str]
    above: frozenset[str]
    before: frozenset[str]
    subject: str


def find_passages(text: str) -> list[Passage]:
    """The passages that a prompt or a result shows, each once."""
    heads = list(_HEADER.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    found = [
        Passage(head[1], head[2], head[3], part.strip())
        for head, end in zip(heads, ends, strict=False)
        for part in text[head.end() : end].partition(f"[/{head[1]}]")[0].rpartition(OUTPUT)[2].split(LEFT_OUT)
    ]
    return list(dict.fromkeys(found))


def make_query(question: str) -> str:
    """The question's content words, for a search."""
    return " ".join([word for word in re.findall(r"[\w][\w’'./-]*", question) if words(word)][:24]) or question


def split_questions(text: str) -> list[str]:
    """The questions of a text that asks several at once."""
    return [one for one in split_text(text) if one.endswith("?")] or [text]


def split_text(text: str) -> list[str]:
    """The sentences of one paragraph."""
    found: list[str] = []
    for part in _BREAK.split(text):
        if found and _ABBREVIATION.search(found[-1]):
            found[-1] += f" {part}"
        elif part.strip():
            found.append(part.strip())
    return found


def read_sentences(passage: Passage) -> Iterator[Sentence]:
    """The sentences of a passage. Questions, headings, fenced code and what only announces something are none."""
    title = frozenset(words(passage.title))
    for heading, paragraph in _paragraphs(passage):
        above, before = title | frozenset(words(heading)), frozenset[str]()
        for text in split_text(paragraph):
            stems = words(text)
            points_back = bool(_POINTS_BACK.match(text))
            held = before if points_back else frozenset()
            before = frozenset(stems) | held
            if stems and not text.endswith(("?", "？", ":", "...", "…")):
                subject = "" if points_back else stems[0]
                yield Sentence(text, passage.id, passage.location, frozenset(stems), above, held, subject)


def _paragraphs(passage: Passage) -> Iterator[tuple[str, str]]:
    """Each paragraph and item of a list in plain words, with the heading above it. Rows of Markdown tables are none."""
    heading, lines = "", list[str]()
    for line in [*_FENCE.sub("\n", passage.text).split("\n"), ""]:
        bare = line.strip()
        headed = _HEADING.match(bare) or bare == passage.title
        begun = _LEAD.match(line)
        if lines and (headed or not bare or bare.startswith("|") or (begun and begun[0].strip())):
            yield heading, " ".join(lines)
            lines = []
        if headed:
            heading = _plain(bare.lstrip("# "))
        elif bare and not bare.startswith("|"):
            lines.append(_plain(line))


def _plain(line: str) -> str:
    """A line of Markdown without its markup."""
    line = _MARKUP.sub("", _LINK.sub(r"\1", _LEAD.sub("", line, count=1)))
    return " ".join(_ROW.sub(", ", line).split()).strip(", ")
