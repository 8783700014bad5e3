"""The messages of a conversation, rewritten in another dialect."""

from collections.abc import Sequence
from dataclasses import replace

from hira.core.messages import Message, ToolCall, assistant
from hira.core.policy import Completion
from hira.core.prompts import safe
from hira.core.tool import Tool
from hira.policies.dialects.lenient import decode_json
from hira.policies.dialects.protocol import Call, Dialect, write_examples

_MOST = 1_000
"""Calls of one turn; whatever it holds was accepted before."""


def rewrite_messages(
    messages: Sequence[Message], tools: Sequence[Tool], old: Dialect, new: Dialect, hidden_tools: Sequence[Tool] = ()
) -> list[Message]:
    """The messages of a conversation in the dialect `old` with its calls, also those of `hidden_tools`, as text in the
    dialect `new`, and the new instructions in its prompts. Consecutive results become one message."""
    instructions, tells = (old.instructions(tools), write_examples(old, tools)), new.instructions(tools)
    known = {tool.name: tool for tool in (*tools, *hidden_tools)}
    rewritten: list[Message] = []
    waiting: list[tuple[Call, str]] = []
    for message in messages:
        if message.role == "tool":
            waiting += [(call, message.text) for call, _ in message.values.get("results", ())]
            continue
        if waiting:
            rewritten += new.results(waiting)
            waiting = []
        if message.calls:
            calls = "".join(f"\n{_write_native_call(call, known, new)}" for call in message.calls)
            rewritten.append(assistant(f"{message.text}{calls}".strip()))
        elif message.role == "assistant":
            parsed = old.parse(Completion(message.text), [*known.values()], _MOST)
            calls = "".join(f"\n{new.write(call, known[call.name])}" for call in parsed.calls)
            rewritten.append(assistant(f"{parsed.text}{calls}".strip()) if calls else message)
        elif told := next((text for text in instructions if text and safe(text) in message.text), None):
            values = {name: tells if value == told else value for name, value in message.values.items()}
            text = message.text.replace(safe(told), safe(tells))
            rewritten.append(replace(message, text=text, prompt=message.prompt, values=values))
        else:
            rewritten.append(message)
    return [*rewritten, *(new.results(waiting) if waiting else ())]


def _write_native_call(call: ToolCall, known: dict[str, Tool], dialect: Dialect) -> str:
    """Write a native call as text; an unreadable one, or one of an unknown tool, is only mentioned."""
    try:
        arguments = decode_json(call.arguments or "{}")
    except ValueError:
        arguments = None
    if call.name not in known or not isinstance(arguments, dict):
        return safe(f"(a call of {call.name} that could not be read)")
    return dialect.write(Call(call.name, arguments), known[call.name])
