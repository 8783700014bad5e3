"""Tables of docs/architecture.md: what is called, in which file, in which order."""

import re
from collections.abc import Sequence
from pathlib import Path

ARCHITECTURE = Path(__file__).parent.parent / "docs" / "architecture.md"
STEP = re.compile(r"^\| \d+\. [^|]+ \| `([\w.]+)` \| \[[^]]+\]\(\.\./([^)]+)\) \|$", re.MULTILINE)


def steps_below(heading: str) -> list[tuple[str, str]]:
    """The functions of the table below a heading, each with its file."""
    return STEP.findall(_text_below(heading))


def code_below(heading: str) -> str:
    """The first block of text below a heading."""
    return _text_below(heading).partition("```text\n")[2].partition("```")[0]


def _text_below(heading: str) -> str:
    return ARCHITECTURE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def check_order(steps: Sequence[tuple[str, str]], called: Sequence[tuple[str, str]]) -> None:
    """Raise unless `called`, files and functions by their first call, has the steps in their order."""
    at = [
        next((place for place, (path, name) in enumerate(called) if path.endswith(file) and name == function), None)
        for function, file in steps
    ]
    assert None not in at, [step for step, place in zip(steps, at, strict=True) if place is None]
    assert at == sorted(at), [step for step, place in sorted(zip(steps, at, strict=True), key=lambda one: one[1])]
