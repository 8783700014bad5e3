"""How models write calls: what a call begins with, and what reads it from there (`_FORMATS`).

A call names a tool on offer; JSON that does not is an answer, unless it is all of the text and has a call's two keys.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from hira.core.patterns import compile_lazily
from hira.core.tool import Tool
from hira.policies.dialects.lenient import Beyond, decode_first, read_value
from hira.policies.dialects.protocol import check_call, coerce_value, explain


class ReadCalls(NamedTuple):
    """The result of a reader for the text up to `end`: calls as tools with arguments, or their fault. Without either,
    the text is not a call. A `loose` form is one that no server leaves in a text: prose and code look like it, too."""

    end: int
    calls: tuple[tuple[Tool, Any], ...] = ()
    error: str = ""
    loose: bool = False


@dataclass(frozen=True, slots=True)
class CallText:
    """A text in which calls are read."""

    text: str
    tools: Mapping[str, Tool]
    """The tools that may be called, by their plain names."""
    cut: bool = False
    """True if the text ended at the length limit."""
    several: int = 1
    """The most calls that one turn may have."""
    marks: int = 0
    """The tokens of the model's own that have announced a call, one within the other."""

    def tool(self, written: str) -> Tool | None:
        return self.tools.get(plain(_ADDRESS.sub("", written.strip())))


_FLAGS = re.MULTILINE
Reader = Callable[[CallText, "re.Match[str]"], ReadCalls]

_NAMES = ("name", "tool", "tool_name", "function", "function_name", "action", "recipient_name")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input", "action_input", "kwargs")
_LISTS = ("tool_calls", "calls", "tool_uses")
_STANDARD = ("arguments", "parameters")
_BESIDE = frozenset({"id", "type", "thought", "reason", "description"})
NEAR = 300
"""Characters around the beginning of a call in which its name, and the tokens before it, are looked for."""
_NESTED = 4
"""Tokens that announce calls, one within the other."""

_ADDRESS = compile_lazily(r"^(?:functions?|tools?|default_api)\.|:\d+$")
_KEYED = rf"""["']?(?:{"|".join((*_NAMES, *_ARGUMENTS))})["']?\s*:"""
_BEGUN = compile_lazily(rf"\{{\s*{_KEYED}")
_NAMING = compile_lazily(rf"""["']?\b(?:{"|".join(_NAMES)})["']?\s*:\s*["']([^"'\n]{{1,80}})["']""")
_STANDARD_CALL = compile_lazily(r"""\{\s*"name"\s*:\s*"[^"\n]{1,200}"\s*,\s*"arguments"\s*:\s*\{""")
_BAR = "[|｜]"
_MARK = (
    rf"<{_BAR}?(?:\w{{1,20}}:)?(?:{_BAR}DSML{_BAR})?(?:tool|function)[_▁ ]?calls?"
    rf"(?:[_▁ ](?:section[_▁ ])?(?:begin|start))?{_BAR}?>|<TOOLCALL>|<\|python_(?:tag|start)\|>|\[TOOL_CALLS\]"
    r"|<\|action_start\|>(?:\s*<\|plugin\|>)?|<\|START_ACTION\|>|<\|tools_prefix\|>|\bfunctools(?=\s*\[)"
)
_CHANNEL = r"<\|start\|>(?:assistant)?|<\|channel\|>(?:commentary|analysis)?"
BEFORE = compile_lazily(rf"(?:(?:{_MARK}|{_CHANNEL}|```\w*|\[)\s*)+\Z")
DRESS = compile_lazily(rf"(?:{_MARK}|{_CHANNEL}|```\w*|[\s,;\[])*")
_SPACE = compile_lazily(r"(?:[\s\[]|```\w*)*")
_AFTER = compile_lazily(
    r"(?:\s*(?:[\]})]|```(?!\w)|</(?:arguments|parameters)>|</[^<>\n]{0,20}(?:tool(?!_resp)|function|TOOL)[^<>\n]{0,20}>"
    rf"|<{_BAR}(?:tool|call|end|eom|eot|im_end|python_end|action_end|END_ACTION)"
    rf"(?![^<>\n]{{0,30}}(?:begin|start))[^<>\n]{{0,30}}{_BAR}>))+"
)
_NOTHING = compile_lazily(r"\s*\Z")
_XML = compile_lazily(
    rf"<(?P<close>/?)(?:{_BAR}DSML{_BAR}|[\w-]{{1,20}}:)?(?P<kind>function|invoke|parameter)\b[^\S\n]*"
    r"""(?:=[^\S\n]*|[^<>\n]{0,40}?name[^\S\n]*=[^\S\n]*)?["']?(?P<name>[^<>"'\s]{0,80})["']?[^<>\n]{0,40}>"""
)
_KEY_VALUE = compile_lazily(r"<(?P<close>/?)(?P<kind>arg_key|arg_value|tool_call)>")
_TAG = compile_lazily(r"<(?P<close>/?)(?P<name>[A-Za-z_][\w-]{0,40})>")
_LINE_ENDS = compile_lazily(r"[ \t]*(?:[\],;)`<]|\n|\Z)")
_INPUT = compile_lazily(
    r"\s*\n[\s*#>-]{0,10}(?:Action[ _]?)?(?:Input|Parameters?|Arguments?)\b[^:\n]{0,20}:[\s*]*(?:```\w*\s*|-\s+)?",
    re.IGNORECASE,
)
_FIELD = compile_lazily(r"[\s*-]{0,10}(\w{1,40})[ \t]*[:=][ \t]*([^\n]+)")
_BRACKETED = compile_lazily(r"[ \t]*\[([^\[\]\n]{1,400})\]")


