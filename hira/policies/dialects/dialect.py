"""A dialect: how a call is written in text and its result is written back."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from hira.core.messages import Filled, Message, ToolCall, assistant
from hira.core.patterns import compile_lazily
from hira.core.policy import Completion
from hira.core.prompts import safe
from hira.core.sanitize import clean
from hira.core.tool import Tool
from hira.policies.dialects.answer import verbatim
from hira.policies.dialects.lenient import Beyond, decode_json


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the model. `id` ties a native call to its result."""

    name: str
    arguments: Mapping[str, Any]
    id: str = ""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed turn: its text, its calls, and its form in the conversation.

    `error`, if not empty, explains the fault of a call to the model; `calls` is then empty. Of calls that were read
    from text, `passages` are the parts of the turn that were read, one for each call or one for the error; `loose` says
    that they have a form of no dialect and of no server, which prose and code may have, too.
    """

    text: str
    calls: tuple[Call, ...]
    message: Message
    error: str = ""
    passages: tuple[str, ...] = ()
    loose: bool = False


def describe_missing(arguments: Mapping[str, Any], tool: "Tool") -> str:
    """Describe, for the model, the required parameters that a call lacks; empty if it has all."""
    lacking = [name for name in tool.parameters.get("required", ()) if arguments.get(name) in (None, "")]
    return f"The call of {tool.name} lacks {', '.join(lacking)}; it takes {', '.join(tool.fields)}." if lacking else ""


class Dialect(Protocol):
    """Writes instructions and results, reads turns. Holds no state."""

    @property
    def name(self) -> str: ...

    def instructions(self, tools: "Sequence[Tool]") -> Filled:
        """Format the instructions of a prompt for calling these tools."""
        ...

    def stops(self, tools: "Sequence[Tool]", several: int) -> tuple[str, ...]:
        """Stop strings for a turn that may hold `several` calls."""
        ...

    def specs(self, tools: "Sequence[Tool]") -> tuple[Mapping[str, Any], ...]:
        """Function definitions for the request, empty where calls are plain text."""
        ...

    def parse(self, completion: Completion, tools: "Sequence[Tool]", several: int = 1) -> Parsed:
        """Read a turn. At most `several` calls are accepted, whatever follows them is cut."""
        ...

    def results(self, pairs: Sequence[tuple[Call, str]], notice: Filled | None = None) -> tuple[Message, ...]:
        """The messages that bring back the results of calls, with hira's own `notice` after them."""
        ...

    def write(self, call: Call, tool: "Tool") -> str:
        """The call as this dialect's text; empty where calls are not text. `parse` reads it back."""
        ...


