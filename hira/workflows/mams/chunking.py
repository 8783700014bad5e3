"""Cuts the results of a turn into chunks, at headings, paragraphs, rows and sentences (MaMs, section 3.4)."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from hira.agents.calls import frame_source
from hira.core.messages import Filled
from hira.core.sanitize import clean
from hira.core.tokens import count, fits
from hira.evidence import Source

_FENCE = re.compile(r"\s*(?:```|~~~)")
_HEADING = re.compile(r"#{1,6}\s+\S")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])")
_WORD = re.compile(r"\s+")
_SEAM = 2
"""The most tokens that joining two texts adds to their sum."""


Read = tuple[Source, str]
"""A source and the text of it that was shown."""
Key = tuple[str, str]
"""The id of a source and a text of it: what tells two texts apart while a source grows."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of the results, formatted for a prompt, and the ids of its sources."""

    text: Filled
    sources: tuple[str, ...]
    size: int


def size(source: Source, text: str) -> int:
    """Tokens of a text in its frame."""
    return count(_frame(source, clean(text))) + _SEAM


def split_into_chunks(read: Iterable[Read], limit: int) -> list[Chunk]:
    """The texts in order as chunks of at most about `limit` tokens. Short texts share a chunk, long ones are split."""
    chunks: list[Chunk] = []
    for source, text in read:
        frame = count(_frame(source, "")) + _SEAM
        for part in split(clean(text).strip(), max(1, limit - frame)):
            shown = _frame(source, part.strip("\n"))
            tokens = count(shown)
            if chunks and chunks[-1].size + _SEAM + tokens <= limit:
                last = chunks.pop()
                ids = tuple(dict.fromkeys((*last.sources, source.id)))
                chunks.append(Chunk(Filled(f"{last.text}\n\n{shown}"), ids, last.size + _SEAM + tokens))
            else:
                chunks.append(Chunk(shown, (source.id,), tokens))
    return [Chunk(chunk.text, tuple(filter(None, chunk.sources)), chunk.size) for chunk in chunks]


def _frame(source: Source, text: str) -> Filled:
    """A text in the frame of its source, or as it is where a tool named none."""
    return frame_source(source, text) if source.id else Filled(clean(text))


def split(text: str, limit: int) -> list[str]:
    """The text in parts of at most `limit` tokens that put together are the text again.

    A part ends where a section does if it is at least half full, else between paragraphs; a paragraph that is too long
    is cut between its lines, a line between sentences, a sentence between words. A heading stays with what follows it.
    """
    parts: list[str] = []
    gathered: list[str] = []
    size = 0
    for block in _blocks(text, limit):
        tokens = count(block)
        ends = bool(_HEADING.match(block)) and size * 2 >= limit
        if gathered and (ends or size + tokens > limit):
            first = len(gathered)
            while first and _HEADING.match(gathered[first - 1]):
                first -= 1
            carried = gathered[first:] if first else []
            if count("".join(carried)) > limit - tokens:
                carried = []
            parts.append("".join(gathered[: len(gathered) - len(carried)]))
            gathered, size = carried, count("".join(carried))
        gathered.append(block)
        size += tokens
    return [part for part in [*parts, "".join(gathered)] if part]


def _blocks(text: str, limit: int) -> Iterator[str]:
    """Split into headings, paragraphs and fenced code, each with the empty lines after it, and further if too long."""
    lines: list[str] = []
    fenced = False
    for line in text.splitlines(keepends=True):
        heading = not fenced and bool(_HEADING.match(line))
        after = lines and (not lines[-1].strip() or _HEADING.match(lines[0]))  # a heading is complete with its line
        begins = lines and not fenced and (heading or (line.strip() and after))
        if begins:
            yield from _pieces("".join(lines), limit, _CUTS)
            lines = []
        lines.append(line)
        fenced ^= bool(_FENCE.match(line))
    if lines:
        yield from _pieces("".join(lines), limit, _CUTS)


Cut = Callable[[str], list[str]]


def _between(pattern: "re.Pattern[str]") -> Cut:
    """Return a function that cuts a text after each match and loses nothing."""

    def cut(text: str) -> list[str]:
        ends = [match.end() for match in pattern.finditer(text)]
        return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True) if start < end]

    return cut


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


_CUTS: tuple[Cut, ...] = (_lines, _between(_SENTENCE), _between(_WORD))


def _pieces(text: str, limit: int, cuts: Sequence[Cut]) -> Iterator[str]:
    """The text, or what the first of the cuts makes of it that is too long; at last halves."""
    if fits(text, limit) or len(text) == 1:
        yield text
    elif cuts:
        for piece in cuts[0](text):
            yield from _pieces(piece, limit, cuts[1:])
    else:
        middle = len(text) // 2
        yield from _pieces(text[:middle], limit, ())
        yield from _pieces(text[middle:], limit, ())
