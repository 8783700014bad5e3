"""The passages that a result shows, and the notes that were recalled, as parts of sources to read."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_HEADER = re.compile(r"^\[(s\d+)\] (.*) \(([^()\n]*)\)$", re.MULTILINE)
_NOTE = re.compile(r"^(.*) \(source: (s\d+)[^()]*\)$")


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a source as it was shown: `id` is what to cite, `location` where it lies."""

    id: str
    title: str
    location: str
    text: str


def passages_of(text: str) -> list[Passage]:
    """The passages in a result, each once; empty if it holds none."""
    heads = list(_HEADER.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    found = [
        Passage(head[1], head[2], head[3], text[head.end() : end].strip().removesuffix(f"[/{head[1]}]").strip())
        for head, end in zip(heads, ends, strict=False)
    ]
    return list(dict.fromkeys(found))


def noted(notes: Sequence[str]) -> list[Passage]:
    """The recalled notes that name a source, as passages of it."""
    return [Passage(match[2], "", "", match[1]) for note in notes if (match := _NOTE.match(note))]