RESULT, RESULT_END = "<tool_response>", "</tool_response>"
_CODE_SPAN = compile_lazily(r"```.*?```|`[^`\n]+`", re.DOTALL)


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call in the text of a turn, from `start` to `end`.

    `closed` is the form that the conversation keeps. Without a `call`, `error` explains its fault to the model; without
    either, the model began to write a result itself, and its text from `start` on is dropped.
    """

    start: int
    end: int = 0
    closed: str = ""
    call: Call | None = None
    error: str = ""


_BLOCKQUOTE = compile_lazily(r"[ \t]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?>")
_NUMBERED = compile_lazily(r"[ \t]*[\[(]?\d{1,3}[.)\]]+[ \t]")
_BARE_LINE = compile_lazily(r"[\s\d*#>.()\[\]`\"'_-]*")
_CONTINUES = compile_lazily(r"[\"'”’»)*_` \t]*(?P<comma>[,;]?)[ \t]*(?P<word>[^\W\d_]+)(?![\w.]*\()")
_QUOTATIONS = {"“": "”", "„": "“”", "‘": "’", "«": "»", "»": "«", "「": "」", "『": "』", '"': '"'}
_AROUND = 300
"""Characters around a call that show whether it is part of prose."""
_MENTIONS = 100
"""Calls that one turn may mention before it makes one."""


def is_mentioned(text: str, start: int, end: int) -> bool:
    """Return whether a passage that looks like a call is quoted: in a blockquote, in quotation marks, or inside a
    sentence that continues after it."""
    line = text.rfind("\n", 0, start) + 1
    before = text[max(line, start - _AROUND) : start].rstrip(" \t*_`([")
    stop = text.find("\n", end, end + _AROUND)
    after = text[end : stop if stop >= 0 else end + _AROUND].lstrip(" \t*_`)]")
    if _BLOCKQUOTE.match(text, line) or (before and after and after[0] in _QUOTATIONS.get(before[-1], "")):
        return True
    following = _CONTINUES.match(after)
    continues = following and (following["comma"] or following["word"].islower())
    return bool(continues and before and (before[-1].isalnum() or before[-1] in ",;"))


def is_alone(text: str, start: int, end: int) -> bool:
    """Return whether a passage has its own line, or follows a colon, and is not a point of a numbered list in
    prose."""
    line = text.rfind("\n", 0, start) + 1
    before = text[max(line, start - _AROUND) : start]
    after = _CONTINUES.match(text, end)
    if (after and after["word"].islower()) or not (_BARE_LINE.fullmatch(before) or before.rstrip().endswith(":")):
        return False
    return not (_NUMBERED.match(text, line) and text[:line].strip())


def turn_of(completion: Completion, begin: "re.Pattern[str]") -> str:
    """Return the text that may contain calls: the visible one, or the reasoning if the stop string fired in there.

    Surrounding white space is kept, so that a conversation of token ids continues exactly where the model stopped.
    """
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
        quoted = _CODE_SPAN.search(text, position)
        if not quoted or match.start() < quoted.start() or (match.start() < quoted.end() and habit.match(quoted[0])):
            return match
        position = quoted.end()
        if match.start() < position:
            match = begin.search(text, position)
    return None


def read(text: str, following: Callable[[int], WrittenCall | None], several: int) -> Parsed:
    """Read a turn from left to right; `following` finds the next call from a place on. A call that is only mentioned
    stays text."""
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


def check_call(name: str, arguments: object, tools: Mapping[str, Tool]) -> tuple[Call | None, str]:
    """The call of that tool with these arguments, which may be JSON still, or what is wrong with it, for the model."""
    if (tool := tools.get(name)) is None:
        available = f"Available: {', '.join(tools)}." if tools else "No tool is available; answer without one."
        return None, f"There is no tool named {name!r}. {available}"
    if isinstance(arguments, str):
        try:
            arguments = decode_json(arguments or "{}")
        except json.JSONDecodeError as fault:
            return None, f"The arguments of {name} are not valid JSON: {explain(fault)}."
    if not isinstance(arguments, dict):
        return None, f"The arguments of {name} must be one JSON object with: {', '.join(tool.fields)}."
    lacking = describe_missing(arguments, tool)
    return (None, lacking) if lacking else (Call(name, arguments), "")


def coerce_value(value: str, tool: Tool, name: str) -> Any:
    """The value as the schema wants it: text stays text, anything else is read as JSON where it can be."""
    if tool.parameters.get("properties", {}).get(name, {}).get("type") == "string":
        return value
    try:
        return decode_json(value)
    except json.JSONDecodeError:
        return value


def explain(fault: json.JSONDecodeError) -> str:
    """Where JSON breaks, and the usual reason."""
    if isinstance(fault, Beyond):
        return fault.msg
    around = " ".join(fault.doc[max(0, fault.pos - 20) : fault.pos + 20].split())
    return f"{fault.msg} near {around!r}; check its quotation marks and brackets"


def format_tools(tools: Sequence[Tool]) -> str:
    """The tools as lines of a prompt: what each is for, and a line for each parameter."""
    return "\n".join(
        "\n".join(
            [f"- {tool.name}: {clean(tool.description)}", *(f"  - {parameter}" for parameter in parameters(tool))]
        )
        for tool in tools
    )


def parameters(tool: Tool) -> list[str]:
    """A line on each parameter of a tool: its name, its type, and its description."""
    schema, required = tool.parameters.get("properties", {}), tool.parameters.get("required", ())
    if tool.parameters.get("$defs"):
        return [f"arguments, by this JSON schema: {clean(json.dumps(tool.parameters, ensure_ascii=False))}"]
    return [_parameter(name, schema[name], optional=name not in required) for name in tool.fields]


def _parameter(name: str, schema: Mapping[str, Any], *, optional: bool) -> str:
    kind, beside = schema.get("type"), {*schema} - {"type", "description", "title", "default"}
    if not isinstance(kind, str) or beside:  # more than a word can say
        kind = json.dumps({key: value for key, value in schema.items() if key not in ("description", "title")})
    text = str(schema.get("description", "")).strip()
    return clean(f"{name} ({kind}{', optional' if optional else ''}){f': {text}' if text else ''}")


def example(tool: Tool) -> Call:
    """A call that shows the form: of each parameter that is needed, its name in angle brackets."""
    needed = tool.parameters.get("required") or tool.fields[:1]
    return Call(tool.name, {name: f"<{name}>" for name in needed})


def format_results(pairs: Sequence[tuple[Call, str]], notice: Filled | None) -> tuple[Message, ...]:
    """Format results as one user message, in the order of their calls, followed by hira's own notice."""
    parts = [f"{RESULT}\n{safe(text)}\n{RESULT_END}" for _, text in pairs]
    text = "\n\n".join([*parts, notice] if notice else parts)
    return (Message("user", text, prompt="result", values={"results": list(pairs)}),)


_MOST = 1_000
"""Calls of one turn; whatever it holds was accepted before."""


class Explained(Filled):
    """The part of a prompt that explains calls. A policy that is a program finds in it the `dialect` of the calls and
    the `tools`; pickled, it is the text alone."""

    dialect: Dialect
    tools: "tuple[Tool, ...]"

    @classmethod
    def of(cls, dialect: Dialect, tools: "Sequence[Tool]") -> "Explained":
        explained = cls(dialect.instructions(tools))
        explained.dialect, explained.tools = dialect, tuple(tools)
        return explained

    def __reduce__(self) -> tuple[Any, ...]:
        return Filled, (str(self),)


def rewrite_messages(
    messages: Sequence[Message], tools: Sequence[Tool], old: Dialect, new: Dialect, hidden_tools: Sequence[Tool] = ()
) -> list[Message]:
    """Return the messages of a conversation in the dialect `old` with its calls as text in the dialect `new`.

    The instructions of prompts are replaced too; consecutive results become one message. Calls of
    `hidden_tools` are rewritten as well.
    """
    told, tells = old.instructions(tools), new.instructions(tools)
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
        elif told and safe(told) in message.text:
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