def read_at(turn: CallText, position: int) -> ReadCalls:
    """Read a call that may begin here, in the first format of the table that fits."""
    furthest = position
    for opening, reader in _formats(tuple(tool.name for tool in turn.tools.values())):
        if fitting := opening.match(turn.text, position):
            read = reader(turn, fitting)
            if read.calls or read.error:
                return read._replace(loose=read.loose or reader in _LOOSE)
            furthest = max(furthest, read.end)
    return ReadCalls(furthest)


def _read_marked(turn: CallText, begun: "re.Match[str]") -> ReadCalls:
    space = _SPACE.match(turn.text, begun.end())
    position = space.end() if space else begun.end()
    read = read_at(replace(turn, marks=turn.marks + 1), position) if turn.marks < _NESTED else ReadCalls(position)
    if read.calls or read.error:
        return read._replace(loose=False)
    return ReadCalls(position, error=_unreadable(turn, "no tool and no arguments can be read in it"))


def _read_json(turn: CallText, begun: "re.Match[str]") -> ReadCalls:
    """An object with a name and arguments, whatever their keys; a list of them is read one by one."""
    text, position = turn.text, begun.start()
    try:
        value, end = decode_first(text, position)
    except json.JSONDecodeError as fault:
        naming = _NAMING.search(text, position, position + NEAR)
        stranded = _SPACE.fullmatch(text, 0, position) and _STANDARD_CALL.match(text, position)
        meant = bool(turn.marks or stranded or (naming and turn.tool(naming[1])))
        if isinstance(fault, Beyond):
            meant = meant or bool(_BEGUN.match(text, position))
            return ReadCalls(len(text), error=_unreadable(turn, explain(fault)) if meant else "")
        if not meant and not (turn.cut and naming is None and _BEGUN.match(text, position)):
            return ReadCalls(max(fault.pos, begun.end()))
        try:
            value, end = read_value(text, position)
        except json.JSONDecodeError:
            return ReadCalls(len(text), error=_unreadable(turn, f"it is not valid JSON: {explain(fault)}"))
    if calls := _calls_of(value, turn):
        return ReadCalls(end, calls, loose=not _is_standard(value))
    stranger = value.get("name") if isinstance(value, dict) and isinstance(value.get("arguments"), dict) else None
    if isinstance(stranger, str) and (turn.marks or _NOTHING.match(text, find_end(text, end))):
        return ReadCalls(end, error=_unknown(turn, stranger))
    return ReadCalls(end)


