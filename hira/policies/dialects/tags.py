"""HiRA's special tokens, such as `<|begin_call_subtask|> … <|end_call_subtask|>` (HiRA, appendix).

The tokens of the paper's tools are exactly the paper's; your own tool gets `<|begin_NAME_call|>`. A body is the bare
value if the tool has one parameter, `name: value` lines if it has several, or one JSON object.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from hira.core.messages import Filled, Message
from hira.core.patterns import compile_lazily
from hira.core.policy import Completion
from hira.core.prompts import Prompt
from hira.core.tool import Tool
from hira.policies.dialects.dialect import WrittenCall, find_unquoted, format_results, no_specs, read, turn_of
from hira.policies.dialects.lenient import decode_json
from hira.policies.dialects.protocol import Call, Dialect, Parsed, check_call, coerce_value
from hira.policies.dialects.text_calls import read_turn

INSTRUCTIONS = Prompt(__file__, "instructions", "tags")


class Tag(NamedTuple):
    """The names of one tool's calls and results, and the tokens around them."""

    call: str
    result: str
    begin: str
    end: str
    result_begin: str
    result_end: str


TAGS = {
    "subtask": ("call_subtask", "subtask_result"),
    "search": ("search_query", "search_result"),
    "browse": ("click_link", "click_result"),
    "python": ("code_call", "code_call_result"),
    "look": ("multimodal_call", "multimodal_result"),
}

_BEGIN = compile_lazily(r"<\s*(?:\|\s*)?begin_(\w+)\s*(?:\|\s*)?>", re.IGNORECASE)
_END = compile_lazily(r"<\s*(?:\|\s*)?end_(\w+)\s*(?:\|\s*)?>", re.IGNORECASE)
# a small model's habit: a fence around nothing but the call itself
_ONE_CALL = compile_lazily(
    r"```\w*\s*<\s*(?:\|\s*)?begin_(\w+)\s*(?:\|\s*)?>.*<\s*(?:\|\s*)?end_\1\s*(?:\|\s*)?>\s*```$",
    re.DOTALL | re.IGNORECASE,
)
_FENCED = compile_lazily(r"^\s*```\w*\n(.*?)(?:\n```\s*)?$", re.DOTALL)


def tag(name: str) -> Tag:
    call, result = TAGS.get(name, (f"{name}_call", f"{name}_result"))
    return Tag(call, result, f"<|begin_{call}|>", f"<|end_{call}|>", f"<|begin_{result}|>", f"<|end_{result}|>")


