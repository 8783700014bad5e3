"""The only place that counts tokens: with tiktoken, if it is installed and its vocabulary is on this machine, otherwise
by an estimate.
"""

import hashlib
import math
import os
import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

# Fitted against o200k_base on papers, code, JSON and HTML: within 3 % there, 13 % low on long digit runs.
_PIECE = re.compile(r"[A-Za-z]+|[0-9]{1,3}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W0-9A-Za-z_]+|\s+|[^\w\s]+|_+")
_VOCABULARY = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
_NEWEST = "o200k_base"
_BYTES = 4
"""The most bytes of a character in UTF-8."""
_SAME_FILE = {"o200k_harmony": _NEWEST}
_MOST = 10**12
_DIGITS = 12
Counter = Callable[[str], int]


@cache
def _encoding(name: str = _NEWEST) -> Any:
    """Return tiktoken's encoding, None without it or its cached file: nothing is ever downloaded."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    cached = Path(folder or Path(tempfile.gettempdir()) / "data-gym-cache")
    place = _VOCABULARY.format(_SAME_FILE.get(name, name))
    if not (cached / hashlib.sha1(place.encode(), usedforsecurity=False).hexdigest()).exists():
        return None
    try:
        import tiktoken
    except ImportError:
        return None
    return tiktoken.get_encoding(name)


@cache
def vocabulary_of(model: str) -> str:
    """Return the name of the encoding of one of OpenAI's models, whoever serves it; empty for any other, and if
    tiktoken, which knows them, is not installed.

    >>> vocabulary_of("litellm/openai/gpt-4o"), vocabulary_of("gpt-4"), vocabulary_of("qwen3-32b")
    ('o200k_base', 'cl100k_base', '')
    """
    try:
        from tiktoken.model import encoding_name_for_model

        return encoding_name_for_model(model.partition(",")[0].rpartition("/")[2])
    except (ImportError, KeyError):
        return ""


def counter(model: str) -> Counter:
    """Return the counter of a model's tokens: of its vocabulary, if its name shows that, otherwise `count`."""
    encoding = _encoding(vocabulary_of(model) or _NEWEST)
    return (lambda text: _encode(encoding, text)) if encoding else count


def estimate(text: str) -> int:
    """Return about how many tokens a modern byte-pair vocabulary splits the text into."""
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


def count(text: str) -> int:
    encoding = _encoding()
    return _encode(encoding, text) if encoding else estimate(text)


def _encode(encoding: Any, text: str) -> int:
    return len(encoding.encode(text, disallowed_special=()))


def fits(text: str, limit: int) -> bool:
    """Return whether a text has at most `limit` tokens. Short texts are not counted, as a token has a byte or more."""
    return len(text) * _BYTES <= limit or count(text) <= limit


def clip(text: str, limit: int, *, middle: bool = False, counted: Counter = count) -> str:
    """Return at most about `limit` tokens of the text: its beginning, or beginning and end without the `middle`."""
    if len(text) * _BYTES <= limit:
        return text
    total = counted(text)
    if total <= limit:
        return text
    keep = int(len(text) * limit / total)
    if not middle:
        return text[:keep] + " […]"
    return text[: keep // 2] + "\n[… the middle is left out …]\n" + text[len(text) - keep // 2 :]


def read_count(number: Any) -> int:
    """Parse a server's count, a number or text; 0 for anything else."""
    if isinstance(number, str) and number.isdecimal() and len(number) <= _DIGITS:
        number = int(number)
    if not isinstance(number, int | float) or (isinstance(number, float) and not math.isfinite(number)):
        return 0
    return min(max(0, int(number)), _MOST)
