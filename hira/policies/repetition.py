"""Detects replies whose end repeats one piece of text exactly, or is a numbered list of the same items. It costs
little: it runs once in some dozens of tokens, as searches that Python does in C."""

import re
from dataclasses import dataclass, field
from itertools import takewhile

REPEATS = 4
SHORTEST = 600
"""The fewest characters of a repetition: shorter ones occur in tables and in code."""
LONGEST = 2_000
"""Characters of the longest piece whose repetition is noticed."""
_EVERY = 128
_NEEDLE = 48
_LINE = re.compile(r"[^\n]*\S[^\n]*")
_NUMBERED = re.compile(r"[\s*(\[-]*\d+[.):\]]+\s+(\S.*)")


def find_repetition(text: str) -> int | None:
    """How much of the text is worth keeping if its end only repeats itself: all up to the end of the first time, and of
    the word there. None if the end is not at least four times the same, in at least 600 characters.
    """
    end = len(text)
    if end < SHORTEST:
        return None
    needle, lowest = text[-_NEEDLE:], max(0, end - LONGEST - _NEEDLE)
    position = text.rfind(needle, lowest, end - 1)
    while position >= 0:
        period = end - _NEEDLE - position
        begin = end - max(SHORTEST, REPEATS * period)
        if begin >= 0 and text[begin : end - period] == text[begin + period :]:
            while begin and text[begin - 1] == text[begin - 1 + period]:
                begin -= 1
            kept = begin + period
            ends = (
                index
                for index in range(kept, kept + period)
                if not (text[index - 1].isalnum() and text[index].isalnum())
            )
            return next(ends, kept)
        position = text.rfind(needle, lowest, position + _NEEDLE - 1)
    return _find_repeated_items(text)


def _find_repeated_items(text: str) -> int | None:
    """The same for the items of a numbered list at the end, whose last line may still grow."""
    whole = text.rfind("\n") + 1
    lines = list(_LINE.finditer(text, 0, whole))[::-1]
    items = [str(match[1]) for match in takewhile(bool, (_NUMBERED.fullmatch(line[0]) for line in lines)) if match]
    for period in range(1, len(items) // REPEATS + 1):
        same = takewhile(bool, (item == before for item, before in zip(items, items[period:], strict=False)))
        count = sum(same) + period
        if count >= REPEATS * period and lines[0].end() - lines[count - 1].start() >= SHORTEST:
            return int(lines[count - period].end())
    return None


@dataclass(slots=True)
class Circling:
    """Checks the end of a text that comes in pieces."""

    _end: str = ""
    _new: list[str] = field(default_factory=list)
    _size: int = 0

    def take(self, piece: str) -> bool:
        """Take the next piece in; whether the text has begun to repeat itself."""
        self._new.append(piece)
        self._size += len(piece)
        if self._size < _EVERY:
            return False
        self._end = (self._end + "".join(self._new))[-REPEATS * LONGEST :]
        self._new, self._size = [], 0
        return find_repetition(self._end) is not None
