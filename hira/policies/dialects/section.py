"""What a model wrote between two marks of a name, such as `<plan>…</plan>` (MaMs, appendix C)."""

import re
from functools import cache


@cache
def _marked(name: str) -> "re.Pattern[str]":
    return re.compile(rf"<\s*{name}\s*>(.*?)(?:<\s*/\s*{name}\s*>|\Z)", re.DOTALL | re.IGNORECASE)


def section(text: str, name: str) -> str | None:
    """The last section of this name, empty if nothing stands in it, None if there is none; one left open runs to the
    end of the text."""
    found = _marked(name).findall(text)
    return str(found[-1]).strip() if found else None


def without(text: str, name: str) -> str:
    """The text without its sections of this name."""
    return _marked(name).sub("", text).strip()
