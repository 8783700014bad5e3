"""What a model said besides calls: its visible text, and the final answer in it."""

import re

from hira.core.policy import Completion
from hira.evidence import find_cited

_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_CLOSING = ("</think>", "</thinking>", "<|channel|>final<|message|>")
_CLOSED = re.compile(r"^.*(?:</think(?:ing)?>|<\|channel\|>final<\|message\|>)", re.DOTALL)
_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.DOTALL)
_FENCED_WHOLE = re.compile(r"```(?:markdown|md)?[ \t]*\n(.*?)\n```", re.DOTALL)
_OPEN_THOUGHT = re.compile(r"<think(?:ing)?>(?!.*</think(?:ing)?>)", re.DOTALL)


def strip_thought(completion: Completion) -> str:
    """The text without finished thought. Thought that the model wrote into its text and never closed stays."""
    text = completion.text
    end = max((text.rfind(tag) + len(tag) for tag in _CLOSING if tag in text), default=0)
    # behind the last closing tag no thought ends, and to look for its end from each beginning takes quadratic time
    return (_CLOSED.sub("", _THOUGHT.sub("", text[:end])) + text[end:]).strip()


def verbatim(completion: Completion) -> str:
    """What a conversation keeps of a turn: `spoken`, with the white space around it where there was no thought in it.

    A conversation of token ids can then go on from what the model wrote. Nothing but white space is nothing.
    """
    said = strip_thought(completion)
    return completion.text if said and completion.text.strip() == said else said


def only_thought(completion: Completion) -> bool:
    """Whether the model thought and then said nothing: neither a call nor, within thought left open, a boxed answer."""
    if completion.calls or "\\boxed{" in completion.text:
        return False
    if _OPEN_THOUGHT.match(completion.text.lstrip()):
        return True
    return not strip_thought(completion) and bool(completion.reasoning or completion.text.strip())


def final(text: str) -> str:
    """The answer in a closing turn: the last `\\boxed{…}`, else the last `<answer>…</answer>`, else all of it.

    A box without citations gets those of its own line, else those of the last line before it that has any.
    """
    inner = find_boxed(text)
    if not inner:
        return find_tagged(text) or text.strip()
    if find_cited(inner):
        return inner
    before, _, after = text.rpartition("\\boxed{")
    *earlier, beginning = before.split("\n")
    own = beginning + after.split("\n")[0]
    ids = next((ids for line in (own, *reversed(earlier)) if (ids := find_cited(line))), [])
    return f"{inner} [{', '.join(ids)}]" if ids else inner


def find_boxed(text: str) -> str:
    """The content of the last `\\boxed{…}`, braces balanced; empty if there is none."""
    at = text.rfind("\\boxed{")
    if at < 0:
        return ""
    inner = text[at + len("\\boxed{") :]
    return _unwrapped(inner[: _closing(inner)])


def find_tagged(text: str) -> str:
    found = _ANSWER.findall(text)
    return str(found[-1]).strip() if found else ""


def _closing(text: str) -> int:
    """Where the brace closes that was opened before the text; its end if it never does."""
    depth = 0
    for at, character in enumerate(text):
        if character == "{":
            depth += 1
        elif character == "}":
            if depth == 0:
                return at
            depth -= 1
    return len(text)


def _unwrapped(latex: str) -> str:
    """Without a `\\text{…}` around all of it."""
    latex = latex.strip()
    inner = latex.removeprefix("\\text{")
    return inner[:-1].strip() if inner != latex and _closing(inner) == len(inner) - 1 else latex


def document(text: str) -> str:
    """The Markdown that a model was asked for, without a fence around all of it."""
    fenced = _FENCED_WHOLE.fullmatch(text.strip())
    return (fenced[1] if fenced else text).strip()
