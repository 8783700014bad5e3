"""Parses a model's text apart from its calls: visible text, final answer, headed and marked sections, verdicts,
records."""

import json
import re
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from hira.core.errors import DialectError
from hira.core.patterns import compile_lazily
from hira.core.policy import Completion
from hira.core.tool import describe_faults
from hira.evidence import find_cited
from hira.policies.dialects.lenient import Beyond, decode_first, decode_json

_NEXT = compile_lazily(r"#{1,6}\s|\*\*[^*]+\*\*:?$")


@cache
def _heading(name: str) -> "re.Pattern[str]":
    """Return the pattern of a heading: alone on its line, marked or with a colon, or with its text after a colon."""
    named = rf"(?:\d+[.)]\s*)?{re.escape(name)}"
    return re.compile(
        rf"#{{1,6}}\s*(?:\*\*)?{named}(?:\*\*)?(?::(?:\*\*)?\s*(?P<hashed>.*))?"
        rf"|\*\*{named}(?::\*\*|\*\*:?)\s*(?P<bold>.*)|{named}:",
        re.IGNORECASE,
    )


def find_under_heading(text: str, heading: str) -> str:
    """Return the text below the first heading of this name, or after it on its line, up to the next heading; empty
    without such a heading.

    >>> find_under_heading("# Report\\n## Conclusion:\\nIt is 31 m.\\n\\n**Observations**\\nNone.", "Conclusion")
    'It is 31 m.'
    """
    lines = iter(text.splitlines())
    begun = next(filter(None, (_heading(heading).fullmatch(line.strip()) for line in lines)), None)
    section_lines = [begun["hashed"] or begun["bold"] or ""] if begun else []
    for line in lines:
        if _NEXT.match(line.strip()):
            break
        section_lines.append(line)
    return "\n".join(section_lines).strip()


@cache
def _section_pattern(name: str) -> "re.Pattern[str]":
    return re.compile(rf"<\s*{name}\s*>(.*?)(?:<\s*/\s*{name}\s*>|\Z)", re.DOTALL | re.IGNORECASE)


def find_section(text: str, name: str) -> str | None:
    """Return the last section of this name, None without one; an unclosed one runs to the end of the text."""
    sections = _section_pattern(name).findall(text)
    return str(sections[-1]).strip() if sections else None


def remove_section(text: str, name: str) -> str:
    """The text without its sections of this name."""
    return _section_pattern(name).sub("", text).strip()


_THOUGHT = compile_lazily(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_CLOSING = ("</think>", "</thinking>", "<|channel|>final<|message|>")
_CLOSED = compile_lazily(r"^.*(?:</think(?:ing)?>|<\|channel\|>final<\|message\|>)", re.DOTALL)
_FENCED_WHOLE = compile_lazily(r"```(?:markdown|md)?[ \t]*\n(.*?)\n```", re.DOTALL)
_OPEN_THOUGHT = compile_lazily(r"<think(?:ing)?>(?!.*</think(?:ing)?>)", re.DOTALL)


def strip_thought(completion: Completion) -> str:
    """The text without finished thought. Thought that the model wrote into its text and never closed stays."""
    text = completion.text
    end = max((text.rfind(tag) + len(tag) for tag in _CLOSING if tag in text), default=0)
    # after the last closing tag no thought ends, and to look for its end from each beginning takes quadratic time
    return (_CLOSED.sub("", _THOUGHT.sub("", text[:end])) + text[end:]).strip()


def verbatim(completion: Completion) -> str:
    """Return the text of a turn that a conversation keeps: without reasoning, and if it has none, with the white
    space around it.

    This lets a conversation of token ids continue exactly where the model stopped. White space alone is nothing.
    """
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


def document(text: str) -> str:
    """The Markdown that a model was asked for, without a fence around all of it."""
    fenced = _FENCED_WHOLE.fullmatch(text.strip())
    return (fenced[1] if fenced else text).strip()


_LINE = compile_lazily(r"^[\s>#*_-]*verdict[\s*_]*[:：](.*)$", re.IGNORECASE | re.MULTILINE)
_DRESS = compile_lazily(r"\\boxed|\\text|[\s*_`'\"“”{}$.。!]")


def read_verdict(completion: Completion) -> bool | None:
    """Return whether the last verdict accepts; None without a readable one.

    Only the exact word counts: "incorrect" is not "correct", and neither are "not correct" and "partly correct". A
    reply that was cut off has no verdict yet.
    """
    if completion.finish == "length":
        return None
    verdicts = _LINE.findall(strip_thought(completion))
    return {"correct": True, "incorrect": False}.get(_DRESS.sub("", verdicts[-1]).lower()) if verdicts else None


M = TypeVar("M")
_FENCE = compile_lazily(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)


def read_record(completion: Completion, shape: type[M]) -> M:
    """The record of the pydantic model `shape` in a reply. `DialectError` tells the model what was wrong with it."""
    from pydantic import TypeAdapter, ValidationError

    text = strip_thought(completion) or completion.reasoning
    objects = _objects(text)
    if not objects:
        cut = " Your reply was cut off at the length limit; write less." if completion.finish == "length" else ""
        raise DialectError(f"Your reply holds no JSON object.{cut}")
    complaint = ""
    for candidate in objects:
        try:
            return TypeAdapter(shape).validate_python(candidate)
        except ValidationError as error:
            complaint = describe_faults(error, "object")
        except Exception as error:  # noqa: BLE001 - a validator of the program must not cost the answer
            complaint = f"{type(error).__name__}: {error}".rstrip(": ")
    raise DialectError(f"Your JSON object does not fit: {complaint}.")


def _objects(text: str) -> list[Any]:
    """Find every JSON object in the text: fenced ones first, then the others, the last one first."""
    fenced, plain = list[Any](), list[Any]()
    for block in _FENCE.findall(text):
        with suppress(json.JSONDecodeError):
            fenced.append(decode_json(block))
    position = text.find("{")
    while position >= 0:
        try:
            value, end = decode_first(text, position)
        except Beyond:
            break
        except json.JSONDecodeError:
            position = text.find("{", position + 1)
        else:
            plain.append(value)
            position = text.find("{", end)
    return [value for value in fenced if value is not None] + plain[::-1]
