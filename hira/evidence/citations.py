"""Marks such as `[s1]` in a text, what a verifier gets and says, and the citations of a checked answer."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hira.core.messages import Filled
from hira.core.patterns import compile_lazily
from hira.core.sanitize import clean
from hira.core.sources import Source, Sources

Verdict = Literal["supported", "contradicted", "unsupported", "unchecked"]
"""`unsupported`: the evidence does not say so. `unchecked`: nothing could compare the claim with the evidence."""
VERDICTS: Sequence[Verdict] = ("unchecked", "unsupported", "contradicted", "supported")
"""In the order in which one says more than another."""


@dataclass(frozen=True, slots=True)
class SourcedClaim:
    """A claim and the sources that it is held against: those that the answer cites for it, or `attributed` ones.

    `read` is everything that the run read.
    """

    text: str
    sources: tuple[Source, ...]
    attributed: bool = False
    read: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True)
class PackedClaims:
    """Claims as they are sent to another process: each source once, named by its place in the list."""

    sources: list[Source]
    claims: list[tuple[str, list[int], bool, list[int]]]

    @property
    def size(self) -> int:
        """Characters of the sources."""
        return sum(len(one.text) for one in self.sources)


def pack_claims(claims: Iterable[SourcedClaim]) -> PackedClaims:
    places: dict[Source, int] = {}

    def place(sources: Iterable[Source]) -> list[int]:
        return [places.setdefault(one, len(places)) for one in sources]

    packed = [(one.text, place(one.sources), one.attributed, place(one.read)) for one in claims]
    return PackedClaims(list(places), packed)


def unpack_claims(packed: PackedClaims) -> list[SourcedClaim]:
    def found(places: Iterable[int]) -> tuple[Source, ...]:
        return tuple(packed.sources[one] for one in places)

    return [
        SourcedClaim(text, found(cited), attributed, found(read)) for text, cited, attributed, read in packed.claims
    ]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a verifier says of one claim.

    `score` is between 0 and 1, the confidence that the claim is supported. `quote` is the passage that decided and
    `source` the id of the source that holds it, empty if there is none. `reason` says why a claim could not be checked,
    or not fully.
    """

    verdict: Verdict
    score: float = 0.0
    quote: str = ""
    source: str = ""
    by: str = ""
    reason: str = ""


# Blanks are taken possessively: a bracket before a million of them is looked at once.
CITED = compile_lazily(r"\[\s*+(s\d++(?:\s*+[,;]\s*+s\d++)*)\s*+\]")
_MARK = compile_lazily(r"\[(\s*+/?\s*+s\d++(?:\s*+[,;]\s*+s\d++)*+\s*+)\]")
_MARK_OR_PARAGRAPH = compile_lazily(rf"(\s?){_MARK.pattern}|\n\n")
_BEFORE_STOP = compile_lazily(r"(?<!\s)\s++([.,;:])")
_CODE = compile_lazily(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)
_NAME = compile_lazily(r"(?<![\w'’\\])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[[\w'\"]*\])*$")
_CODED = compile_lazily(r"^\s*(?:>>>|\.\.\. |return |for .+:\s*$|if .+:\s*$)|\w\(|\w\]?\s*[-+*/|&]?=\s?\S|;\s*$")
_ID = compile_lazily(r"s\d+")
_BARE_MARK = compile_lazily(r"\[\s*+s?(\d++)\s*+\]|\bs(\d++)\b")
_NEAR = 120


@dataclass(frozen=True, slots=True)
class Citation:
    """A claim of an answer and a source that it rests on.

    `quote` is the passage of the source that decided; `score` is between 0 and 1, the verifier's confidence that the
    claim is supported; `by` names the verifier, empty if nothing was checked. `attributed` says that the answer cites
    nothing for the claim and that hira found the source.
    """

    source: str
    claim: str
    quote: str
    verdict: Verdict
    score: float = 0.0
    by: str = ""
    attributed: bool = False


def find_cited(text: str) -> list[str]:
    """The ids that a text cites, in order, each once: `[s1]`, `[s1, s2]`."""
    return list(dict.fromkeys(one for match in CITED.finditer(text) for one in _ID.findall(match[1])))


def has_only_marks(text: str, sources: Sources) -> bool:
    """Whether an answer names sources and says nothing: `[s1]`, `s1`, `[1]`."""
    rest = _BARE_MARK.sub(lambda match: "" if f"s{match[1] or match[2]}" in sources else match[0], text)
    return rest != text and not re.search(r"\w", rest)


