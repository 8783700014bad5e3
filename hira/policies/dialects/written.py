"""What a model in this process wrote, where no server has read it: thought, and native calls as text.

Calls are read in three forms: of Hermes, Qwen and their kin, `<tool_call>{"name": …, "arguments": {…}}</tool_call>`;
of Mistral, `[TOOL_CALLS]` before a list of such objects; of Llama, a turn that is such an object and nothing else, with
`parameters` for its arguments.
"""

import json
import re
from typing import NamedTuple

from hira.core.messages import ToolCall
from hira.policies.dialects.decoded import decode_json, first

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
