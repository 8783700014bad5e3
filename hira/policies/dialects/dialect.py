"""The shared parts of the dialects whose calls are text: reading turns, and describing tools."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hira.core.messages import Filled, Message, assistant
from hira.core.policy import Completion
from hira.core.prompts import safe
from hira.core.sanitize import clean
from hira.core.tool import Tool
from hira.policies.dialects.answer import verbatim
from hira.policies.dialects.protocol import (
    RESULT,
    RESULT_END,
    Call,
    Dialect,
    Explained,
    Parsed,
    check_call,
    coerce_value,
    example,
    explain,
    is_alone,
    is_mentioned,
)
from hira.policies.dialects.text_calls import CODE

__all__ = [
    "RESULT", "RESULT_END", "Call", "Dialect", "Explained", "Parsed", "WrittenCall", "check_call", "coerce_value",
    "example", "explain", "find_unquoted", "format_results", "format_tools", "is_alone", "is_mentioned", "no_specs",
    "parameters", "read", "turn_of",
]  # fmt: skip

_MENTIONS = 100
"""Calls that one turn may mention before it makes one."""


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call in the text of a turn, from `start` to `end`; `closed` is the form that the conversation keeps. Without a
    `call`, `error` explains its fault to the model; without either, the model began to write a result itself, and its
    text from `start` on is dropped."""

    start: int
    end: int = 0
    closed: str = ""
    call: Call | None = None
    error: str = ""


def turn_of(completion: Completion, begin: "re.Pattern[str]") -> str:
    """The text that may contain calls: the visible one, or the reasoning if the stop string fired in there. White space
    around it stays, so that a conversation of token ids continues exactly where the model stopped."""
    if not completion.text.strip() and begin.search(completion.reasoning):
        return completion.reasoning
    text = verbatim(completion)
    if completion.stop is None or text == completion.text:
        return text
    return text + completion.text[len(completion.text.rstrip()) :]


def find_unquoted(
    text: str, position: int, begin: "re.Pattern[str]", habit: "re.Pattern[str]"
) -> "re.Match[str] | None":
    """The next `begin` that is not in a code span. A fence that is all of it a call (`habit`) is no quotation."""
    match = begin.search(text, position)
    while match:
        quoted = CODE.search(text, position)
        if not quoted or match.start() < quoted.start() or (match.start() < quoted.end() and habit.match(quoted[0])):
            return match
        position = quoted.end()
        if match.start() < position:
            match = begin.search(text, position)
    return None


def read(text: str, following: Callable[[int], WrittenCall | None], several: int) -> Parsed:
    """Read a turn; `following` finds the next call from a place on. A call that is only mentioned stays text."""
    calls, passages = list[Call](), list[str]()
    kept, position, looked, said_until, mentions = "", 0, 0, len(text), 0
    while len(calls) < several and mentions < _MENTIONS and (written := following(looked)):
        if written.end and is_mentioned(text, written.start, written.end):
            looked, mentions = written.end, mentions + 1
            continue
        passage = text[written.start : written.end or len(text)]
        if written.error:
            spoken = text[: written.start].strip()
            return Parsed(spoken, (), assistant(clean(text)), written.error, (passage,))
        said_until = said_until if calls else written.start
        kept += text[position : written.start]
        if written.call is None:
            break
        calls.append(written.call)
        passages.append(passage)
        kept += written.closed
        position = looked = written.end
    whole = text[:said_until]
    if calls:
        kept += text[position:] if not text[position:].strip() else ""
        return Parsed(whole.strip(), tuple(calls), assistant(kept), passages=tuple(passages))
    return Parsed(whole.strip(), (), assistant(whole if said_until == len(text) else whole.strip()))


def no_specs(tools: Sequence[Tool]) -> tuple[Mapping[str, Any], ...]:
    """Return the function definitions of calls that are text: none."""
    del tools
    return ()


def format_tools(tools: Sequence[Tool]) -> str:
    """The tools as lines of a prompt: what each is for, and a line for each parameter."""
    lines: list[str] = []
    for tool in tools:
        lines += [f"- {tool.name}: {clean(tool.description)}", *(f"  - {parameter}" for parameter in parameters(tool))]
    return "\n".join(lines)


def parameters(tool: Tool) -> list[str]:
    """A line on each parameter of a tool: its name, its type, and its description."""
    if tool.parameters.get("$defs"):
        return [f"arguments, by this JSON schema: {clean(json.dumps(tool.parameters, ensure_ascii=False))}"]
    lines = []
    for name in tool.fields:
        schema = tool.parameters["properties"][name]
        kind, beside = schema.get("type"), {*schema} - {"type", "description", "title", "default"}
        if not isinstance(kind, str) or beside:  # more than a word can say
            kind = json.dumps({key: value for key, value in schema.items() if key not in ("description", "title")})
        optional = "" if name in tool.parameters.get("required", ()) else ", optional"
        text = str(schema.get("description", "")).strip()
        lines.append(clean(f"{name} ({kind}{optional}){f': {text}' if text else ''}"))
    return lines


def format_results(
    pairs: Sequence[tuple[Call, str]],
    notice: Filled | None = None,
    tags_of: Callable[[Call], tuple[str, str]] = lambda _: (RESULT, RESULT_END),
) -> tuple[Message, ...]:
    """Format results as one user message, each between its tags, in the calls' order, then hira's own notice."""
    parts = ["\n".join((begin, safe(text), end)) for call, text in pairs for begin, end in (tags_of(call),)]
    text = "\n\n".join([*parts, notice] if notice else parts)
    return (Message("user", text, prompt="result", values={"results": list(pairs)}),)
