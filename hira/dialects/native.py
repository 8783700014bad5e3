"""Native tool calls: the chat API's own `tool_calls`, with results as tool messages."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hira.dialects.answer import spoken, verbatim
from hira.dialects.decoded import decoded
from hira.dialects.dialect import Call, Dialect, Parsed, instructing, missing
from hira.messages import Filled, Message, ToolCall, assistant, user
from hira.policy import Completion
from hira.prompts import Prompt, safe
from hira.tools.tool import Tool

INSTRUCTIONS = Prompt(__file__, "native_tools")


class Native:
    name = "native"

    def instructions(self, tools: Sequence[Tool]) -> Filled:
        told = INSTRUCTIONS.fill(tools="\n".join(f"- {tool.name}: {tool.description}" for tool in tools))
        return instructing(told, self.name, tools)

    def stops(self, tools: Sequence[Tool], several: int) -> tuple[str, ...]:
        del tools, several
        return ()

    def specs(self, tools: Sequence[Tool]) -> tuple[Mapping[str, Any], ...]:
        return tuple(tool.spec for tool in tools)

    def parse(self, completion: Completion, tools: Sequence[Tool], several: int = 1) -> Parsed:
        text = spoken(completion)
        written = completion.calls[:several]
        message = assistant(verbatim(completion), written)
        known = {tool.name: tool for tool in tools}
        calls: list[Call] = []
        for call in written:
            if call.name not in known:
                available = ", ".join(known) or "none; answer without one"
                return _wrong(text, message, f"There is no tool named {call.name!r}. Available: {available}.")
            try:
                arguments = decoded(call.arguments or "{}")
            except json.JSONDecodeError as error:
                cut = " The call was cut off at the length limit." if completion.finish == "length" else ""
                return _wrong(
                    text, message, f"The arguments of {call.name} are not valid JSON: {error.msg} at {error.pos}.{cut}"
                )
            if not isinstance(arguments, dict):
                fields = ", ".join(known[call.name].fields)
                return _wrong(text, message, f"The arguments of {call.name} must be one JSON object with: {fields}.")
            if lacking := missing(arguments, known[call.name]):
                return _wrong(text, message, lacking)
            calls.append(Call(call.name, arguments, call.id))
        return Parsed(text, tuple(calls), message)

    def results(self, pairs: Sequence[tuple[Call, str]], notice: Filled | None = None) -> tuple[Message, ...]:
        told = [
            Message("tool", safe(text), call_id=call.id, prompt="result", values={"results": [(call, text)]})
            for call, text in pairs
        ]
        return (*told, user(notice)) if notice else tuple(told)

    def write(self, call: Call, tool: Tool) -> str:
        del call, tool
        return ""


def _wrong(text: str, message: Message, error: str) -> Parsed:
    """A turn whose call cannot be read. Its bad arguments are not repeated to an endpoint that would refuse them."""
    calls = tuple(ToolCall(call.id, call.name, "{}") for call in message.calls)
    return Parsed(text, (), assistant(text, calls), error)


DIALECT: Dialect = Native()
