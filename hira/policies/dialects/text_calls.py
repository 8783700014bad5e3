"""Reads calls that a model wrote into its text, in any form on which models are trained, in linear time."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hira.core.messages import assistant
from hira.core.policy import Completion, Delta, Watch
from hira.core.tool import Tool
from hira.policies.dialects.answer import verbatim
from hira.policies.dialects.call_formats import (
    BEFORE,
    DRESS,
    NEAR,
    CallText,
    ReadCalls,
    find_end,
    opening_of,
    plain,
    read_at,
)
from hira.policies.dialects.lenient import read_value
from hira.policies.dialects.protocol import RESULT, Call, Parsed, check_call, coerce_value, is_alone, is_mentioned

if TYPE_CHECKING:
    from hira.policies.dialects.quoted import IsQuoted

_TRIES = 2_000
"""Places of one turn at which a call is looked for: Python counts the lines before each fault that it finds in JSON."""
_TAIL = 80
# words of a tool's JSON schema, which small models copy into its arguments
_SCHEMA = frozenset({"type", "required", "description", "title", "additionalProperties"})
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
_FENCE = re.compile(r"```\w*\s*")
_MAYBE = re.compile(r"[<\[{`]")
# each call holds one of these where it begins
_OPENING = frozenset("<[{(:`")
# how a call begins in the dialects that are hira's own
_OWN = re.compile(r"<\|?\s*(?:begin_\w|use_mcp_tool)")

Write = Callable[[Call, Tool], str]


@dataclass(frozen=True, slots=True)
class CallSpan:
    """The calls of a turn, from `start` to `end` of its text. Without calls, `error` explains the fault of the first
    one to the model. The `passages` are those that were read as calls; `loose` says that some may be prose or code."""

    start: int
    end: int
    calls: tuple[Call, ...] = ()
    error: str = ""
    passages: tuple[str, ...] = ()
    loose: bool = False


def find_calls(text: str, tools: Sequence[Tool], *, cut: bool = False, several: int = 1) -> CallSpan | None:
    """Find the first calls in a text, at most `several`, without text between them. None if the text contains no call,
    nor anything meant as one. Text after a result that the model wrote itself is not read; an argument may contain the
    token that begins a result."""
    before = text.partition(RESULT)[0]
    turn = CallText(text, {plain(tool.name): tool for tool in tools}, cut, several)
    opening = opening_of(tuple(tool.name for tool in tools))
    span = _find_first(replace(turn, text=before), opening)
    if len(before) < len(text) and (span is None or span.error):
        around = _find_first(turn, opening)
        if around and around.calls and around.start < len(before) < around.end:
            return around
    return span


def _find_first(turn: CallText, opening: "re.Pattern[str]") -> CallSpan | None:
    position, tried, quoted = 0, 0, CODE.search(turn.text)
    while (begun := opening.search(turn.text, position)) and tried < _TRIES:
        while quoted and quoted.end() <= begun.start():
            quoted = CODE.search(turn.text, quoted.end())
        if quoted and quoted.start() < begun.start():
            # a block of code may begin with the call; later in the block, or within a line, a call is quoted
            fence = _FENCE.match(turn.text, quoted.start())
            begins = fence and fence.end() <= begun.start() and DRESS.fullmatch(turn.text, fence.end(), begun.start())
            if not begins:
                position = quoted.end()
                continue
        read = read_at(turn, begun.start())
        if (read.error or read.calls) and _is_made(turn.text, begun, read):
            return _read_following(turn, opening, begun, read)
        position, tried = max(read.end, begun.end()), tried + 1
    return None


def holds_more(text: str, tools: Sequence[Tool], several: int, is_quoted: "IsQuoted | None" = None) -> bool:
    """Return whether a text contains more calls than one turn may have, so that the rest will not be read. After calls
    of which some are only quoted, it will."""
    span = find_calls(text, tools, cut=True, several=several + 1)
    return span is not None and len(span.calls) > several and not _quotes(span, is_quoted, several)


def _quotes(span: CallSpan, is_quoted: "IsQuoted | None", several: int = 1) -> bool:
    """Return whether some of the first calls, as many as one turn may have, are only quoted."""
    each = zip(span.calls[:several], span.passages, strict=False)
    return is_quoted is not None and any(is_quoted(call, passage, span.loose) for call, passage in each)


def drop_calls(answer: str, tools: Sequence[Tool]) -> str:
    """Return an answer up to its first call: a call is not an answer. An unreadable one stays after other text, and so
    does a loose one, which an answer quotes."""
    span = find_calls(answer, tools)
    spoken = answer if span is None or span.loose else answer[: span.start].strip()
    return answer if span and spoken and not span.calls else spoken


def fit_arguments(arguments: Any, tool: Tool) -> Any:
    """Convert arguments to the tool's schema if their meaning is clear: JSON in a string, the bare value of the only
    parameter, an object in a list, extra words of the tool's own schema."""
    fields = tool.fields
    only = fields[0] if len(fields) == 1 or len(tool.parameters.get("required", ())) == 1 else ""
    if isinstance(arguments, str) and (written := arguments.lstrip()).startswith(("{", "[")):
        try:
            arguments, _ = read_value(written)
        except json.JSONDecodeError:
            return arguments
    if isinstance(arguments, list) and len(arguments) == 1:
        arguments = arguments[0]
    if isinstance(arguments, str) and only and arguments.strip():
        return {only: coerce_value(arguments, tool, only)}
    if not isinstance(arguments, dict):
        return arguments
    inner = arguments.get("properties")
    if isinstance(inner, dict) and "properties" not in fields:
        arguments = inner
    return {name: value for name, value in arguments.items() if name in fields or name not in _SCHEMA}


