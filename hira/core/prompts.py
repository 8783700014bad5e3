"""Prompts are `.md` files next to the module that sends them, and are filled in one pass."""

import re
from functools import cached_property
from pathlib import Path
from typing import Any

from hira.core.errors import PromptError
from hira.core.messages import Filled
from hira.core.sanitize import clean

_SLOT = re.compile(r"\{\{(\w+)\}\}")


class Prompt:
    """The text of one `.md` file with `{{slots}}`. Read when first used.

    >>> Prompt(__file__, "planner").fill(question="…", limit=10)  # reads planner.md next to the module

    A slot without a value and a value without a slot raise `PromptError`; slots in a value are never filled. Values
    that hira did not write (`Filled`) are cleaned, so that they can form no token of any dialect; the user's words and
    those of our own roles are passed as `sanitize(…)`, which leaves code and markup alone.
    """

    def __init__(self, beside: str, name: str) -> None:
        self.name: str = name
        self.path: Path = Path(beside).with_name(f"{name}.md")

    @cached_property
    def text(self) -> str:
        """The file's text with its leading empty lines, for a paragraph that follows another text."""
        return self.path.read_text(encoding="utf-8").rstrip()

    @cached_property
    def slots(self) -> frozenset[str]:
        return frozenset(_SLOT.findall(self.text))

    def fill(self, **values: Any) -> Filled:
        if values.keys() != self.slots:
            missing, extra = sorted(self.slots - values.keys()), sorted(values.keys() - self.slots)
            raise PromptError(f"prompt {self.name!r}: missing values {missing}, values without a slot {extra}")
        return Filled(_SLOT.sub(lambda slot: safe(values[slot[1]]), self.text), self.name, values)


def safe(value: Any) -> str:
    """Make a value safe for a prompt: hira's own text stays as it is, everything else becomes data without tokens."""
    return value if isinstance(value, Filled) else clean(str(value))


def is_copied(text: str, shown: str) -> bool:
    """Return whether a text only repeats a part of what the model saw, apart from white space."""
    return bool(re.search(rf"(?<!\w){re.escape(' '.join(text.split()))}(?!\w)", " ".join(shown.split())))
