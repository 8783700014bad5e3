"""Where sentences begin and end: one rule for answers, for sources and for `offline`. It takes linear time."""

import re
from collections.abc import Iterator

from hira.evidence.citations import CITED

BULLET = re.compile(r"\s*(?:(?:[-*+•‣>]|\d{1,3}[.)])\s+)*")
FENCE = re.compile(r"^[ \t]*(?:```|~~~)(?s:.*?)(?:^[ \t]*(?:```|~~~)[^\n]*$|\Z)", re.MULTILINE)
WRAPPED = 50
"""A longer line that ends inside a sentence goes on in the next one; shorter lines are items of a list."""
_BEGINS = re.compile(r"\s*(?:#{1,6}\s|[-*+•|>]\s?|\d+[.)]\s)")
_STOP = re.compile(
    rf"(?:(?<=[^\W\d_][^\W\d_])|(?<=[\d)\]\"'”’»%*_`]))[.!?…]++[\"'”’»)\]*_]*+(?:\s*+{CITED.pattern})*+\s++(?=[^a-z\s])"
    rf"|[。！？؟۔।]++[」』”]*+(?:\s*+{CITED.pattern})*+\s*+"
)
_NO_STOP = re.compile(
    r"(?:\b(?:e\.g|i\.e|al|Dr|Mr|Mrs|Ms|Prof|St|Figs?|No|vs|cf|ca|approx|Jr|Sr)|^[\s#*]*\d{1,3})\.\Z", re.MULTILINE
)
"""Abbreviations, and the number of a list item or heading."""


def find_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Begin and end of every sentence, list item and line, with the citation marks behind it."""
    for start, end in _find_blocks(text):
        begin = start
        for match in _STOP.finditer(text, start, end):
            if not _NO_STOP.search(text, max(begin, match.start() - 8), match.start() + 1):
                yield begin, match.end()
                begin = match.end()
        if text[begin:end].strip():
            yield begin, end


def _find_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Lines, each joined with the next one if that goes on with its sentence."""
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
