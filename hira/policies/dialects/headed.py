"""What a model wrote under a heading of its Markdown."""

import re
from functools import cache

_NEXT = re.compile(r"#{1,6}\s|\*\*[^*]+\*\*:?$")


@cache
def _heading(name: str) -> "re.Pattern[str]":
    """The heading alone on its line, marked or with a colon, or with its text behind a colon."""
    named = rf"(?:\d+[.)]\s*)?{re.escape(name)}"
    return re.compile(
        rf"#{{1,6}}\s*(?:\*\*)?{named}(?:\*\*)?(?::(?:\*\*)?\s*(?P<hashed>.*))?"
        rf"|\*\*{named}(?::\*\*|\*\*:?)\s*(?P<bold>.*)|{named}:",
        re.IGNORECASE,
    )


def under(text: str, heading: str) -> str:
    """The text below the first heading of this name, or behind it on its line, up to the next heading; empty if there
    is none.

    >>> under("# Report\\n## Conclusion:\\nIt is 31 m.\\n\\n**Observations**\\nNone.", "Conclusion")
    'It is 31 m.'
    """
    lines = iter(text.splitlines())
    begun = next(filter(None, (_heading(heading).fullmatch(line.strip()) for line in lines)), None)
    found = [begun["hashed"] or begun["bold"] or ""] if begun else []
    for line in lines:
        if _NEXT.match(line.strip()):
            break
        found.append(line)
    return "\n".join(found).strip()
