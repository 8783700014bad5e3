"""What a model said besides calls: its visible text, and the final answer in it."""

import re

from hira.evidence import cited
from hira.policy import Completion

_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_CLOSED = re.compile(r"^.*</think(?:ing)?>", re.DOTALL)
_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.DOTALL)
_LATEX_TEXT = re.compile(r"^\\text\{(.*)\}$", re.DOTALL)


def spoken(completion: Completion) -> str:
    """The text without finished thought. A reply that is nothing but thought is returned as it is."""
    text = _CLOSED.sub("", _THOUGHT.sub("", completion.text)).strip()
    return text or completion.text.strip() or completion.reasoning.strip()


def final(text: str) -> str:
    """The answer in a closing turn: the last `\\boxed{…}`, else the last `<answer>…</answer>`, else all of it.

    A box without citations gets those of its own line, else those of the whole turn.
    """
    inner = boxed(text)
    if not inner:
        return tagged(text) or text.strip()
    if cited(inner):
        return inner
    line = next((line for line in reversed(text.splitlines()) if "\\boxed{" in line), "")
    ids = cited(line) or cited(text)
    return f"{inner} [{', '.join(ids)}]" if ids else inner


def boxed(text: str) -> str:
    """The content of the last `\\boxed{…}`, braces balanced; empty if there is none."""
    at = text.rfind("\\boxed{")
    if at < 0:
        return ""
    depth, begin = 0, at + len("\\boxed{")
    for end in range(begin, len(text)):
        if text[end] == "{":
            depth += 1
        elif text[end] == "}":
            if depth == 0:
                return _unwrapped(text[begin:end])
            depth -= 1
    return _unwrapped(text[begin:])


def tagged(text: str) -> str:
    found = _ANSWER.findall(text)
    return str(found[-1]).strip() if found else ""


def _unwrapped(latex: str) -> str:
    latex = latex.strip()
    return match[1].strip() if (match := _LATEX_TEXT.match(latex)) else latex
