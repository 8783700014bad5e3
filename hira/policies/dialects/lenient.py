"""Reads JSON as models write it. `value_reader` reads the rest, which is nearly JSON."""

import json
from contextlib import suppress
from typing import Any

_DECODER = json.JSONDecoder(strict=False)


class Beyond(json.JSONDecodeError):
    """JSON that Python does not read although nothing in it is misspelt: nested too deeply, numbers too long."""


def decode_json(text: str) -> Any:
    """The value that the whole text is. Raises `json.JSONDecodeError` and nothing else."""
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError:
        raise
    except (RecursionError, ValueError) as error:
        raise _beyond(error, text) from None


def decode_first(text: str, position: int = 0) -> tuple[Any, int]:
    """The value that begins at a place of the text, and its end. Raises `json.JSONDecodeError` and nothing else."""
    try:
        return _DECODER.raw_decode(text, position)
    except json.JSONDecodeError:
        raise
    except (RecursionError, ValueError) as error:
        raise _beyond(error, text) from None


def _beyond(error: Exception, text: str) -> Beyond:
    return Beyond("it is nested too deeply" if isinstance(error, RecursionError) else "a number is too long", text, 0)


def read_value(text: str, position: int = 0) -> tuple[Any, int]:
    """The value that begins at a place of the text, and where it ends.

    Raises `json.JSONDecodeError` with what strict JSON would have been refused for.
    """
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
