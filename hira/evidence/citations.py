"""Citation marks such as `[s1]`, the input and the output of a verifier, and the citations of a checked answer."""

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from hira.core.messages import Filled
from hira.core.patterns import compile_lazily
from hira.core.sanitize import clean
from hira.core.sources import Source, Sources
from hira.evidence.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class SourcedClaim:
    """A claim and the sources to check it against: those that the answer cites for it, or `attributed` ones.

    `read` is everything that the run read.
    """

    text: str
    sources: tuple[Source, ...]
    attributed: bool = False
    read: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True)
class PackedClaims:
    """Claims in the form for another process: each source once, referenced by its position in the list."""

    sources: list[Source]
    claims: list[tuple[str, list[int], bool, list[int]]]

    @property
    def size(self) -> int:
        """The number of characters of the sources."""
        return sum(len(source.text) for source in self.sources)


def pack_claims(claims: Iterable[SourcedClaim], known: Iterable[Source] = ()) -> PackedClaims:
    """Pack claims; the list of sources begins with the `known` ones."""
    places = {source: index for index, source in enumerate(known)}

    def place(sources: Iterable[Source]) -> list[int]:
        return [places.setdefault(source, len(places)) for source in sources]

    packed = [(claim.text, place(claim.sources), claim.attributed, place(claim.read)) for claim in claims]
    return PackedClaims(list(places), packed)


def unpack_claims(packed: PackedClaims) -> list[SourcedClaim]:
    def pick_sources(places: Iterable[int]) -> tuple[Source, ...]:
        return tuple(packed.sources[place] for place in places)

    return [
        SourcedClaim(text, pick_sources(cited), attributed, pick_sources(read))
        for text, cited, attributed, read in packed.claims
    ]


def _read_plain_values(judged: "Judgement | Citation") -> None:
    """Accept a judgement or a citation of a journal or a plug-in: a plain string as its verdict, lists of words."""
    object.__setattr__(judged, "verdict", Verdict(judged.verdict))
    object.__setattr__(judged, "missing", tuple(judged.missing))
    object.__setattr__(judged, "lacking", tuple(judged.lacking))


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verifier's judgement of one claim."""

    verdict: Verdict
    score: float = 0.0
    """The confidence that the claim is supported, from 0 to 1."""
    quote: str = ""
    """The decisive passage, or empty."""
    source: str = ""
    """The id of the source of the quote, or empty."""
    by: str = ""
    """The verifier's name."""
    reason: str = ""
    """Why the claim could not be checked, or not fully."""
    missing: tuple[str, ...] = ()
    """The words of the claim that the source does not have."""
    lacking: tuple[str, ...] = ()
    """The words of the question that a supported claim does not speak of."""

    def __post_init__(self) -> None:
        _read_plain_values(self)


