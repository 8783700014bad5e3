"""Calls as JSON blocks: an object with `name` and `arguments`, in a fence or bare.

Nothing but that very form is a call, in that order, so that JSON in an answer is an answer.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hira.dialects.decoded import Beyond, first
from hira.dialects.dialect import Call, Dialect, Parsed, instructing
from hira.dialects.textual import RESULT, Written, checked, faulty, listed, read, told, turn_of, unquoted
from hira.messages import Filled, Message, assistant
from hira.policy import Completion
from hira.prompts import Prompt
from hira.tools.tool import Tool

INSTRUCTIONS = Prompt(__file__, "json_tools")

_BEGIN = re.compile(r'\{\s*"(?:name|arguments)"\s*:|<\s*tool_response\s*>', re.IGNORECASE)
_CALL = re.compile(r'\{\s*"name"\s*:\s*"([^"\\\n]{1,80})"\s*,\s*"arguments"\s*:\s*')
# a block that begins with a call is one, also where the arguments hold a fence of their own
_BLOCK = re.compile(r'```\w*\s*\[?\s*\{\s*"(?:name|arguments)"\s*:')
_OPENED = re.compile(r"```\w*\s*(?:\[\s*)?$")
_CLOSED = re.compile(r"[\s\]]*```")
_ACTING = re.compile(r"<(?=\s*/?\s*tool_response\b)", re.IGNORECASE)


class Json:
    name = "json"

    def instructions(self, tools: Sequence[Tool]) -> Filled:
        return instructing(INSTRUCTIONS.fill(tools=Filled(listed(tools))), self.name, tools)

    def stops(self, tools: Sequence[Tool], several: int) -> tuple[str, ...]:
        """The tag of a result: a fence would stop a turn where its call begins."""
        del several
        return (RESULT,) if tools else ()

    def specs(self, tools: Sequence[Tool]) -> tuple[Mapping[str, Any], ...]:
        del tools
        return ()

    def parse(self, completion: Completion, tools: Sequence[Tool], several: int = 1) -> Parsed:
        text = turn_of(completion, _BEGIN)
        reader = _Reader(text, completion, tools)
        parsed = read(text, reader.following, several)
        if parsed.calls and reader.fenced:
            return replace(parsed, message=assistant(f"{parsed.message.text}\n```"))
        return parsed

    def results(self, pairs: Sequence[tuple[Call, str]], notice: Filled | None = None) -> tuple[Message, ...]:
        return told(pairs, notice)

    def write(self, call: Call, tool: Tool) -> str:
        del tool
        written = json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False)
        return "\n```json\n" + _ACTING.sub(r"\\u003c", written) + "\n```\n"


class _Reader:
    """Finds the calls of one turn; `fenced` while a block is open."""

    def __init__(self, text: str, completion: Completion, tools: Sequence[Tool]) -> None:
        self.text = text
        self.cut = completion.finish == "length"
        self.tools = {tool.name: tool for tool in tools}
        self.last = text.rfind('"arguments"')
        self.fenced = False

    def following(self, at: int) -> Written | None:
        text = self.text
        while begin := unquoted(text, at, _BEGIN, _BLOCK):
            start = begin.start()
            if text[start] == "<":
                return Written(start)
            try:
                value, end = first(text, start)
            except json.JSONDecodeError as fault:
                if self.cut or start < self.last or isinstance(fault, Beyond):
                    return Written(start, error=self._unreadable(fault))
                at = begin.end()
                continue
            call, error = self._call(value, start)
            if error:
                return Written(start, error=error)
            if call:
                return self._written(at, start, end, call)
            at = end
        return None

    def _call(self, value: dict[str, Any], start: int) -> tuple[Call | None, str]:
        """The call that an object is, or what is wrong with it; neither if it is none."""
        name = value.get("name")
        if not isinstance(name, str):
            return None, ""
        if "arguments" in value:
            if not _CALL.match(self.text, start):
                return None, f'Write the call of {name} as {{"name": …, "arguments": {{…}}}}, in this order.'
            return checked(name, value["arguments"], self.tools)
        given = value.keys() - {"name"}
        if (tool := self.tools.get(name)) and given and given <= {"parameters", "args", "input", *tool.fields}:
            return None, f'The call of {name} lacks "arguments", one object with {", ".join(tool.fields)}.'
        return None, ""

    def _written(self, at: int, start: int, end: int, call: Call) -> Written:
        if opened := _OPENED.search(self.text, at, start):
            start, self.fenced = opened.start(), True
        if self.fenced and (closed := _CLOSED.match(self.text, end)):
            end, self.fenced = closed.end(), False
        return Written(start, end, self.text[start:end], call)

    def _unreadable(self, fault: json.JSONDecodeError) -> str:
        if self.cut:
            return "Your call was cut off before its JSON ended. Write it again, shorter."
        return f"Your call is not valid JSON: {faulty(fault)}."


DIALECT: Dialect = Json()
