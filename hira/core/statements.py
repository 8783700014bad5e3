"""Comparing statements: whether one contains another, or says the same with another word."""

from collections.abc import Sequence

SIMILAR = 0.7
"""The share of the longer statement's tokens that precede and follow the one stretch in which two statements differ."""
JOINED = "; "
"""Joins the statements of one entry."""
_QUOTES = "\"'“”„‘’«»"
_STOPS = ".,;:?…。，、；：？"
# A longer statement with one of these may say the opposite of its part.
_TURNING = frozenset(
    """not no never none nobody nothing neither nor cannot without hardly only except unless if whether until false
    falsely untrue wrong wrongly allegedly supposedly denies denied may might could would should""".split()
)


def tokens(statement: str) -> list[str]:
    """Return the words of a statement in order, without punctuation around them; signs stay with their number."""
    return [word.casefold() for word in _words(statement)]


def _words(statement: str) -> list[str]:
    bare = (word.lstrip(_QUOTES).rstrip(_QUOTES + _STOPS) for word in statement.replace("’", "'").split())
    return [word for word in bare if word]


def split_tokens(text: str) -> list[list[str]]:
    """Return the tokens of each statement of an entry."""
    return [tokens(part) for part in text.split(JOINED)]


def contains(more: str, less: str) -> bool:
    """Return whether one entry contains the other, a single statement, word for word and without reversing it."""
    (wanted, *others), size = split_tokens(less), len(tokens(less))
    return not others and any(
        part[start : start + size] == wanted and not _turns_round([*part[:start], *part[start + size :]])
        for part in split_tokens(more)
        for start in range(len(part) - size + 1)
    )


def is_alike(known: str, new: str) -> bool:
    """Return whether the new statement differs from one of the entry in a single short stretch that does not reverse
    it.

    Statements with another name or another number in that stretch are about something else.
    """
    theirs = _words(new)
    for part in known.split(JOINED):
        ours = _words(part)
        front = _common(ours, theirs)
        back = _common(ours[front:][::-1], theirs[front:][::-1])
        mine, other = ours[front : len(ours) - back], theirs[front : len(theirs) - back]
        close = front + back >= SIMILAR * max(len(ours), len(theirs))
        if close and not (_has_mark(mine) and _has_mark(other)) and not _turns_round(mine + other):
            return True
    return False


def _common(first: Sequence[str], other: Sequence[str]) -> int:
    pairs = enumerate(zip(first, other, strict=False))
    return next((index for index, (a, b) in pairs if a.casefold() != b.casefold()), min(len(first), len(other)))


def _has_mark(tokens: Sequence[str]) -> bool:
    return any(sign.isupper() or sign.isdigit() for word in tokens for sign in word)


def _turns_round(tokens: Sequence[str]) -> bool:
    return any(word.casefold() in _TURNING or word.casefold().endswith("n't") for word in tokens)
