"""Replies that begin with the model's reasoning, as weights in this process write them."""

from typing import NamedTuple

from hira.core.patterns import compile_lazily

_THINK = compile_lazily(r"\s*<(think(?:ing)?)>")
_THOUGHT_ENDS = compile_lazily(r"</think(?:ing)?>")


class ThinkingReply(NamedTuple):
    """A reply parted in `reasoning` and `text`; `closed` is False if the reply ended within its thought."""

    reasoning: str
    text: str
    closed: bool = True


def split_thought(written: str, *, opened: bool) -> ThinkingReply:
    """Part a reply that begins with thought; `opened` says that the prompt began it.

    >>> split_thought("<think>hm</think>\\n\\nyes", opened=False)
    ThinkingReply(reasoning='hm', text='yes', closed=True)
    """
    begun = _THINK.match(written)
    if not begun and not opened:
        return ThinkingReply("", written)
    inside = written[begun.end() :] if begun else written
    end = _THOUGHT_ENDS.search(inside)
    if not end:
        return ThinkingReply(inside.strip("\n"), "", closed=False)
    return ThinkingReply(inside[: end.start()].strip("\n"), inside[end.end() :].lstrip("\n"))
