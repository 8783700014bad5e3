"""Native tool calls: the chat API's own `tool_calls`, with results as tool messages."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hira.core.messages import Filled, Message, ToolCall, assistant, user
from hira.core.policy import Completion
from hira.core.prompts import Prompt, safe
from hira.core.tool import Tool
from hira.policies.dialects.answer import strip_thought, verbatim
from hira.policies.dialects.decoded import decode_json
from hira.policies.dialects.dialect import Call, Dialect, Parsed
from hira.policies.dialects.text_calls import fit_arguments, found_in, spoken_in
from hira.policies.dialects.textual import check_call

INSTRUCTIONS = Prompt(__file__, "native_tools")


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
            return _left_in_text(completion, tools, several)
        # bad arguments are not repeated to an endpoint that would refuse them
        message = assistant(text, tuple(replace(call, arguments="{}") for call in written))
        known = {tool.name: tool for tool in tools}
        calls: list[Call] = []
        for call in written:
            if (tool := known.get(call.name)) is None:
                return Parsed(text, (), message, check_call(call.name, {}, known)[1])
            read, error = check_call(call.name, fit_arguments(call.arguments or "{}", tool), known)
            if read is None:
                cut = " The call was cut off at the length limit." if completion.finish == "length" else ""
                return Parsed(text, (), message, error + cut)
            calls.append(Call(call.name, read.arguments, call.id))
        return Parsed(text, tuple(calls), assistant(verbatim(completion), tuple(map(_repaired, written, calls))))

    def results(self, pairs: Sequence[tuple[Call, str]], notice: Filled | None = None) -> tuple[Message, ...]:
        told = [
            Message("tool", safe(text), call_id=call.id, prompt="result", values={"results": [(call, text)]})
            for call, text in pairs
        ]
        return (*told, user(notice)) if notice else tuple(told)

    def write(self, call: Call, tool: Tool) -> str:
        del call, tool
        return ""


def _left_in_text(completion: Completion, tools: Sequence[Tool], several: int) -> Parsed:
    """A turn without a structured call: what was said, or the calls that the server left in the text."""
    own = Parsed(strip_thought(completion), (), assistant(verbatim(completion)))
    found = found_in(own, completion, tools, several)
    if found is None:
        return own
    text = spoken_in(own, completion)
    said = text[: found.start].strip()
    # the same reply has the same ids whenever it is read, so that a run that is replayed asks the same
    name = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=4).hexdigest()
    calls = tuple(Call(call.name, call.arguments, f"{name}{at}") for at, call in enumerate(found.calls))
    made = tuple(ToolCall(call.id, call.name, json.dumps(dict(call.arguments), ensure_ascii=False)) for call in calls)
    return Parsed(said, calls, assistant(said, made), found.error)


def _repaired(written: ToolCall, call: Call) -> ToolCall:
    """The call as the model wrote it where that is what was read; else as it was read."""
    try:
        same = decode_json(written.arguments) == call.arguments
    except json.JSONDecodeError:
        same = False
    return written if same else replace(written, arguments=json.dumps(dict(call.arguments), ensure_ascii=False))


DIALECT: Dialect = Native()
