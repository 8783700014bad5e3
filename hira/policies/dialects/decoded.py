"""JSON that a model wrote: what is beyond reading is at fault like what is misspelt."""

import json
from typing import Any

_DECODER = json.JSONDecoder(strict=False)


class Beyond(json.JSONDecodeError):
    """JSON that Python does not read although nothing in it is misspelt: nested too deeply, numbers too long."""


def decode_json(text: str) -> Any:
    """The value that the whole text is. Raises `json.JSONDecodeError` and nothing else."""
    try:
        return json.loads(text, strict=False)
    except json.JSONDecodeError:
        raise
    except (RecursionError, ValueError) as error:
        raise _beyond(error, text) from None


def first(text: str, at: int = 0) -> tuple[Any, int]:
    """The value that begins at a place of the text, and where it ends. Raises `json.JSONDecodeError` and nothing
    else."""
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError:
        raise
    except (RecursionError, ValueError) as error:
        raise _beyond(error, text) from None


def _beyond(error: Exception, text: str) -> Beyond:
    return Beyond("it is nested too deeply" if isinstance(error, RecursionError) else "a number is too long", text, 0)
