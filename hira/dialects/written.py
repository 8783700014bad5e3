"""What a model in this process wrote, where no server has read it: thought, and native calls as text.

Calls are those of Hermes, Qwen and their kin: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`.
"""

import json
import re
from typing import NamedTuple

from hira.messages import ToolCall

OPEN_CALL, CLOSE_CALL = "<tool_call>", "</tool_call>"
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
    if not opened:
        return written, ()
    calls = [
        _call(part.partition(CLOSE_CALL)[0].strip(), f"call{turn % 1000:03d}{at % 100:02d}")
        for at, part in enumerate(rest.split(OPEN_CALL))
    ]
    return text.strip(), tuple(calls)


def _call(inside: str, call_id: str) -> ToolCall:
    try:
        said = json.loads(inside, strict=False)
    except ValueError:
        said = None
    if not isinstance(said, dict) or not isinstance(said.get("name"), str):
        named = _NAME.search(inside)
        return ToolCall(call_id, named[1] if named else "", inside)
    arguments = said.get("arguments", said.get("parameters", {}))
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(call_id, said["name"], text)