def _is_standard(value: Any) -> bool:
    """Return whether a JSON value has the keys of the chat API, which servers leave in the text."""
    if isinstance(value, list):
        return all(map(_is_standard, value))
    if not isinstance(value, dict):
        return False
    inner = next((value[key] for key in (*_LISTS, "function") if isinstance(value.get(key), list | dict)), None)
    return _is_standard(inner) if inner is not None else "name" in value and not value.keys().isdisjoint(_STANDARD)


def _calls_of(value: Any, turn: CallText) -> tuple[tuple[Tool, Any], ...]:
    """Return the calls that a JSON value represents; none if it represents something else."""
    if isinstance(value, list):
        entries = [_calls_of(entry, turn) for entry in value]
        return tuple(call for calls in entries for call in calls) if all(entries) else ()
    if not isinstance(value, dict):
        return ()
    inner = next((value[key] for key in (*_LISTS, "function") if isinstance(value.get(key), list | dict)), None)
    if inner is not None:
        return _calls_of(inner, turn)
    for key in _NAMES:
        if isinstance(value.get(key), str) and (tool := turn.tool(value[key])):
            left_out = {key, *(_BESIDE - {*tool.fields})}
            given = {name: argument for name, argument in value.items() if name not in left_out}
            name = next(iter(given), "")
            if len(given) == 1 and name in _ARGUMENTS:
                return ((tool, given[name]),)
            takes = given.keys() <= {*tool.fields} or tool.parameters.get("additionalProperties")
            return ((tool, given),) if takes and (given or not tool.parameters.get("required")) else ()
    name, arguments = next(iter(value.items()), ("", None))
    tool = turn.tool(name) if len(value) == 1 and isinstance(arguments, dict | str) else None
    return ((tool, arguments),) if tool else ()


def _read_named(turn: CallText, begun: "re.Match[str]") -> ReadCalls:
    tool = turn.tool(begun["named"])
    return _arguments(turn, tool, begun.end()) if tool else ReadCalls(begun.end(), error=_unknown(turn, begun["named"]))


def _read_line(turn: CallText, begun: "re.Match[str]") -> ReadCalls:
    return _read_named(turn, begun)


def _arguments(turn: CallText, tool: Tool, position: int) -> ReadCalls:
    """Return the call of a tool whose arguments are at this position of the text, as JSON."""
    try:
        value, end = read_value(turn.text, position)
    except json.JSONDecodeError as fault:
        return ReadCalls(len(turn.text), error=_unreadable(turn, f"its arguments are not valid JSON: {explain(fault)}"))
    return ReadCalls(end, ((tool, value),))


def _read_xml(turn: CallText, begun: "re.Match[str]") -> ReadCalls:
    """`<function=NAME>` or `<invoke name="NAME">` with a tag for each parameter, or with JSON."""
    head = _XML.match(turn.text, begun.start())
    tool = turn.tool(head["name"]) if head else None
    if head is None or tool is None:
        return ReadCalls(begun.end(), error=_unknown(turn, head["name"] if head else ""))
    given: dict[str, Any] = {}
    key, value_at, end, closed = "", head.end(), len(turn.text), False
    for tag in _XML.finditer(turn.text, head.end()):
        outer = tag["kind"] != "parameter"
        if key and (tag["close"] or not outer):
            given[key] = coerce_value(_strip_line_breaks(turn.text[value_at : tag.start()]), tool, key)
            key = ""
        if outer and not key:
            end, closed = (tag.end() if tag["close"] else tag.start()), True
            break
        if not tag["close"]:
            key, value_at = tag["name"], tag.end()
    if not closed and turn.cut:
        return ReadCalls(end, error=_unreadable(turn, ""))
    if key:
        given[key] = coerce_value(_strip_line_breaks(turn.text[value_at:]), tool, key)
    brace = turn.text.find("{", head.end(), end)
    if not given and brace >= 0:
        return _arguments(turn, tool, brace)._replace(end=end)
    return ReadCalls(end, ((tool, given),))