def remove_marks(text: str) -> str:
    """What was read, without marks like ours: no page cites a source, or opens and closes the frame around another.

    In code an index such as `df[s1]` stays: right behind a name, between backticks or in a line that no prose has. A
    mark that comes about where another is dropped loses its brackets.
    """
    once = _without_marks(text, "")
    return once if once == text else _without_marks(once, r"(\1)")


def _without_marks(text: str, instead: str) -> str:
    if not _MARK.search(text):
        return text
    spans = [match.span() for match in _CODE.finditer(text)]
    begins = [start for start, _ in spans]

    def keep(match: re.Match[str]) -> str:
        at = match.start()
        after = text[match.end() : match.end() + 1]
        if "/" in match[0] or after.isalnum() or not _NAME.search(text[max(0, at - 40) : at]):
            return match.expand(instead)
        span = bisect_left(begins, at) - 1
        in_code = (span >= 0 and at < spans[span][1]) or _CODED.search(_line(text, at))
        return match[0] if in_code else match.expand(instead)

    return _MARK.sub(keep, text)


def _line(text: str, at: int) -> str:
    """The line that this place is in; of a very long one, what is near."""
    begin = text.rfind("\n", max(0, at - _NEAR), at) + 1
    end = text.find("\n", at, at + _NEAR)
    cut = "" if begin or at <= _NEAR else "…"
    return cut + text[begin or max(0, at - _NEAR) : end if end >= 0 else at + _NEAR]


def inert(text: str) -> Filled:
    """What was read, as a prompt may hold it: with no token, no mark like ours, and none that dropping one leaves."""
    cleaned = clean(text)
    bare = remove_marks(cleaned)
    return Filled(bare if bare == cleaned else clean(bare))


def cite_frames(text: str) -> str:
    """The text with every `[/s8]`, which ends the frame around what a model is shown, as the citation that is meant by
    it: dropped where its paragraph cites `[s8]` before."""
    if "/" not in text:
        return text
    before: set[str] = set()

    def mark(match: re.Match[str]) -> str:
        ids = set(_ID.findall(match[0]))
        if not ids:
            before.clear()  # another paragraph
        elif "/" in match[0]:
            new = [one for one in _ID.findall(match[0]) if one not in before]
            return f"{match[1]}[{', '.join(new)}]" if new else ""
        before.update(ids)
        return match[0]

    return _MARK_OR_PARAGRAPH.sub(mark, text)


def drop_unknown(text: str, sources: Sources) -> tuple[str, list[str]]:
    """The text without citations of ids that nobody read, and those ids. The ends of frames are citations."""
    text = cite_frames(text)
    unknown = [one for one in find_cited(text) if one not in sources]

    def keep(match: re.Match[str]) -> str:
        ids = [one for one in _ID.findall(match[1]) if one in sources]
        return f"[{', '.join(ids)}]" if ids else ""

    return (_BEFORE_STOP.sub(r"\1", CITED.sub(keep, text)) if unknown else text), unknown


_CHINESE = compile_lazily(r"[\u3400-\u9fff]")
_LETTER = compile_lazily(r"[^\W\d_]")
_KANA = compile_lazily(r"[\u3040-\u30ff]")
_LIST = compile_lazily(
    r"^(?:#{1,6}[ \t]*+|\*\*)?(?:\d+[.)、][ \t]*+)?"
    r"(?:references?|sources?|bibliography|works cited|参考文献|参考资料|引用来源|来源)"
    r"[ \t]*+(?:\*\*)?[ \t]*+[:：]?[ \t]*+(?:\*\*)?[ \t]*+$",
    re.IGNORECASE | re.MULTILINE,
)
_ENTRY = compile_lazily(r"\s*(?:[-*+]\s+)?(?:\[|https?:|s\d+\b|\d+[.)、](?!.*\[\s*s\d))|.*https?://|\s*$")
HEADINGS = {True: "参考文献", False: "References"}
_RUN = compile_lazily(rf"{CITED.pattern}(?:\s*+{CITED.pattern})*")


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

    def write_numbers(match: re.Match[str]) -> str:
        found = {numbers[one] for one in find_cited(match[0]) if one in numbers}
        return "".join(shape.format(number) for number in sorted(found))

    return _RUN.sub(write_numbers, text)


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
