"""Text from tools is data: it can form no token of any dialect or chat template, and hides nothing.

`Prompt.fill` passes every value through `clean` unless hira made it itself (`Filled`), and so do the dialects with
every result. Marks are broken by look-alikes (`‹` for `<`), so the text stays readable.
"""

import re
from collections.abc import Container

_ESCAPES = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b.?")
# controls, zero-width characters, bidirectional overrides, byte-order marks, invisible tags
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\U000e0000-\U000e007f]"
)
_NAMES = [
    "think",
    "thinking",
    "answer",
    "tool_calls?",
    "tool_response",
    "tool_results?",
    "tool_name",
    "tool",
    "function_calls?",
    "function_results?",
    "function",
    "invoke",
    "parameters?",
    "use_mcp_tool",
    "server_name",
    "arguments",
    "memory",
    "report",
    "plan",
    "user_input",
    "sources?",
    "documents?",
    "results?",
    "system",
    "user",
    "assistant",
    "(?:begin|end|start)_\\w+",
    "bos",
    "eos",
    "s",
]
_PIPED = re.compile(r"<\s*/?\s*[|｜][^<>\n]{0,80}?[|｜]\s*>")
_NAMED = re.compile(r"<\s*/?\s*[|｜]?\s*(?:" + "|".join(_NAMES) + r")(?:\s[^<>]*)?\s*[|｜]?\s*/?\s*>", re.IGNORECASE)
_HALF = re.compile(r"<(?=\s*/?\s*[|｜])|(?<=[|｜])\s*>")
_BRACKETED = re.compile(
    r"\[\s*(/?\s*(?:INST|SYSTEM_PROMPT|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|/?SYS))\s*\]|<<\s*(/?\s*SYS)\s*>>",
    re.IGNORECASE,
)
_BOXED = re.compile(r"\\+(?=boxed\b|fbox\b)")
_IMAGE = re.compile(r"!\[([^\]]*)\]\([^)]*\)")
_TARGET = r"(?:[^\s()<>]|\([^()]*\))*"
_LINK = re.compile(rf"(?<!!)\[([^\]]*)\]\(\s*<?({_TARGET}[:/.]{_TARGET})>?[^()]*\)")
_AUTOLINK = re.compile(r"<((?:https?|ftp|mailto|javascript|data):[^>\s]*)>", re.IGNORECASE)
_LOADING = """a applet audio base button embed form frame frameset iframe image img input link math meta object picture
script source style svg track video""".split()
_HTML = re.compile(
    r"<(script|style|iframe|object|svg)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)"
    rf"|</?(?:{'|'.join(_LOADING)})\b[^<>]*>|<[a-z][^<>]*\s(?:on\w+|src|href|style)\s*=[^<>]*>",
    re.DOTALL | re.IGNORECASE,
)
_BROKEN = str.maketrans("<>", "‹›")


def clean(text: str) -> str:
    """The text without escapes and invisible characters, every control token broken. Idempotent."""
    text = _INVISIBLE.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))
    if "<" in text or "[" in text or "\\" in text or "|" in text:
        for pattern in (_PIPED, _NAMED, _HALF):
            text = pattern.sub(lambda token: token[0].translate(_BROKEN), text)
        text = _BRACKETED.sub(lambda token: f"‹{token[1] or token[2]}›", text)
        text = _BOXED.sub("", text)
    return text


def presentable(text: str, read: Container[str]) -> str:
    """A model's answer without anything that loads or leads elsewhere when it is rendered.

    Pictures and HTML that loads or runs something go, and links stay only where they lead to something that was `read`; their words stay.
    Code between backticks is shown as it is.
    """
    parts = re.split(r"(```.*?```|`[^`\n]*`)", text, flags=re.DOTALL)
    for at in range(0, len(parts), 2):
        part = _IMAGE.sub(r"\1", parts[at])
        part = _LINK.sub(lambda link: link[0] if link[2] in read else link[1], part)
        part = _AUTOLINK.sub(lambda link: link[1] if link[1] in read else "", part)
        parts[at] = _HTML.sub("", part)
    return "".join(parts)
