"""The references of an answer: its sources, numbered in the order of first citation, and the language of its topic."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hira.core.patterns import compile_lazily
from hira.core.sources import Source
from hira.evidence.citations import CITED, find_cited, list_marks, references_start

_CHINESE = compile_lazily(r"[\u3400-\u9fff]")
_LETTER = compile_lazily(r"[^\W\d_]")
_KANA = compile_lazily(r"[\u3040-\u30ff]")
HEADINGS = {True: "参考文献", False: "References"}
_RUN = compile_lazily(rf"{CITED.pattern}(?:\s*+{CITED.pattern})*")


@dataclass(frozen=True, slots=True)
class Reference:
    """A source and its number in a text, counted from 1 in the order of first citation."""

    number: int
    source: Source


def references(text: str, read: Mapping[str, Source]) -> list[Reference]:
    """Return the sources that a text cites, each once, in the order of first citation; unknown ids are left out."""
    cited = filter(read.__contains__, find_cited(text))
    return [Reference(number, read[source]) for number, source in enumerate(cited, 1)]


def number_references(text: str, read: Mapping[str, Source], shape: str = "[{}]") -> str:
    """Replace ids by numbers, each once in a run of marks: `[s7, s2]` becomes `[1][2]`. `shape` formats a number."""
    numbers = {source: number for number, source in enumerate(filter(read.__contains__, find_cited(text)), 1)}
    marks = list_marks(text)

    def write_numbers(match: re.Match[str]) -> str:
        if match.start() not in marks:
            return match[0]
        cited = {numbers[source] for source in find_cited(match[0]) if source in numbers}
        return "".join(shape.format(number) for number in sorted(cited))

    return _RUN.sub(write_numbers, text)


def is_chinese(text: str) -> bool:
    """Return whether a text is in Chinese: at least a third of its letters are Chinese, and it has no Japanese kana."""
    letters = _LETTER.findall(text)
    return not _KANA.search(text) and len(_CHINESE.findall(text)) * 3 >= max(1, len(letters))


def language(question: str) -> str:
    """Return the language of a report on the question, as a prompt names it."""
    return "Chinese (中文)" if is_chinese(question) else "the language of the topic"


def without_references(text: str) -> str:
    """Return the text without a list of references at its end, because hira adds its own."""
    return text[: references_start(text)].strip()
