"""Parses a model's text apart from its calls: visible text, final answer, marked sections."""

import re

from hira.core.patterns import compile_lazily
from hira.core.policy import Completion
from hira.evidence import find_cited

_SECTION = r"<\s*{name}\s*>(.*?)(?:<\s*/\s*{name}\s*>|\Z)"


def find_section(text: str, name: str) -> str | None:
    """Return the last section of this name, None without one; an unclosed one runs to the end of the text."""
    sections = re.findall(_SECTION.format(name=name), text, re.DOTALL | re.IGNORECASE)
    return str(sections[-1]).strip() if sections else None


def remove_section(text: str, name: str) -> str:
    return re.sub(_SECTION.format(name=name), "", text, flags=re.DOTALL | re.IGNORECASE).strip()


_THOUGHT = compile_lazily(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_CLOSING = ("</think>", "</thinking>", "<|channel|>final<|message|>")
_CLOSED = compile_lazily(r"^.*(?:</think(?:ing)?>|<\|channel\|>final<\|message\|>)", re.DOTALL)
_OPEN_THOUGHT = compile_lazily(r"<think(?:ing)?>(?!.*</think(?:ing)?>)", re.DOTALL)


def strip_thought(completion: Completion) -> str:
    """The text without finished thought. Thought that the model wrote into its text and never closed stays."""
    text = completion.text
    end = max((text.rfind(tag) + len(tag) for tag in _CLOSING if tag in text), default=0)
    # after the last closing tag no thought ends, and to look for its end from each beginning takes quadratic time
    return (_CLOSED.sub("", _THOUGHT.sub("", text[:end])) + text[end:] if end else text).strip()


def verbatim(completion: Completion) -> str:
    """The text of a turn that a conversation keeps: without reasoning, and if it has none, with the white space around
    it, so that a conversation of token ids continues exactly where the model stopped."""
    spoken = strip_thought(completion)
    return completion.text if spoken and completion.text.strip() == spoken else spoken


def only_thought(completion: Completion) -> bool:
    """Return whether the model only reasoned: no call, no text and, within unclosed reasoning, no boxed answer."""
    if completion.calls or "\\boxed{" in completion.text:
        return False
    if _OPEN_THOUGHT.match(completion.text.lstrip()):
        return True
    return not strip_thought(completion) and bool(completion.reasoning or completion.text.strip())


def find_final_answer(text: str) -> str:
    """Return the answer in a closing turn: the last `\\boxed{…}`, else the last `<answer>…</answer>`, else all of it.

    A box without citations gets those of its line, or else those of the last line before it that has any.
    """
    inner = find_boxed(text)
    if not inner:
        return find_section(text, "answer") or text.strip()
    if find_cited(inner):
        return inner
    before, _, after = text.rpartition("\\boxed{")
    *earlier, beginning = before.split("\n")
    final_line = beginning + after.split("\n")[0]
    ids = next((ids for line in (final_line, *reversed(earlier)) if (ids := find_cited(line))), [])
    return f"{inner} [{', '.join(ids)}]" if ids else inner


def find_boxed(text: str) -> str:
    """Return the content of the last `\boxed{…}`, with balanced braces; empty without one."""
    position = text.rfind("\\boxed{")
    if position < 0:
        return ""
    inner = text[position + len("\\boxed{") :]
    inner = inner[: _closing(inner)].strip()
    plain = inner.removeprefix("\\text{")  # around all of it, it says nothing
    return plain[:-1].strip() if plain != inner and _closing(plain) == len(plain) - 1 else inner


def _closing(text: str) -> int:
    """Where the brace closes that was opened before the text; its end if it never does."""
    depth = 0
    for index, character in enumerate(text):
        if character == "{":
            depth += 1
        elif character == "}":
            if depth == 0:
                return index
            depth -= 1
    return len(text)
