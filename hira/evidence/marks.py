"""Marks such as `[s1]` in a text: finding them, dropping them, and what each of them is put behind."""

import re
from bisect import bisect_left

from hira.evidence.source import Sources
from hira.messages import Filled
from hira.relevance import words
from hira.untrusted import clean

CITED = re.compile(r"\[\s*(s\d+(?:\s*[,;]\s*s\d+)*)\s*\]")
HEADING = re.compile(r"#{1,6}\s")
SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")
_MARK = re.compile(r"\[(\s*/?\s*s\d+(?:\s*[,;]\s*s\d+)*\s*)\]")
_MARK_OR_PARAGRAPH = re.compile(rf"(\s?){_MARK.pattern}|\n\n")
_MARKS = re.compile(rf"(?:{CITED.pattern}\s*)+")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)
_NAME = re.compile(r"(?<![\w'’\\])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[[\w'\"]*\])*$")
_CODED = re.compile(r"^\s*(?:>>>|\.\.\. |return |for .+:\s*$|if .+:\s*$)|\w\(|\w\]?\s*[-+*/|&]?=\s?\S|;\s*$")
_ID = re.compile(r"s\d+")
_EDGE = " -*•.,;:，；。\t"
_ABBREVIATED = re.compile(r"(?:\b[A-Z]|\b(?:e\.g|i\.e|al|Dr|Mr|Mrs|Ms|Prof|St|Figs?|No|vs|cf|ca|approx|Jr|Sr))\.$")
_LEADING = frozenset("according to as in and or but per see from by of the also both with while source sources".split())
_NEAR = 120
COUNTED = 3
"""Content words from which on a sentence without a mark counts as a statement that cites nothing."""


def cited(text: str) -> list[str]:
    """The ids that a text cites, in order, each once: `[s1]`, `[s1, s2]`."""
    return list(dict.fromkeys(one for match in CITED.finditer(text) for one in _ID.findall(match[1])))


def unmarked(text: str) -> str:
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

    def kept(match: re.Match[str]) -> str:
        at = match.start()
        after = text[match.end() : match.end() + 1]
        if "/" in match[0] or after.isalnum() or not _NAME.search(text[max(0, at - 40) : at]):
            return match.expand(instead)
        span = bisect_left(begins, at) - 1
        in_code = (span >= 0 and at < spans[span][1]) or _CODED.search(_line(text, at))
        return match[0] if in_code else match.expand(instead)

    return _MARK.sub(kept, text)


def _line(text: str, at: int) -> str:
    """The line that this place is in; of a very long one, what is near."""
    begin = text.rfind("\n", max(0, at - _NEAR), at) + 1
    end = text.find("\n", at, at + _NEAR)
    cut = "" if begin or at <= _NEAR else "…"
    return cut + text[begin or max(0, at - _NEAR) : end if end >= 0 else at + _NEAR]


def inert(text: str) -> Filled:
    """What was read, as a prompt may hold it: with no token, no mark like ours, and none that dropping one leaves."""
    cleaned = clean(text)
    bare = unmarked(cleaned)
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
    unknown = [one for one in cited(text) if one not in sources]

    def kept(match: re.Match[str]) -> str:
        ids = [one for one in _ID.findall(match[1]) if one in sources]
        return f"[{', '.join(ids)}]" if ids else ""

    return (re.sub(r"\s+([.,;:])", r"\1", CITED.sub(kept, text)) if unknown else text), unknown


def sentences(text: str) -> list[str]:
    """The sentences of a text; an abbreviation ends none, and a mark after the full stop belongs to the one before."""
    joined = re.sub(rf"([.!?。！？])\s*({_MARKS.pattern})", lambda match: f" {match[2].strip()}{match[1]}\n", text)
    found: list[str] = []
    for part in filter(None, (part.strip() for part in SENTENCE.split(joined) if part)):
        if found and ends_in_abbreviation(found[-1]):
            found[-1] = f"{found[-1]} {part}"
        else:
            found.append(part)
    return found


def ends_in_abbreviation(text: str) -> bool:
    """Whether the full stop at the end belongs to a short form such as "Dr." or an initial, and ends no sentence."""
    return bool(_ABBREVIATED.search(text[-8:]))


def claims(text: str) -> list[tuple[str, list[str]]]:
    """The statements of a text with the ids that each cites together.

    A sentence with several marks is cut behind each: a statement is what stands before its mark, back to the one
    before. What follows the last mark belongs to the last statement, and marks without words of their own
    ("According to [s1], …") belong to what follows.
    """
    return [found for sentence in sentences(text) if CITED.search(sentence) for found in _cut(sentence)]


def _cut(sentence: str) -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    waiting: list[str] = []
    at = 0
    for match in _MARKS.finditer(sentence):
        piece, at = sentence[at : match.start()].strip(_EDGE), match.end()
        waiting += [one for one in cited(match[0]) if one not in waiting]
        if _says(piece):
            found.append((piece, waiting))
            waiting = []
    rest = sentence[at:].strip(_EDGE)
    if waiting:
        found.append((rest, waiting)) if _says(rest) or not found else found[-1][1].extend(waiting)
    elif _says(rest):
        piece, ids = found.pop()
        found.append((CITED.sub("", f"{piece} {sentence[at:].strip()}").strip(_EDGE), ids))
    return [(piece, ids) for piece, ids in found if piece]


def _says(piece: str) -> bool:
    return any(word.lower() not in _LEADING for word in re.findall(r"\w+", piece))


def uncited(text: str) -> list[str]:
    """The sentences of a text that say something and cite nothing; a heading in Markdown says nothing by itself."""
    said = [one for one in sentences(text) if not CITED.search(one) and not HEADING.match(one)]
    return [one for one in said if len(words(one)) >= COUNTED]
