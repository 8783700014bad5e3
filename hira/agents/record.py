"""Asking a role for a JSON record: validated, asked for once more with the error named, and no further."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

from hira.dialects import record as records
from hira.errors import DialectError, EndpointError
from hira.messages import Message, assistant, user
from hira.prompts import Prompt
from hira.team import Conversation

AGAIN = Prompt(__file__, "record_again")
SERVER_FAULT = 500
M = TypeVar("M")


def _fits(_: object) -> str:
    return ""


@cache
def schema_of(shape: type[Any]) -> Mapping[str, Any] | None:
    """The shape's JSON schema, which takes a millisecond to make."""
    return TypeAdapter(shape).json_schema()


async def record(
    conversation: Conversation, message: Message, shape: type[M], *, wrong: Callable[[M], str] = _fits
) -> M:
    """The record of pydantic model `shape` that the role replies with.

    `wrong` may say what a valid record still gets wrong, empty if nothing. Raises `DialectError` after the second
    reply that cannot be used; the caller then goes on without the model.
    """
    conversation.say(message)
    schema = schema_of(shape)  # type: ignore[arg-type]  # a class is hashable, whatever its metaclass may say
    again = False
    while True:
        try:
            completion = await conversation.turn(schema=schema)
        except EndpointError as error:
            if schema is None or error.status < SERVER_FAULT:
                raise
            schema = None  # llama.cpp fails with 500 when a model does not come to the end of its schema
            continue
        conversation.say(assistant(completion.text))
        try:
            read = records.read(completion, shape)
            if complaint := wrong(read):
                raise DialectError(complaint)
        except DialectError as error:
            if again:
                raise
            again = True
            conversation.say(user(AGAIN.fill(error=error.what)))
        else:
            return read