def _read_following(turn: CallText, opening: "re.Pattern[str]", begun: "re.Match[str]", read: ReadCalls) -> CallSpan:
    start, calls, end, loose = _dressed(turn.text, begun.start()), list[Call](), read.end, read.loose
    passages: list[str] = []
    while read.calls and not read.error:
        passage = turn.text[begun.start() : read.end]
        for tool, arguments in read.calls[: turn.several - len(calls)]:
            call, error = check_call(tool.name, fit_arguments(arguments, tool), {tool.name: tool})
            if call is None:
                return CallSpan(start, end, tuple(calls), "" if calls else error, tuple(passages) or (passage,), loose)
            calls.append(call)
            passages.append(passage)
            loose = loose or read.loose
        end = find_end(turn.text, read.end)
        following = opening.search(turn.text, end) if len(calls) < turn.several else None
        if following is None or not DRESS.fullmatch(turn.text, end, following.start()):
            break
        begun, read = following, read_at(turn, following.start())
    passages = passages or [turn.text[begun.start() : read.end]]
    return CallSpan(start, end, tuple(calls), "" if calls else read.error, tuple(passages), loose)


def _dressed(text: str, position: int) -> int:
    dress = BEFORE.search(text[max(0, position - NEAR) : position])
    return position - (len(dress[0]) if dress else 0)


def _is_made(text: str, begun: "re.Match[str]", read: ReadCalls) -> bool:
    """Return whether the model makes the call that was read, rather than mentions it. Within prose, as a point of a
    numbered list, or in a fence that more prose follows, a loose form is a mention."""
    position = begun.start() + len(begun[0]) - len(begun[0].lstrip())
    start, end = _dressed(text, position), find_end(text, read.end)
    if is_mentioned(text, start, end) or is_mentioned(text, position, end):
        return False
    fenced = "```" in text[start:position]
    return not read.loose or (not text[end:].strip() if fenced else is_alone(text, start, end))


def read_turn(parsed: Parsed, completion: Completion, tools: Sequence[Tool], several: int, write: Write) -> Parsed:
    """Return a turn that a dialect has `parsed` with the calls that it holds in another one, if the dialect found none.
    The conversation keeps them as the dialect writes them."""
    text = text_of_turn(parsed, completion)
    span = None if parsed.calls else find_calls(text, tools, cut=completion.finish == "length", several=several)
    if span is None or (parsed.error and not span.calls):
        return parsed
    spoken = text[: span.start].strip()
    if span.error:
        return Parsed(spoken, (), assistant(spoken), span.error, span.passages)
    named = {tool.name: tool for tool in tools}
    kept = spoken + "".join(write(call, named[call.name]) for call in span.calls)
    return Parsed(spoken, span.calls, assistant(kept.strip()), "", span.passages, span.loose)


def text_of_turn(parsed: Parsed, completion: Completion) -> str:
    """Return the text in which to look for calls: the visible text, or the reasoning without any."""
    spoken = verbatim(completion) if parsed.error else parsed.message.text
    return spoken if spoken.strip() else completion.reasoning


@dataclass(slots=True)
class HeldText:
    """Passes on the text of a turn as it streams in, up to where a call may begin, and all reasoning."""

    watch: Watch
    tools: Sequence[Tool]
    is_quoted: "IsQuoted | None" = None
    _waiting: str = ""
    _call: bool = False

    def __call__(self, delta: Delta) -> None:
        if delta.reasoning or not self.tools:
            self.watch(delta)
            return
        self._waiting = text = self._waiting + delta.text
        if self._call:
            return
        begun = None
        if not _OPENING.isdisjoint(text):
            begun = opening_of(tuple(tool.name for tool in self.tools)).search(text) or _OWN.search(text)
        if begun:
            self._call = True
            dress = BEFORE.search(text, max(0, begun.start() - NEAR), begun.start())
            upto = (dress or begun).start()
        else:
            maybe = _MAYBE.search(text, max(0, len(text) - _TAIL))
            upto = maybe.start() if maybe else len(text)
            line = text.rfind("\n", 0, upto) + 1
            words = text[line:upto].lstrip(" \t*#>-").lower()
            begins = ("action", "functools", *(tool.name for tool in self.tools))
            may_begin = any(begin.startswith(words) or words.startswith(begin) for begin in begins)
            if upto - line <= _TAIL and may_begin:
                upto = line
        if upto:
            self.watch(Delta(text[:upto]))
            self._waiting = text[upto:]

    def end(self) -> None:
        """End the turn: pass on the held text if it is not a call."""
        if self._waiting and not _OWN.search(self._waiting):
            span = find_calls(self._waiting, self.tools, cut=True)
            if span is None or _quotes(span, self.is_quoted):
                self.watch(Delta(self._waiting))
        self._waiting = ""