# Blanks are matched possessively, so that a bracket before a million of them is tried only once.
CITED = compile_lazily(r"\[\s*+(s\d++(?:\s*+[,;]\s*+s\d++)*)\s*+\]")
_MARK = compile_lazily(r"\[(\s*+/?\s*+s\d++(?:\s*+[,;]\s*+s\d++)*+\s*+)\]")
_ANY_MARK = compile_lazily(
    r"(?:[\[【]|(?<![A-Za-z_])\()\s*+([sS]\d++(?:\s*+[,;]\s*+[sS]\d++)*+)\s*+(?:†[^】\n]{0,40}+)?[\])】]"
    r"|(?<![A-Za-z0-9_)\]}{$=])\[([1-9]\d?)\](?:\[\d{1,2}\])*+(?![A-Za-z0-9_(}$%])[ \t]*+"
)
_NUMBERED = compile_lazily(r"\[\d{1,3}\]")
_ITEM = compile_lazily(r"^[ \t]*+\[\d{1,2}\](?=[ \t])", re.MULTILINE)
_MARK_OR_PARAGRAPH = compile_lazily(rf"(\s?){_MARK.pattern}|\n\n")
_DROPPED = compile_lazily(r"(?<![ \t])([ \t]*+)\0(?:[ \t]*+[,;]?[ \t]*+\0)*+(?:[ \t]*+(?=[.,;:](?!\w))|())")
_CODE = compile_lazily(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)
_RESULT = compile_lazily(r"(?:[=→⇒>]|\w\()[ \t]*\Z")
"""The end of a text that a list of one number may follow: "sorted(x) = [5]"."""
_NAME = compile_lazily(r"(?<![\w'’\\])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[[\w'\"]*\])*\Z")
_CODED = compile_lazily(r"^\s*(?:>>>|\.\.\. |return |for .+:\s*$|if .+:\s*$)|\w\(|\w\]?\s*[-+*/|&]?=\s?\S|;\s*$")
_ID = compile_lazily(r"s\d+")
_BARE_MARK = compile_lazily(r"\[\s*+s?(\d++)\s*+\]|\bs(\d++)\b")
_NEAR = 120
_NAME_SEEN = 40
SHOWN = 8
"""The number of missing words that are shown; JSON has all of them."""
BY_WORDS = "lexical"
"""The name of the check without a model in judgements."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A claim of an answer and a source that it relies on."""

    source: str
    claim: str
    quote: str
    """The decisive passage of the source."""
    verdict: Verdict
    score: float = 0.0
    """The verifier's confidence that the claim is supported, from 0 to 1."""
    by: str = ""
    """The verifier's name, empty if nothing was checked."""
    attributed: bool = False
    """The answer cites nothing for the claim; hira found the source."""
    missing: tuple[str, ...] = ()
    """The words that the source does not have."""
    lacking: tuple[str, ...] = ()
    """The words of the question that a supported claim does not speak of."""
    place: str = ""
    """Where in a document the passage is: `p. 12`, `sheet Sales, row 7`; empty if that is unknown."""

    def __post_init__(self) -> None:
        _read_plain_values(self)

    def explain(self, *, chinese: bool = False) -> str:
        """Say why words do not support the claim: name those that the source does not have, `SHOWN` at most. Empty for
        another verdict, or one of a model."""
        if not self.missing:
            if self.verdict is not Verdict.UNSUPPORTED or self.by != BY_WORDS:
                return ""
            return "来源有这些词，但说法不同" if chinese else "the source has these words, but puts them differently"
        words = ", ".join(self.missing[:SHOWN]) + (", …" if len(self.missing) > SHOWN else "")
        return f"引文未提及：{words}" if chinese else f"the quotation does not say: {words}"

    def flag(self, *, chinese: bool = False) -> str:
        """Return the verdict, with the missing words, as it follows the claim."""
        return "; ".join(filter(None, (self.verdict.label(chinese=chinese), self.explain(chinese=chinese))))


_PAGE = compile_lazily(r"p\. (?:.+ \(page )?(\d+)")
_PLACES = 5


def find_places(source: str, citations: Iterable[Citation]) -> list[str]:
    """Return the places that citations of a source name, each once, in order; of supported claims, if there are any."""
    cited = [citation for citation in citations if citation.source == source and citation.place]
    held = [citation for citation in cited if citation.verdict.holds]
    return list(dict.fromkeys(citation.place for citation in held or cited))


def locate(source: Source, citations: Iterable[Citation]) -> str:
    """Return where a source is, and where in it the cited passages are: "report.pdf, p. 12; p. 14"."""
    places = find_places(source.id, citations)
    shown = [*places[:_PLACES], *(["…"] if len(places) > _PLACES else [])]
    return f"{source.location}, {'; '.join(shown)}" if shown else source.location


def find_page(place: str) -> int | None:
    """Return the number of the page in its file that a place names, None for a place of another kind."""
    match = _PAGE.match(place)
    return int(match[1]) if match else None


def find_cited(text: str) -> list[str]:
    """Return the ids that a text cites, in order, each once: `[s1]`, `[s1, s2]`."""
    return list(dict.fromkeys(source for mark in list_marks(text).values() for source in _ID.findall(mark)))


def has_only_marks(text: str, sources: Sources) -> bool:
    """Return whether an answer consists of source ids only: `[s1]`, `s1`, `[1]`, or several numbers in brackets."""
    ids = [f"s{bracketed or bare}" for bracketed, bare in _BARE_MARK.findall(text)]
    return (len(ids) > 1 or any(mark in sources for mark in ids)) and not re.search(r"\w", _BARE_MARK.sub("", text))


def remove_marks(text: str) -> str:
    """Remove marks like ours from the text of a source: no page cites a source, or opens and closes the frame around
    another.

    In code an index such as `df[s1]` stays: directly after a name, between backticks or in a line that is not prose. A
    mark that forms when another is removed gets parentheses.
    """
    once = _without_marks(text, "")
    return once if once == text else _without_marks(once, r"(\1)")


def _without_marks(text: str, instead: str) -> str:
    if not _MARK.search(text):
        return text
    spans = [match.span() for match in _CODE.finditer(text)]
    begins = [start for start, _ in spans]

    def keep(match: re.Match[str]) -> str:
        position = match.start()
        after = text[match.end() : match.end() + 1]
        if "/" in match[0] or after.isalnum() or not _NAME.search(text[max(0, position - _NAME_SEEN) : position]):
            return match.expand(instead)
        span = bisect_left(begins, position) - 1
        in_code = (span >= 0 and position < spans[span][1]) or _CODED.search(_line(text, position))
        return match[0] if in_code else match.expand(instead)

    return _MARK.sub(keep, text)


