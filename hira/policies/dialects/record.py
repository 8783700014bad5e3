"""Parses the JSON record that a reply holds."""

import json
import re
from contextlib import suppress
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from hira.core.errors import DialectError
from hira.core.patterns import compile_lazily
from hira.core.policy import Completion
from hira.core.tool import describe_faults
from hira.policies.dialects.answer import strip_thought
from hira.policies.dialects.lenient import Beyond, decode_first, decode_json

M = TypeVar("M")
_FENCE = compile_lazily(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)


def read_record(completion: Completion, shape: type[M]) -> M:
    """The record of the pydantic model `shape` in a reply. Raises `DialectError` with its fault, for the model."""
    text = strip_thought(completion) or completion.reasoning
    objects = _objects(text)
    if not objects:
        cut = " Your reply was cut off at the length limit; write less." if completion.finish == "length" else ""
        raise DialectError(f"Your reply holds no JSON object.{cut}")
    complaint = ""
    for candidate in objects:
        try:
            return TypeAdapter(shape).validate_python(candidate)
        except ValidationError as error:
            complaint = describe_faults(error, "object")
        except Exception as error:  # noqa: BLE001 - a validator of the program must not cost the answer
            complaint = f"{type(error).__name__}: {error}".rstrip(": ")
    raise DialectError(f"Your JSON object does not fit: {complaint}.")


def _objects(text: str) -> list[Any]:
    """Find every JSON object in the text: fenced ones first, then the others, the last one first."""
    fenced, plain = list[Any](), list[Any]()
    for block in _FENCE.findall(text):
        with suppress(json.JSONDecodeError):
            fenced.append(decode_json(block))
    position = text.find("{")
    while position >= 0:
        try:
            value, end = decode_first(text, position)
        except Beyond:
            break
        except json.JSONDecodeError:
            position = text.find("{", position + 1)
        else:
            plain.append(value)
            position = text.find("{", end)
    return [value for value in fenced if value is not None] + plain[::-1]