def _read_key_value(turn: CallText, begun: "re.Match[str]") -> ReadCalls:
    """Read a name, followed by pairs of `<arg_key>` and `<arg_value>`."""
    tool = turn.tool(begun["named"])
    if tool is None:
        return ReadCalls(begun.end(), error=_unknown(turn, begun["named"]))
    given: dict[str, Any] = {}
    key, inside, end, closed = "", begun.end(), len(turn.text), False
    for tag in _KEY_VALUE.finditer(turn.text, begun.end()):
        if tag["kind"] == "tool_call":
            end, closed = (tag.end() if tag["close"] else tag.start()), True
            break
        if not tag["close"]:
            inside = tag.end()
        elif tag["kind"] == "arg_key":
            key = turn.text[inside : tag.start()].strip()
        else:
            given[key] = coerce_value(_strip_line_breaks(turn.text[inside : tag.start()]), tool, key)
    if not closed and turn.cut:
        return ReadCalls(end, error=_unreadable(turn, ""))
    return ReadCalls(end, ((tool, given),))


def _read_tagged(turn: CallText, begun: "re.Match[str]") -> ReadCalls:
    """Read a name in a tag, followed by a tag around a tag for each argument, or around JSON."""
    tool, outer = turn.tool(begun["named"]), begun["outer"]
    if tool is None:
        return ReadCalls(begun.end())
    if turn.text.startswith("{", begun.end()):
        return _arguments(turn, tool, begun.end())
    given: dict[str, Any] = {}
    key, inside, end, closed = "", begun.end(), len(turn.text), False
    for tag in _TAG.finditer(turn.text, begun.end()):
        if not key and tag["close"] and tag["name"] == outer:
            end, closed = tag.end(), True
            break
        if not key and not tag["close"]:
            key, inside = tag["name"], tag.end()
        elif key and tag["close"] and tag["name"] == key:
            given[key] = coerce_value(_strip_line_breaks(turn.text[inside : tag.start()]), tool, key)
            key = ""
    if not closed and turn.cut:
        return ReadCalls(end, error=_unreadable(turn, ""))
    return ReadCalls(end, ((tool, given),))


def _read_python(turn: CallText, begun: "re.Match[str]") -> ReadCalls:
    """A call in Python's syntax, alone on its line or in a list."""
    from hira.policies.dialects.value_reader import Unclear, ValueReader  # few models write calls in Python

    tool, reader = turn.tool(begun["named"]), ValueReader(turn.text, begun.end(), quoting="python")
    try:
        positional, given = reader.arguments()
    except Unclear:
        return ReadCalls(begun.end())
    end = reader.position
    if tool is None or len(positional) > len(tool.fields) or not _LINE_ENDS.match(turn.text, end):
        return ReadCalls(end)
    before = turn.text[max(0, begun.start() - NEAR) : begun.start()].rstrip()
    listed = turn.marks or before.endswith(("[", ">", "```tool_code"))
    return ReadCalls(end, ((tool, dict(zip(tool.fields, positional, strict=False)) | given),), loose=not listed)


def _read_action(turn: CallText, begun: "re.Match[str]") -> ReadCalls:
    """`Action: NAME`, and `Action Input:` below it with JSON, or with the bare value of one parameter."""
    text, tool = turn.text, turn.tool(begun["named"])
    below, inline = _INPUT.match(text, begun.end()), _BRACKETED.match(text, begun.end())
    if tool is None:
        return ReadCalls(begun.end())
    if below:
        if text.startswith("{", below.end()):
            return _arguments(turn, tool, below.end())
        given, end = {}, below.end()
        while line := _FIELD.match(text, end):
            if line[1] not in tool.fields:
                break
            given[line[1]], end = coerce_value(line[2].strip("\"'`"), tool, line[1]), line.end()
        if given:
            return ReadCalls(end, ((tool, given),))
        end = text.find("\n", below.end())
        end = end if end >= 0 else len(text)
        return ReadCalls(end, ((tool, text[below.end() : end].strip(" \t\"'`")),))
    return ReadCalls(inline.end(), ((tool, inline[1].strip()),)) if inline else ReadCalls(begun.end())


