"""Recognition of files that hira wrote: an answer must not become the evidence for the next one."""

import json
import re

from hira.core.page import GENERATOR
from hira.evidence.verdicts import Verdict

AUTHOR = "hira"
"""The author of a .docx or .pdf file that hira wrote."""
MARK = "<!-- written by hira, which does not search this file -->"
"""The last line of a Markdown file that hira wrote."""
_KEYS = {"question", "run_id", "workflow"}
"""The keys that each JSON record of an answer or of a run has."""
_HEAD = 1_000
_SOURCES = re.compile(
    rf"\n\[s\d+\] [^\n]+ — [^\n]+ \((?:{'|'.join(map(re.escape, Verdict))})\b[^\n]*\)(?:\n {{5}}“[^\n]*”)*\s*\Z"
)
"""The last of the sources that `hira ask` prints below an answer, with its verdict and its quotations."""


def is_own_text(text: str, suffix: str) -> bool:
    """Return whether hira wrote a text file with this suffix: an answer, a report, or records of runs."""
    if suffix in (".html", ".htm"):
        return GENERATOR in text[:_HEAD]
    if suffix in (".json", ".jsonl", ".ndjson"):
        return _is_record(text) or _is_record(text.partition("\n")[0])
    return text.rstrip().endswith(MARK) or _SOURCES.search(text) is not None


def _is_record(text: str) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.keys() >= _KEYS
