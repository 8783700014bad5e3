"""Prompts are `.md` files next to the module that sends them, and are filled in one pass."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hira.core.errors import PromptError
from hira.core.messages import Filled
from hira.core.sanitize import clean

_TOKEN = re.compile(r"\{\{(?:#if (?P<test>\w+)|(?P<word>else|/if)|(?P<slot>\w+))\}\}")
_BLOCK_LINE = re.compile(r"\n(\{\{(?:#if \w+|else|/if)\}\})(?=\n|\Z)")
_HEADING = re.compile(r"^## (\w+)$", re.MULTILINE)


@dataclass(frozen=True, eq=False)
class Prompt:
    """The text of a `.md` file with `{{slots}}` and parts that depend on a value. Read when first used.

    >>> Prompt(__file__, "planner").fill(question="…", limit=10)  # reads planner.md next to the module

    `{{#if notes}} … {{else}} … {{/if}}` shows its first part where `notes` has a value, otherwise its second; a line of
    its own for such a mark adds no line. A file of short texts has each under a heading with its name:
    `Prompt(__file__, "remarks", "empty")`.

    A name without a value and a value without a name in the text raise `PromptError`. All is filled in one pass, so
    that slots in a value are never filled. Values that hira did not write (`Filled`) are cleaned, so that they can form
    no token of any dialect; the user's words and those of our own roles are passed as `sanitize(…)`, which leaves code
    and markup alone.
    """

    beside: str
    file: str
    section: str = ""

    @cached_property
    def text(self) -> str:
        """The text of the file, or of its section."""
        path = Path(self.beside).with_name(f"{self.file}.md")
        text = path.read_text(encoding="utf-8")
        if not self.section:
            return _BLOCK_LINE.sub(r"\1", text.rstrip())
        _, *parts = _HEADING.split(text)
        sections = dict(zip(parts[::2], parts[1::2], strict=True))
        if self.section not in sections:
            raise PromptError(f"{path.name} has no section {self.section!r}")
        return _BLOCK_LINE.sub(r"\1", sections[self.section].strip())

    @cached_property
    def slots(self) -> frozenset[str]:
        return frozenset(name for token in _TOKEN.finditer(self.text) if (name := token["test"] or token["slot"]))

    def fill(self, **values: Any) -> Filled:
        name = self.section or self.file
        if values.keys() != self.slots:
            missing, extra = sorted(self.slots - values.keys()), sorted(values.keys() - self.slots)
            raise PromptError(f"prompt {name!r}: missing values {missing}, values without a slot {extra}")
        written: list[str] = []
        shown, begin = [True], 0
        for token in _TOKEN.finditer(self.text):
            if all(shown):
                written += self.text[begin : token.start()], safe(values[token["slot"]]) if token["slot"] else ""
            begin = token.end()
            if token["test"]:
                shown.append(bool(values[token["test"]]))
            elif token["word"] and len(shown) == 1:
                raise PromptError(f"prompt {name!r}: {token[0]} without {{{{#if …}}}}")
            elif token["word"]:
                last = shown.pop()
                shown += [not last] if token["word"] == "else" else []
        if len(shown) > 1:
            raise PromptError(f"prompt {name!r}: {{{{#if …}}}} without {{{{/if}}}}")
        return Filled("".join(written) + self.text[begin:], name, values)


def safe(value: Any) -> str:
    """Make a value safe for a prompt: hira's own text stays as it is, everything else becomes data without tokens."""
    return value if isinstance(value, Filled) else clean(str(value))


def is_copied(text: str, shown: str) -> bool:
    """Return whether a text only repeats a part of what the model saw, apart from white space."""
    return bool(re.search(rf"(?<!\w){re.escape(' '.join(text.split()))}(?!\w)", " ".join(shown.split())))
