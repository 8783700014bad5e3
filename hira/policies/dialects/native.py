"""Native tool calls: `tool_calls` of the chat API, also as text that no server has read."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hira.core.dataclasses import dataclass, replace
from hira.core.messages import Filled, Message, ToolCall, assistant, user
from hira.core.policy import Completion
from hira.core.prompts import Prompt, safe
from hira.core.tool import Tool
from hira.policies.dialects.answer import strip_thought, verbatim
from hira.policies.dialects.dialect import Call, Dialect, Parsed, check_call
from hira.policies.dialects.lenient import decode_json, first
from hira.policies.dialects.text_calls import fit_arguments, found_in, spoken_in

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


@dataclass(frozen=True, slots=True)
class ToolMessages:
    """A dialect of text that writes and reads calls as `dialect` does."""

    dialect: Dialect

    @property
    def name(self) -> str:
        return self.dialect.name

    def instructions(self, tools: Sequence[Tool]) -> Filled:
        return self.dialect.instructions(tools)

    def stops(self, tools: Sequence[Tool], several: int) -> tuple[str, ...]:
        return self.dialect.stops(tools, several)

    def specs(self, tools: Sequence[Tool]) -> tuple[Mapping[str, Any], ...]:
        return self.dialect.specs(tools)

    def parse(self, completion: Completion, tools: Sequence[Tool], several: int = 1) -> Parsed:
        return self.dialect.parse(completion, tools, several)

    def results(self, pairs: Sequence[tuple[Call, str]], notice: Filled | None = None) -> tuple[Message, ...]:
        return DIALECT.results(pairs, notice)

    def write(self, call: Call, tool: Tool) -> str:
        return self.dialect.write(call, tool)


def with_tool_messages(dialect: Dialect) -> Dialect:
    """The dialect with results as tool messages; `native` has no others."""
    return dialect if dialect is DIALECT or isinstance(dialect, ToolMessages) else ToolMessages(dialect)


OPEN_CALL, CLOSE_CALL, LIST_OF_CALLS = "<tool_call>", "</tool_call>", "[TOOL_CALLS]"
# what a turn may begin with that is a call as a whole
BARE_CALL = ("{", "<|python_tag|>")
_NAME = re.compile(r'"name"\s*:\s*"([^"\\]+)"')
_THINK = re.compile(r"\s*<(think(?:ing)?)>")
_THOUGHT_ENDS = re.compile(r"</think(?:ing)?>")


class Thought(NamedTuple):
    """A reply parted in `reasoning` and `text`; `closed` is False if the reply ended within its thought."""

    reasoning: str
    text: str
    closed: bool = True


def thought_in(written: str, *, opened: bool) -> Thought:
    """Part a reply that begins with thought; `opened` says that the prompt began it.

    >>> thought_in("<think>hm</think>\\n\\nyes", opened=False)
    Thought(reasoning='hm', text='yes', closed=True)
    """
    begun = _THINK.match(written)
    if not begun and not opened:
        return Thought("", written)
    inside = written[begun.end() :] if begun else written
    end = _THOUGHT_ENDS.search(inside)
    if not end:
        return Thought(inside.strip("\n"), "", closed=False)
    return Thought(inside[: end.start()].strip("\n"), inside[end.end() :].lstrip("\n"))


def calls_in(written: str, turn: int) -> tuple[str, tuple[ToolCall, ...]]:
    """The text before the first call, and the calls. `turn` makes their ids unlike those of other turns.

    A call that is no JSON object keeps its text as arguments, for the dialect to say what is wrong with it.
    """
    text, opened, rest = written.partition(OPEN_CALL)
    if opened:
        parts = [part.partition(CLOSE_CALL)[0].strip() for part in rest.split(OPEN_CALL)]
    else:
        text, opened, rest = written.partition(LIST_OF_CALLS)
        parts = _objects(rest) if opened else _bare(written)
    if not parts:
        return written, ()
    calls = [_call(part, f"call{turn % 1000:03d}{at % 100:02d}") for at, part in enumerate(parts)]
    return text.rstrip() if opened else "", tuple(calls)


def _objects(written: str) -> list[str]:
    """The objects of a JSON list; the text itself where it is none."""
    try:
        listed, _ = first(written.strip())
    except ValueError:
        return [written.strip()]
    return [json.dumps(one, ensure_ascii=False) for one in (listed if isinstance(listed, list) else [listed])]


def _bare(written: str) -> list[str]:
    """A turn that is one call and nothing else."""
    inside = written.strip().removeprefix("<|python_tag|>").strip()
    if not inside.startswith("{"):
        return []
    try:
        said = decode_json(inside)
    except ValueError:
        return []
    named = isinstance(said.get("name"), str) and isinstance(said.get("parameters", said.get("arguments")), dict)
    return [inside] if named else []


def _call(inside: str, call_id: str) -> ToolCall:
    try:
        said = decode_json(inside)
    except ValueError:
        said = None
    if not isinstance(said, dict) or not isinstance(said.get("name"), str):
        named = _NAME.search(inside)
        return ToolCall(call_id, named[1] if named else "", inside)
    arguments = said.get("arguments", said.get("parameters", {}))
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(call_id, said["name"], text)
