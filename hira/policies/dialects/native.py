"""Native tool calls: `tool_calls` of the chat API, also as text that no server has read."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from hira.core.messages import Filled, Message, ToolCall, assistant, user
from hira.core.policy import Completion
from hira.core.prompts import Prompt, safe
from hira.core.tool import Tool
from hira.policies.dialects.answer import strip_thought, verbatim
from hira.policies.dialects.lenient import decode_json
from hira.policies.dialects.protocol import Call, Dialect, Parsed, check_call
from hira.policies.dialects.text_calls import find_calls, fit_arguments, text_of_turn

INSTRUCTIONS = Prompt(__file__, "instructions", "native_tools")


class Native:
    name = "native"

    def instructions(self, tools: Sequence[Tool]) -> Filled:
        return INSTRUCTIONS.fill(tools=", ".join(tool.name for tool in tools) or "none")

    def stops(self, tools: Sequence[Tool], several: int) -> tuple[str, ...]:
        del tools, several
        return ()

    def specs(self, tools: Sequence[Tool]) -> tuple[Mapping[str, Any], ...]:
        return tuple(tool.spec for tool in tools)

    def parse(self, completion: Completion, tools: Sequence[Tool], several: int = 1) -> Parsed:
        text = strip_thought(completion)
        written = completion.calls[:several]
        if not written:
            return _read_calls_in_text(completion, tools, several)

        def fault(error: str) -> Parsed:
            # bad arguments are not repeated to an endpoint that would refuse them
            return Parsed(text, (), assistant(text, tuple(replace(call, arguments="{}") for call in written)), error)

        known = {tool.name: tool for tool in tools}
        calls: list[Call] = []
        for call in written:
            if (tool := known.get(call.name)) is None:
                return fault(check_call(call.name, {}, known)[1])
            read, error = check_call(call.name, fit_arguments(call.arguments or "{}", tool), known)
            if read is None:
                cut = " The call was cut off at the length limit." if completion.finish == "length" else ""
                return fault(error + cut)
            calls.append(Call(call.name, read.arguments, call.id))
        message = assistant(verbatim(completion), tuple(map(_repair, written, calls)))
        return Parsed(text, tuple(calls), message, left_out=len(completion.calls) - len(written))

    def results(self, pairs: Sequence[tuple[Call, str]], notice: Filled | None = None) -> tuple[Message, ...]:
        lines = [
            Message("tool", safe(text), call_id=call.id, prompt="result", values={"results": [(call, text)]})
            for call, text in pairs
        ]
        return (*lines, user(notice)) if notice else tuple(lines)

    def write(self, call: Call, tool: Tool) -> str:
        del call, tool
        return ""


def _read_calls_in_text(completion: Completion, tools: Sequence[Tool], several: int) -> Parsed:
    """Parse a turn without a structured call: its text, or the calls that the server left in it."""
    parsed = Parsed(strip_thought(completion), (), assistant(verbatim(completion)))
    text = text_of_turn(parsed, completion)
    span = find_calls(text, tools, cut=completion.finish == "length", several=several)
    if span is None:
        return parsed
    spoken = text[: span.start].rstrip()
    # the same reply has the same ids whenever it is read, so that a run that is replayed asks the same
    name = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=4).hexdigest()
    calls = tuple(Call(call.name, call.arguments, f"{name}{index}") for index, call in enumerate(span.calls))
    made = tuple(ToolCall(call.id, call.name, json.dumps(dict(call.arguments), ensure_ascii=False)) for call in calls)
    loose = span.loose and bool(calls)
    return Parsed(spoken.strip(), calls, assistant(spoken, made), span.error, span.passages, loose)


def _repair(written: ToolCall, call: Call) -> ToolCall:
    with suppress(json.JSONDecodeError):
        if decode_json(written.arguments) == call.arguments:
            return written
    return replace(written, arguments=json.dumps(dict(call.arguments), ensure_ascii=False))


DIALECT: Dialect = Native()
