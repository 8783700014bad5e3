"""A dialect: how a call is written in text and its result is written back."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hira.core.messages import Filled, Message
from hira.core.patterns import compile_lazily
from hira.core.policy import Completion
from hira.core.tool import Tool
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
    that they have a form of no dialect and of no server, which prose and code may have, too. `left_out` counts
    further calls, which are not made.
    """

    text: str
    calls: tuple[Call, ...]
    message: Message
    error: str = ""
    passages: tuple[str, ...] = ()
    loose: bool = False
    left_out: int = 0


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
_BLOCKQUOTE = compile_lazily(r"[ \t]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?>")
_NUMBERED = compile_lazily(r"[ \t]*[\[(]?\d{1,3}[.)\]]+[ \t]")
_BARE_LINE = compile_lazily(r"[\s\d*#>.()\[\]`\"'_-]*")
_CONTINUES = compile_lazily(r"[\"'”’»)*_` \t]*(?P<comma>[,;]?)[ \t]*(?P<word>[^\W\d_]+)(?![\w.]*\()")
_QUOTATIONS = {"“": "”", "„": "“”", "‘": "’", "«": "»", "»": "«", "「": "」", "『": "』", '"': '"'}
_AROUND = 300
"""Characters around a call that show whether it is part of prose."""


def is_mentioned(text: str, start: int, end: int) -> bool:
    """Return whether a call is only quoted: in a blockquote, in quotation marks, or amid a sentence that continues."""
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
    """Return whether a passage has its own line, or follows a colon, and is no point of a numbered list in prose."""
    line = text.rfind("\n", 0, start) + 1
    before = text[max(line, start - _AROUND) : start]
    after = _CONTINUES.match(text, end)
    if (after and after["word"].islower()) or not (_BARE_LINE.fullmatch(before) or before.rstrip().endswith(":")):
        return False
    return not (_NUMBERED.match(text, line) and text[:line].strip())


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
    lacking = [field for field in tool.parameters.get("required", ()) if arguments.get(field) in (None, "")]
    if lacking:
        return None, f"The call of {name} lacks {', '.join(lacking)}; it takes {', '.join(tool.fields)}."
    return Call(name, arguments), ""


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


def example(tool: Tool) -> Call:
    """A call that shows the form: of each parameter that is needed, its name in angle brackets."""
    needed = tool.parameters.get("required") or tool.fields[:1]
    return Call(tool.name, {name: f"<{name}>" for name in needed})


def write_examples(dialect: Dialect, tools: Sequence[Tool]) -> Filled:
    """Return the shortest instructions: an example of a call of each tool. Native calls have their usual ones."""
    if dialect.specs(tools):
        return dialect.instructions(tools)
    return Filled("\n".join(dialect.write(example(tool), tool).strip() for tool in tools))


class Explained(Filled):
    """The part of a prompt that explains calls. A policy that is a program finds in it the `dialect` of the calls and
    the `tools`; pickled, it is the text alone."""

    dialect: Dialect
    tools: "tuple[Tool, ...]"

    def __reduce__(self) -> tuple[Any, ...]:
        return Filled, (str(self),)