def _line(text: str, position: int) -> str:
    """Return the line at this position; of a very long one, only the surroundings."""
    begin = text.rfind("\n", max(0, position - _NEAR), position) + 1
    end = text.find("\n", position, position + _NEAR)
    cut = "" if begin or position <= _NEAR else "…"
    return cut + text[begin or max(0, position - _NEAR) : end if end >= 0 else position + _NEAR]


def inert(text: str) -> Filled:
    """Make the text of a source safe for a prompt: without tokens and marks like ours, even after removals."""
    cleaned = clean(text)
    bare = remove_marks(cleaned)
    return Filled(bare if bare == cleaned else clean(bare))


def cite_frames(text: str) -> str:
    """Turn every `[/s8]`, which ends the frame around a source in a prompt, into the citation that it means, and drop
    it if its paragraph has already cited `[s8]`."""
    if "/" not in text:
        return text
    before: set[str] = set()

    def mark(match: re.Match[str]) -> str:
        ids = set(_ID.findall(match[0]))
        if not ids:
            before.clear()  # another paragraph
        elif "/" in match[0]:
            new = [source for source in _ID.findall(match[0]) if source not in before]
            return f"{match[1]}[{', '.join(new)}]" if new else ""
        before.update(ids)
        return match[0]

    return _MARK_OR_PARAGRAPH.sub(mark, text)


def list_marks(text: str) -> dict[int, str]:
    """Return the marks that are citations by where they begin, without an index in code, such as `df[s1]`."""
    indices = {
        code.start() + mark.start()
        for code in _CODE.finditer(text)
        for mark in CITED.finditer(code[0])
        if _NAME.search(code[0][max(0, mark.start() - _NAME_SEEN) : mark.start()])
    }
    return {mark.start(): mark[0] for mark in CITED.finditer(text) if mark.start() not in indices}


def drop_unknown(text: str, sources: Sources) -> tuple[str, list[str]]:
    """Return the text without citations of unknown ids, and those ids. The ends of frames count as citations, and so do
    marks of known ids that are written in another way: `(s1)`, `[S1]` or `【s1†source】`. A number such as `[1]` is an
    unknown id, unless it is in code or a result ("= [5]"), it numbers a list, a source has such numbers, or a program
    made a source."""
    text = cite_frames(text)
    marks = list_marks(text)
    code = [span.span() for span in _CODE.finditer(text)]
    unknown = [source for source in find_cited(text) if source not in sources]
    read = sources.read.values() if _NUMBERED.search(text) else ()
    numbers = any(source.kind == "computation" or _NUMBERED.search(source.text) for source in read)
    end = references_start(text) if read and not numbers and len(_ITEM.findall(text)) < 2 else 0

    def keep(match: re.Match[str]) -> str:
        coded = any(begin <= match.start() < stop for begin, stop in code)
        if not match[1]:
            result = _RESULT.search(text, max(0, match.start() - 12), match.start())
            dropped = match.start() < end and not (coded or result)
            unknown.extend(number for number in re.findall(r"\d+", match[0]) if dropped and number not in unknown)
            return "\0" if dropped else match[0]
        ids = _ID.findall(match[1].lower())
        known = [source for source in ids if source in sources]
        if CITED.fullmatch(match[0]):
            if match.start() not in marks:
                return match[0]
            return f"[{', '.join(known)}]" * bool(known) + "\0" * (known != ids)
        return f"[{', '.join(ids)}]" if known == ids and not coded else match[0]

    return _DROPPED.sub(lambda gap: "" if gap[2] is None else gap[1], _ANY_MARK.sub(keep, text)), unknown


_LIST = compile_lazily(
    r"^(?:#{1,6}[ \t]*+|\*\*)?(?:\d+[.)、][ \t]*+)?"
    r"(?:references?|sources?|bibliography|works cited|参考文献|参考资料|引用来源|来源)"
    r"[ \t]*+(?:\*\*)?[ \t]*+[:：]?[ \t]*+(?:\*\*)?[ \t]*+$",
    re.IGNORECASE | re.MULTILINE,
)
_ENTRY = compile_lazily(r"\s*(?:[-*+]\s+)?(?:\[|https?:|s\d+\b|\d+[.)、](?!.*\[\s*s\d))|.*https?://|\s*$")


def references_start(text: str) -> int:
    """Return where the list of references at the end of a text begins; without a list, the length of the text."""
    headings = list(_LIST.finditer(text))
    if not headings or not all(_ENTRY.match(line) for line in text[headings[-1].end() :].splitlines()):
        return len(text)
    return headings[-1].start()
