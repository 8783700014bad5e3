"""Passages of a prompt and their sentences, as plain words with what surrounds them."""

import re
from dataclasses import dataclass
from functools import lru_cache

from hira.core.bm25 import words
from hira.core.tool import LEFT_OUT
from hira.evidence import OUTPUT
from hira.evidence.passages import POINTERS, Passages, split_sentences
from hira.evidence.sentences import FENCE

_HEADER = re.compile(r"^\[(s\d+)\] (.*) \(([^()\n]*)\)$", re.MULTILINE)
_MARKUP = re.compile(
    r"^[\s>#]*(?:[-*+•]\s+|\d{1,3}[.)]\s+|row \d+: )?|!?\[(?=[^\]]+\]\([^()\s]*\))|(?<=\w)\]\([^()\s]*\)"
    r"|\*\*|__|`+|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)"
)


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
    of the sentence `before` it that its pronoun points back to. `subject` is the first of its own, if it has none."""

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
    return [one for one in split_sentences(text) if one.endswith("?")] or [text]


@lru_cache(maxsize=2_000)
def read_sentences(passage: Passage) -> tuple[Sentence, ...]:
    """The sentences of a passage. Questions, headings, code, rows of tables and what only announces are none."""
    read, found = Passages(FENCE.sub("\n", passage.text)), list[Sentence]()
    title = frozenset(words(passage.title))
    for at, (sentence, heading, before) in enumerate(zip(read.sentences, read.headings, read.antecedents, strict=True)):
        text = " ".join(_MARKUP.sub("", sentence).replace(" | ", ", ").split())
        stems = words(text)
        heads = at in read.headings or text == passage.title
        if stems and not heads and sentence[0] not in "#|" and not text.endswith(("?", "？", ":", "...", "…")):
            above = title | frozenset(words(read.sentences[heading]) if heading >= 0 else ())
            held = frozenset(words(read.sentences[before]) if before >= 0 else ())
            subject = "" if before >= 0 and read.tokens(at)[0].text.lower() in POINTERS else stems[0]
            found.append(Sentence(text, passage.id, passage.location, frozenset(stems), above, held, subject))
    return tuple(found)
