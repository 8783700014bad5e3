"""The only place that counts tokens, by an estimate that is the same on every machine.

What a model in this process counts by its own tokenizer is `hira.core.policy.Counts`.
"""

import re
from collections.abc import Callable

# Fitted against o200k_base on papers, code, JSON and HTML: within 3 % there, 13 % low on long digit runs.
_PIECE = re.compile(r"[A-Za-z]+|[0-9]{1,3}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W0-9A-Za-z_]+|\s+|[^\w\s]+|_+")
_BYTES = 4
"""Of a character in UTF-8, at most."""
Counter = Callable[[str], int]


def count(text: str) -> int:
    """About how many tokens a modern byte-pair vocabulary makes of the text."""
    total = 0
    for match in _PIECE.finditer(text):
        piece = match[0]
        size = len(piece)
        if piece[0].isascii() and piece[0].isalpha():
            total += 1 if size <= 9 else (size + 5) // 6
        elif piece.isspace():
            total += piece != " "
        elif piece[0].isascii():
            total += (size + 2) // 3
        else:
            total += 1 if size == 1 else (size + 2) // 3
    return total


def fits(text: str, limit: int) -> bool:
    """Whether a text has at most so many tokens. No token is less than a byte, so short texts are not counted."""
    return len(text) * _BYTES <= limit or count(text) <= limit


def clip(text: str, limit: int, *, middle: bool = False, counted: Counter = count) -> str:
    """At most about `limit` tokens of the text: its beginning, or beginning and end with the `middle` cut out."""
    if len(text) * _BYTES <= limit:
        return text
    total = counted(text)
    if total <= limit:
        return text
    keep = int(len(text) * limit / total)
    if not middle:
        return text[:keep] + " […]"
    return text[: keep // 2] + "\n[… the middle is left out …]\n" + text[len(text) - keep // 2 :]
