"""A conversation that began in one dialect, as it would stand in another: instructions, calls and results."""

from collections.abc import Sequence
from dataclasses import replace

from hira.core.messages import Message, ToolCall, assistant
from hira.core.policy import Completion
from hira.core.prompts import safe
from hira.core.tool import Tool
from hira.policies.dialects.dialect import Call, Dialect
from hira.policies.dialects.lenient import decode_json

_MOST = 1_000
"""Calls of one turn; whatever it holds was accepted before."""


def rewritten(
    messages: Sequence[Message], tools: Sequence[Tool], old: Dialect, new: Dialect, understood: Sequence[Tool] = ()
) -> list[Message]:
    """The messages of a conversation in the dialect `old`, with its calls as text in the dialect `new`.

    What prompts say about calling these tools is said in the new way; results that stand together become one message.
    Calls of tools that are only `understood` are rewritten as well.
    """
    told, tells = old.instructions(tools), new.instructions(tools)
    known = {tool.name: tool for tool in (*tools, *understood)}
    found: list[Message] = []
    waiting: list[tuple[Call, str]] = []
    for message in messages:
        if message.role == "tool":
            waiting += _pairs(message)
            continue
        if waiting:
            found += new.results(waiting)
            waiting = []
        if message.calls:
            calls = "".join(f"\n{_written(call, known, new)}" for call in message.calls)
            found.append(assistant(f"{message.text}{calls}".strip()))
        elif message.role == "assistant":
            parsed = old.parse(Completion(message.text), [*known.values()], _MOST)
            calls = "".join(f"\n{new.write(call, known[call.name])}" for call in parsed.calls)
            found.append(assistant(f"{parsed.text}{calls}".strip()) if calls else message)
        elif told and safe(told) in message.text:
            values = {name: tells if value == told else value for name, value in message.values.items()}
            text = message.text.replace(safe(told), safe(tells))
            found.append(replace(message, text=text, prompt=message.prompt, values=values))
        else:
            found.append(message)
    return [*found, *(new.results(waiting) if waiting else ())]


def _pairs(message: Message) -> list[tuple[Call, str]]:
    """The call that a message answers, with its text as it stands there; it may have been shortened."""
    return [(call, message.text) for call, _ in message.values.get("results", ())]


def _written(call: ToolCall, known: dict[str, Tool], dialect: Dialect) -> str:
    """A native call as text; one that could not be read, or of no tool of these, says only that it was made."""
    try:
        arguments = decode_json(call.arguments or "{}")
    except ValueError:
        arguments = None
    if call.name not in known or not isinstance(arguments, dict):
        return safe(f"(a call of {call.name} that could not be read)")
    return dialect.write(Call(call.name, arguments), known[call.name])
