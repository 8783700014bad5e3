"""Whether a question speaks of the attached files, and the question without saying so."""

import re
from collections.abc import Sequence
from pathlib import Path

_KINDS = r"(?:file|list|table|document|sheet|spreadsheet|note|letter|page|text|report|log|csv|json)s?"
_ATTACHED = r"(?:attached|enclosed|uploaded|appended|accompanying)"
_SPOKEN = re.compile(
    rf",?\s*(?:\b(?:according to|based on|as given in|named in|mentioned in|listed in|in|on|from|of|by|per"
    rf"|does|do)\s+)?"
    rf"\b(?:the|this|that|my|these)\s+(?:{_ATTACHED}\s+(?:[\w-]+\s+){{0,2}}?{_KINDS}|{_ATTACHED}\s+[\w-]+"
    rf"|{_KINDS}\s+(?:that (?:is|was|are) )?{_ATTACHED}|attachments?)\b(?:\s+(?:says?|states?|gives?)\b)?,?",
    re.IGNORECASE,
)
_SOURCED = re.compile(
    r"^\W*(?:according to|in|from) (?:the|your|these|my) (?:documents?|sources?|files?),?\s+"
    r"|,?\s*\b(?:according to|in|from) (?:the|your|these|my) (?:documents|sources|files)\b"
    r"|^\W*(?:do|does) (?:the |all |both )?(?:documents|sources|files)\s+(?:agree|differ|disagree)"
    r" (?:on|about|over|in)\s+",
    re.IGNORECASE,
)


def speaks_of(question: str, files: Sequence[str]) -> list[str]:
    """The attached files that a question speaks of: those that it names, all if it only says that they are attached."""
    named = [file for file in files if Path(file).name.lower() in question.lower()]
    return named or (list(files) if _SPOKEN.search(question) else [])


def unspoken(question: str) -> str:
    """The question without the words that only say where its answer stands."""
    left = _SOURCED.sub("", _SPOKEN.sub(" ", question))
    left = " ".join(re.sub(r"\s+([?.,])", r"\1", left).split()).strip(" ,")
    return f"{left[0].upper()}{left[1:]}" if len(left.split()) > 1 else question