class Tags:
    name = "tags"
    specs = staticmethod(no_specs)

    def instructions(self, tools: Sequence[Tool]) -> Filled:
        parts: list[str] = []
        for tool in tools:
            lines = "\n".join(f"{name}: the {name}" for name in tool.fields)
            names = ("begin", "end", "result_begin", "result_end")
            part = INSTRUCTIONS.fill(
                name=tool.name,
                description=tool.description.rstrip("."),
                body=f"the {tool.fields[0]}" if len(tool.fields) == 1 else f"\n{lines}\n",
                parameters=describe_parameters(tool),
                **{name: Filled(getattr(tag(tool.name), name)) for name in names},
            )
            parts.append(part)
        return Filled("\n\n".join(parts))

    def stops(self, tools: Sequence[Tool], several: int) -> tuple[str, ...]:
        """The end tokens, so that a turn ends with its call; with several calls a turn, the result tokens."""
        return tuple(tag(tool.name).end if several == 1 else tag(tool.name).result_begin for tool in tools)

    def parse(self, completion: Completion, tools: Sequence[Tool], several: int = 1) -> Parsed:
        text = turn_of(completion, _BEGIN)
        called = {tag(tool.name).call: tool for tool in tools}
        results = {tag(tool.name).result for tool in tools}

        def following(position: int) -> WrittenCall | None:
            begin = find_unquoted(text, position, _BEGIN, _ONE_CALL)
            if begin is None or begin[1].lower() in results:
                return begin and WrittenCall(begin.start())
            name = begin[1].lower()
            if name not in called:
                names = ", ".join(f"<|begin_{name}|>" for name in called)
                available = f"Available: {names}." if names else "No tool is available; answer without one."
                error = f"There is no call <|begin_{name}|> here. {available}"
                return WrittenCall(begin.start(), error=error)
            # a server may keep the end token, name it, or silently strip it
            end = next((match for match in _END.finditer(text, begin.end()) if match[1].lower() == name), None)
            if end is None and completion.finish == "length":
                cut = f"Your call was cut off before <|end_{name}|>. Write it again, shorter, and close it."
                return WrittenCall(begin.start(), error=cut)
            inner, tool = text[begin.end() : end.start() if end else len(text)], called[name]
            try:
                call, error = check_call(tool.name, arguments(inner, tool), {tool.name: tool})
            except ValueError as fault:
                call, error = None, f"The body of <|begin_{name}|> cannot be read: {fault}"
            closed = f"<|begin_{name}|>{inner}<|end_{name}|>"
            return WrittenCall(begin.start(), end.end() if end else len(text), closed, call, error)

        return read_turn(read(text, following, several), completion, tools, several, self.write)

    def results(self, pairs: Sequence[tuple[Call, str]], notice: Filled | None = None) -> tuple[Message, ...]:
        return format_results(pairs, notice, lambda call: (tag(call.name).result_begin, tag(call.name).result_end))

    def write(self, call: Call, tool: Tool) -> str:
        return f"{tag(call.name).begin}{body(call.arguments, tool)}{tag(call.name).end}"


def describe_parameters(tool: Tool) -> str:
    """A line on each parameter that has a description."""
    properties = tool.parameters.get("properties", {})
    descriptions = {name: str(properties.get(name, {}).get("description", "")) for name in tool.fields}
    return "".join(f"\n- {name}: {description}" for name, description in descriptions.items() if description)


def body(arguments: Mapping[str, Any], tool: Tool) -> str:
    """Arguments as a body that `arguments` reads back unchanged."""
    if len(tool.fields) == 1 and list(arguments) == tool.fields and isinstance(arguments[tool.fields[0]], str):
        value = str(arguments[tool.fields[0]])
        if value == value.strip() and value and not value.startswith(("{", "```", "python\n")):
            return f" {value} "
    return f" {json.dumps(dict(arguments), ensure_ascii=False)} "


def arguments(inner: str, tool: Tool) -> dict[str, Any]:
    """The arguments in a body: one JSON object, `name: value` lines, or the bare value of the parameter needed."""
    inner, fields = inner.strip(), tool.fields
    if inner.startswith("{"):
        with suppress(json.JSONDecodeError):
            record = decode_json(inner)
            if isinstance(record, dict) and record.keys() <= set(fields):
                return record
    lines = re.compile(rf"^[^\S\n]*({'|'.join(map(re.escape, fields))})\s*:[ \t]*", re.MULTILINE | re.IGNORECASE)
    if len(fields) > 1 and lines.match(inner):
        parts = lines.split(inner)[1:]
        return {
            name.lower(): coerce_value(value.strip(), tool, name.lower())
            for name, value in zip(parts[::2], parts[1::2], strict=True)
        }
    required = tool.parameters.get("required", fields)
    if not inner and not required:
        return {}
    if not fields or len(required) > 1:
        raise ValueError(f"write one line for each of {', '.join(f'{name}:' for name in required)}")
    if not inner:
        raise ValueError(f"it is empty; write the {fields[0]} in it")
    if fields[0] == "code":
        inner = (fenced[1] if (fenced := _FENCED.match(inner)) else inner).removeprefix("python\n").strip("\n")
    return {fields[0]: coerce_value(inner, tool, fields[0])}


DIALECT: Dialect = Tags()
