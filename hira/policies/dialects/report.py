"""Parses the report of a role: its text under a heading, its Markdown without a fence, its verdict."""

import re

from hira.core.patterns import compile_lazily
from hira.core.policy import Completion
from hira.policies.dialects.answer import strip_thought

_NEXT = compile_lazily(r"#{1,6}\s|\*\*[^*]+\*\*:?$")


def find_under_heading(text: str, heading: str) -> str:
    """Return the text below the first heading of this name, or after it on its line, up to the next heading; empty
    without such a heading.

    >>> find_under_heading("# Report\\n## Conclusion:\\nIt is 31 m.\\n\\n**Observations**\\nNone.", "Conclusion")
    'It is 31 m.'
    """
    named = rf"(?:\d+[.)]\s*)?{re.escape(heading)}"
    # alone on its line, marked or with a colon, or with its text after a colon
    pattern = re.compile(
        rf"#{{1,6}}\s*(?:\*\*)?{named}(?:\*\*)?(?::(?:\*\*)?\s*(?P<hashed>.*))?"
        rf"|\*\*{named}(?::\*\*|\*\*:?)\s*(?P<bold>.*)|{named}:",
        re.IGNORECASE,
    )
    lines = iter(text.splitlines())
    begun = next(filter(None, (pattern.fullmatch(line.strip()) for line in lines)), None)
    section_lines = [begun["hashed"] or begun["bold"] or ""] if begun else []
    for line in lines:
        if _NEXT.match(line.strip()):
            break
        section_lines.append(line)
    return "\n".join(section_lines).strip()


_FENCED_WHOLE = compile_lazily(r"```(?:markdown|md)?[ \t]*\n(.*?)\n```", re.DOTALL)


def document(text: str) -> str:
    """The Markdown that a model was asked for, without a fence around all of it."""
    fenced = _FENCED_WHOLE.fullmatch(text.strip())
    return (fenced[1] if fenced else text).strip()


_LINE = compile_lazily(r"^[\s>#*_-]*verdict[\s*_]*[:：](.*)$", re.IGNORECASE | re.MULTILINE)
_DRESS = compile_lazily(r"\\boxed|\\text|[\s*_`'\"“”{}$.。!]")


def read_verdict(completion: Completion) -> bool | None:
    """Return whether the last verdict accepts; None without a readable one, and for a reply that was cut off. Only the
    exact word counts: "incorrect", "not correct" and "partly correct" are not "correct"."""
    if completion.finish == "length":
        return None
    verdicts = _LINE.findall(strip_thought(completion))
    return {"correct": True, "incorrect": False}.get(_DRESS.sub("", verdicts[-1]).lower()) if verdicts else None
