"""JSON records that a model was asked for, read tolerantly and validated by pydantic."""

import json
import re
from typing import Any, TypeVar

from hira.core.errors import DialectError
from hira.core.policy import Completion
from hira.policies.dialects.answer import strip_thought
from hira.policies.dialects.decoded import Beyond, decode_json, first

M = TypeVar("M")
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)


def read(completion: Completion, shape: type[M]) -> M:
    """The record of the pydantic model `shape` in a reply. `DialectError` tells the model what was wrong with it."""
    from pydantic import TypeAdapter, ValidationError

    text = strip_thought(completion) or completion.reasoning
    found = _objects(text)
    if not found:
        cut = " Your reply was cut off at the length limit; write less." if completion.finish == "length" else ""
        raise DialectError(f"Your reply holds no JSON object.{cut}")
    complaint = ""
    for one in found:
        try:
            return TypeAdapter(shape).validate_python(one)
        except ValidationError as error:
            complaint = "; ".join(
                f"{'.'.join(map(str, wrong['loc'])) or 'object'}: {wrong['msg'].lower()}" for wrong in error.errors()
            )
    raise DialectError(f"Your JSON object does not fit: {complaint}.")


def _objects(text: str) -> list[Any]:
    """Every JSON object that stands in the text: fenced ones first, then the others, the last one first."""
    fenced = [value for block in _FENCE.findall(text) if (value := _first(block)) is not None]
    plain: list[Any] = []
    at = text.find("{")
    while at >= 0:
        try:
            value, end = first(text, at)
        except Beyond:
            break
        except json.JSONDecodeError:
            at = text.find("{", at + 1)
        else:
            plain.append(value)
            at = text.find("{", end)
    return fenced + plain[::-1]


def _first(block: str) -> Any:
    try:
        return decode_json(block)
    except json.JSONDecodeError:
        return None
