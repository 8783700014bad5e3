"""Calls in tags, as the Model Context Protocol is prompted for (MATPO, appendix A).

`<use_mcp_tool>` holds the names of a server and of its tool, and the arguments as one JSON object. Names of tools are
unique in hira, so a server that is missing or misspelt is no reason to refuse a call.
"""

import json
import re
from collections.abc import Mapping, Sequence

from hira.core.messages import Filled
from hira.core.patterns import compile_lazily
from hira.core.policy import Completion
from hira.core.prompts import Prompt
from hira.core.tool import Tool
from hira.policies.dialects import dialect
from hira.policies.dialects.protocol import RESULT, Call, Dialect, Parsed, check_call
from hira.policies.dialects.text_calls import read_turn

INSTRUCTIONS = Prompt(__file__, "instructions", "xml_tools")
BEGIN, END = "<use_mcp_tool>", "</use_mcp_tool>"

_BEGIN = compile_lazily(r"<\s*(use_mcp_tool|tool_response)\s*>", re.IGNORECASE)
_END = compile_lazily(r"<\s*/\s*use_mcp_tool\s*>", re.IGNORECASE)
_TOOL, _TOOL_END = (re.compile(rf"<\s*{slash}tool_name\s*>", re.IGNORECASE) for slash in ("", r"/\s*"))
_ARGUMENTS, _ARGUMENTS_END = (re.compile(rf"<\s*{slash}arguments\s*>", re.IGNORECASE) for slash in ("", r"/\s*"))
# a small model's habit: a fence around nothing but the call itself
_ONE_CALL = compile_lazily(
    r"```\w*\s*<\s*use_mcp_tool\s*>(?:(?!<\s*use_mcp_tool).)*<\s*/\s*use_mcp_tool\s*>\s*```$", re.DOTALL | re.IGNORECASE
)
_ACTING = compile_lazily(r"<(?=\s*/?\s*(?:use_mcp_tool|arguments|tool_name|tool_response)\b)", re.IGNORECASE)


class Xml:
    name = "xml"
    specs = staticmethod(dialect.no_specs)
    results = staticmethod(dialect.format_results)

    def instructions(self, tools: Sequence[Tool]) -> Filled:
        if not tools:
            return Filled("")
        parts = []
        for server in dict.fromkeys(tool.server for tool in tools):
            listed = dialect.format_tools([tool for tool in tools if tool.server == server])
            parts.append(f"Server {server}\n{listed}")
        shown = Filled(self.write(dialect.example(tools[0]), tools[0]))
        return INSTRUCTIONS.fill(tools=Filled("\n\n".join(parts)), example=shown)

    def stops(self, tools: Sequence[Tool], several: int) -> tuple[str, ...]:
        """The end tag, so that a turn ends with its call; with several calls a turn, the tag of a result."""
        return ((END if several == 1 else RESULT),) if tools else ()

    def parse(self, completion: Completion, tools: Sequence[Tool], several: int = 1) -> Parsed:
        text = dialect.turn_of(completion, _BEGIN)
        named = {tool.name: tool for tool in tools}

        def following(position: int) -> dialect.WrittenCall | None:
            begin = dialect.find_unquoted(text, position, _BEGIN, _ONE_CALL)
            if begin is None or begin[1].lower() != "use_mcp_tool":
                return begin and dialect.WrittenCall(begin.start())
            end = _END.search(text, begin.end())
            if not end and completion.finish == "length":
                cut = f"Your call was cut off before {END}. Write it again, shorter."
                return dialect.WrittenCall(begin.start(), error=cut)
            inner = text[begin.end() : end.start() if end else len(text)]
            call, error = _read(inner, named)
            closed = text[begin.start() : end.end() if end else len(text)]
            if not end:
                closed = closed + END if completion.stop == END else f"{closed.rstrip()}\n{END}"
            return dialect.WrittenCall(begin.start(), end.end() if end else len(text), closed, call, error)

        return read_turn(dialect.read(text, following, several), completion, tools, several, self.write)

    def write(self, call: Call, tool: Tool) -> str:
        arguments = _ACTING.sub(r"\\u003c", json.dumps(dict(call.arguments), ensure_ascii=False))
        return (
            f"{BEGIN}\n<server_name>{tool.server}</server_name>\n<tool_name>{call.name}</tool_name>\n"
            f"<arguments>\n{arguments}\n</arguments>\n{END}"
        )


def _read(inner: str, tools: Mapping[str, Tool]) -> tuple[Call | None, str]:
    begin = _ARGUMENTS.search(inner)
    *_, end = (None, *_ARGUMENTS_END.finditer(inner, begin.end())) if begin else (None,)
    arguments = inner[begin.end() : end.start()] if begin and end else None
    outside = (inner[: begin.start()], inner[end.end() :]) if begin and end else (inner,)
    name = ""
    for text in outside:
        opens = _TOOL.search(text)
        closes = opens and _TOOL_END.search(text, opens.end())
        name = name or (text[opens.end() : closes.start()].strip() if opens and closes else "")
    if not name:
        return None, "The call names no tool: write <tool_name>…</tool_name> in it."
    if arguments is None and (tool := tools.get(name)) and tool.parameters.get("required"):
        return None, f"The call of {tool.name} lacks <arguments>{{…}}</arguments> with {', '.join(tool.fields)}."
    return check_call(name, (arguments or "").strip(), tools)


DIALECT: Dialect = Xml()
