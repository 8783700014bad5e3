"""Asks a role for a JSON record, which is validated; after an error, it is requested once more with the error named.
Distinguishes a form that a reply repeats from one that it fills in."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, create_model

from hira.agents.run_context import Conversation
from hira.core.errors import DialectError, EndpointError
from hira.core.messages import Message, assistant, user
from hira.core.prompts import Prompt, is_copied
from hira.policies.dialects.record import read_record

AGAIN = Prompt(__file__, "remarks", "record_again")
SERVER_FAULT = 500
_MARKUP = re.compile(r"[`*_#>-]+")
M = TypeVar("M", bound=BaseModel)


class Reply(BaseModel):
    """A record that a model writes. Its schema requires every field: a server that enforces it has required fields
    written in their order, so that a reason comes before the choice. A reply is read tolerantly all the same."""

    model_config = ConfigDict(
        json_schema_extra=lambda schema: schema.update(required=list(schema["properties"])), defer_build=True
    )


@cache
def fix_count(shape: type[M], name: str, count: int, least: int | None = None) -> type[M]:
    """Return the model of a reply whose list of this name has `count` items: a small model continues its list unless
    their number is fixed. A reply with fewer is read, down to `least`."""
    exactly: dict[str, JsonValue] = {"minItems": count, "maxItems": count}
    changed: Any = (shape.model_fields[name].annotation, Field(min_length=least, json_schema_extra=exactly))
    return create_model(shape.__name__, __base__=shape, **{name: changed})


@cache
def schema_of(shape: type[Any]) -> Mapping[str, Any] | None:
    """The shape's JSON schema, which takes a millisecond to make."""
    return TypeAdapter(shape).json_schema()


async def ask_for_record(
    conversation: Conversation,
    message: Message,
    shape: type[M],
    *,
    wrong: Callable[[M], str] = lambda _: "",
    schema: Mapping[str, Any] | None = None,
) -> M:
    """Ask the role for a record of the pydantic model `shape`.

    `schema` is the JSON schema, by default that of the shape.

    `wrong` may describe the faults of a valid record, empty for none; the model then corrects its record. An unreadable
    reply is left out of the second request, which names its fault, because a model repeats what it reads. Raises
    `DialectError` after the second unusable reply; the caller then continues without the model.
    """
    conversation.say(message)
    schema = schema or schema_of(shape)
    again = False
    while True:
        try:
            completion = await conversation.turn(schema=schema)
        except EndpointError as error:
            if schema is None or error.status < SERVER_FAULT:
                raise
            schema = None  # llama.cpp fails with 500 when a model does not come to the end of its schema
            continue
        try:
            record = read_record(completion, shape)
        except DialectError as error:
            if again:
                raise
            conversation.messages[-1] = replace(message, text=f"{message.text}\n\n{AGAIN.fill(error=error.what)}")
        else:
            if not (complaint := wrong(record)):
                return record
            if again:
                raise DialectError(complaint)
            conversation.say(assistant(completion.text), user(AGAIN.fill(error=complaint)))
        again = True


def repeats_form(reply: str, form: str) -> bool:
    """Return whether a line of a reply, of five words or more, repeats what a prompt asks for instead of giving it."""
    asked = _MARKUP.sub("", form)
    return any(len(line.split()) >= 5 and is_copied(line, asked) for line in _MARKUP.sub("", reply).splitlines())
