"""Prompts live in `.md` files beside the module that sends them and are filled in one pass."""

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

    >>> Prompt(__file__, "planner").fill(question="…", limit=10)  # reads planner.md beside the module

    A slot without a value and a value without a slot raise `PromptError`; a value is never read for slots itself.
    Values that hira did not write (`Filled`) are cleaned, so that they can form no token of any dialect; the user's
    words and those of our own roles are handed over as `sanitize(…)`, which leaves code and markup alone.
    """

    def __init__(self, beside: str, name: str) -> None:
        self.name: str = name
        self.path: Path = Path(beside).with_name(f"{name}.md")

    @cached_property
    def text(self) -> str:
        """The file's text; empty lines at its front stay, for a paragraph that is filled in behind another text."""
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
    """A value as it may stand in a prompt: what hira wrote itself as it is, everything else as data without tokens."""
    return value if isinstance(value, Filled) else clean(str(value))


def is_copied(text: str, shown: str) -> bool:
    """Whether a text only repeats a part of what a model was shown, but for white space."""
    return bool(re.search(rf"(?<!\w){re.escape(' '.join(text.split()))}(?!\w)", " ".join(shown.split())))
