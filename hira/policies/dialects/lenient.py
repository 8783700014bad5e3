"""Reads JSON as models write it. `value_reader` reads the rest, which is nearly JSON."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
_DECODER = json.JSONDecoder(strict=False)


class Beyond(json.JSONDecodeError):
    """JSON that Python does not read although nothing in it is misspelt: nested too deeply, numbers too long."""


def decode_json(text: str) -> Any:
    """The value that the whole text is. Raises `json.JSONDecodeError` and nothing else."""
    return _decode(lambda: _DECODER.decode(text), text)


def decode_first(text: str, position: int = 0) -> tuple[Any, int]:
    """The value that begins at a place of the text, and its end. Raises `json.JSONDecodeError` and nothing else."""
    return _decode(lambda: _DECODER.raw_decode(text, position), text)


def _decode(read: Callable[[], T], text: str) -> T:
    try:
        return read()
    except json.JSONDecodeError:
        raise
    except (RecursionError, ValueError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else "a number is too long"
        raise Beyond(why, text, 0) from None


def read_value(text: str, position: int = 0) -> tuple[Any, int]:
    """The value that begins at a place of the text, nearly JSON or JSON, and its end. Raises strict JSON's
    `json.JSONDecodeError`."""
    try:
        return decode_first(text, position)
    except Beyond:
        raise
    except json.JSONDecodeError:
        from hira.policies.dialects.value_reader import Unclear, ValueReader  # most JSON is written as it should be

        reader = ValueReader(text, position)
        with suppress(Unclear):
            return reader.value(), reader.position
        raise
