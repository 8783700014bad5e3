"""Citations as numbers, with the list of what they stand for: for reports that are read without hira."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hira.core.sources import Source
from hira.evidence.citations import CITED, find_cited

_CHINESE = re.compile(r"[\u3400-\u9fff]")
_LETTER = re.compile(r"[^\W\d_]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_LIST = re.compile(
    r"^(?:#{1,6}[ \t]*+|\*\*)?(?:\d+[.)、][ \t]*+)?"
    r"(?:references?|sources?|bibliography|works cited|参考文献|参考资料|引用来源|来源)"
    r"[ \t]*+(?:\*\*)?[ \t]*+[:：]?[ \t]*+(?:\*\*)?[ \t]*+$",
    re.IGNORECASE | re.MULTILINE,
)
_ENTRY = re.compile(r"\s*(?:[-*+]\s+)?(?:\[|https?:|s\d+\b|\d+[.)、](?!.*\[\s*s\d))|.*https?://|\s*$")
HEADINGS = {True: "参考文献", False: "References"}
_RUN = re.compile(rf"{CITED.pattern}(?:\s*+{CITED.pattern})*")


@dataclass(frozen=True, slots=True)
class Reference:
    """A source under its number in a text, counted from 1 in the order of first citation."""

    number: int
    source: Source


def references(text: str, read: Mapping[str, Source]) -> list[Reference]:
    """The sources that a text cites, each once, in the order in which it does; ids that nobody read are left out."""
    return [Reference(at, read[one]) for at, one in enumerate((one for one in find_cited(text) if one in read), 1)]


def number_references(text: str, read: Mapping[str, Source], shape: str = "[{}]") -> str:
    """The text with numbers in place of ids: `[s7, s2]` becomes `[1][2]`. Marks that stand side by side are one run,
    in which no number comes twice. `shape` says how a number is written."""
    numbers = {one.source.id: one.number for one in references(text, read)}

    def counted(match: re.Match[str]) -> str:
        found = {numbers[one] for one in find_cited(match[0]) if one in numbers}
        return "".join(shape.format(number) for number in sorted(found))

    return _RUN.sub(counted, text)


def is_chinese(text: str) -> bool:
    """Whether a text is written in Chinese: at least a third of its letters are Chinese, and none is Japanese kana."""
    letters = _LETTER.findall(text)
    return not _KANA.search(text) and len(_CHINESE.findall(text)) * 3 >= max(1, len(letters))


def language(question: str) -> str:
    """The language that a report is to be written in, as a prompt names it."""
    return "Chinese (中文)" if is_chinese(question) else "the language of the topic"


def without_references(text: str) -> str:
    """The text without a list of references at its end, which hira adds itself from what was read."""
    return text[: references_start(text)].strip()


def references_start(text: str) -> int:
    """Where the list of references at the end of a text begins; its length if there is none."""
    found = list(_LIST.finditer(text))
    if not found or not all(_ENTRY.match(line) for line in text[found[-1].end() :].splitlines()):
        return len(text)
    return found[-1].start()