_FORMATS: Mapping[str, Reader] = {
    # Llama, Gemma and others: [search(query="x")]
    r"(?:^|(?<=[\[,;>])|(?<=```python\n)|(?<=```tool_code\n))[ \t]*(?P<named>{known})(?:\.call)?\(": _read_python,
    # ReAct, as many models learned it
    r"^[\s*#>-]{{0,10}}Action\b[^:\n]{{0,40}}:[ \t*`]*(?P<named>{known})\b[*`]*": _read_action,
    # Qwen3-Coder, Seed-OSS, Step; MiniMax; DeepSeek V3.2
    r"<(?:[|｜]DSML[|｜]|[\w-]{{1,20}}:)?(?:function|invoke)(?=[^\S\n]*=|[^<>\n]{{1,40}}name[^\S\n]*=)": _read_xml,
    # GLM 4.5 and later
    r"<tool_call>\s*(?P<named>[\w.-]{{1,80}})\s*(?=<arg_key>|</tool_call>)": _read_key_value,
    # <name>NAME</name><arguments><KEY>…, as small models write it despite their instructions
    r"<name>\s*(?P<named>{known})\s*</name>\s*<(?P<outer>arguments|parameters)>\s*": _read_tagged,
    # Mistral since 2025: [TOOL_CALLS]search[ARGS]{{…}}
    r"\[TOOL_CALLS\]\s*(?P<named>[\w.-]{{1,80}})(?:\[CALL_ID\]\w{{0,40}})?(?:\[ARGS\])?\s*(?=\{{)": _read_named,
    # DeepSeek V3, R1 and V3.1; Kimi K2
    r"<[|｜]tool[_▁]call[_▁]begin[|｜]>\s*(?:function<[|｜]tool[_▁]sep[|｜]>)?(?P<named>[\w.:-]{{1,80}})\s*"
    r"(?:<[|｜]tool[_▁](?:sep|call_argument_begin)[|｜]>)?\s*(?:```\w*\s*)?(?=\{{)": _read_named,
    # Harmony, which gpt-oss writes
    r"\bto=(?P<named>[\w.-]{{1,80}})[^<>\n{{]{{0,40}}(?:<\|(?:channel|constrain)\|>[^<>\n{{]{{0,40}}){{0,2}}"
    r"<\|message\|>\s*(?=\{{)": _read_named,
    # a line that begins with a tool's name, as small models write it, numbered or not
    r"""^[ \t]*(?:[-*\d.()\[\]]{{1,6}}[ \t]+)?(?P<named>{known})[ \t]*(?=\{{\s*["'])""": _read_line,
    # Hermes, Qwen 2.5 and 3, Granite, Jamba, InternLM and whoever else announces JSON
    rf"(?:{_MARK})".replace("{", "{{").replace("}", "}}"): _read_marked,
    # OpenAI's own form, Llama 3, and what small models write despite their instructions
    r"""\{{\s*["']?\w""": _read_json,
}
_LOOSE = frozenset({_read_action, _read_line, _read_tagged})


@lru_cache(maxsize=64)
def _formats(known: tuple[str, ...]) -> "tuple[tuple[re.Pattern[str], Reader], ...]":
    names = "|".join(map(re.escape, sorted(known, key=len, reverse=True))) or r"(?!)"
    return tuple((re.compile(begin.format(known=names), _FLAGS), reader) for begin, reader in _FORMATS.items())


@lru_cache(maxsize=64)
def opening_of(known: tuple[str, ...]) -> "re.Pattern[str]":
    """Where a call may begin, in any format."""
    unnamed = (re.sub("[?]P<[a-z]+>", "?:", form.pattern) for form, _ in _formats(known))
    return re.compile("|".join(f"(?:{pattern})" for pattern in unnamed), _FLAGS)


def plain(name: str) -> str:
    return name.lower().replace("-", "_")


def find_end(text: str, end: int) -> int:
    """Return where the tokens and brackets end that close a call which was read up to `end`."""
    after = _AFTER.match(text, end)
    return after.end() if after else end


def _strip_line_breaks(value: str) -> str:
    return value.removeprefix("\n").removesuffix("\n")


def _unknown(turn: CallText, name: str) -> str:
    """Return the fault of a call of an unknown tool; none if only its form suggests a call."""
    return check_call(name.strip(), {}, {tool.name: tool for tool in turn.tools.values()})[1]


def _unreadable(turn: CallText, why: str) -> str:
    if turn.cut:
        return "Your call was cut off before it ended. Write it again, shorter."
    return f"Your call cannot be read: {why}."
