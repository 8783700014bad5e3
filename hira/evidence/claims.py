"""The claims of an answer: sentences that state something, each with the sources that it cites.

Questions, headings, code, lists of sources and sentences that only announce a list state nothing. A refusal ("the
documents do not say …") is no claim either. Every pass over a text takes linear time.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hira.core.bm25 import words
from hira.evidence.citations import CITED, Citation, find_cited
from hira.evidence.references import references_start
from hira.evidence.verdict import Verdict

FEW = 3
"""A list item with fewer content words is read together with the line that announces the list."""
_MARKS = re.compile(rf"(?:{CITED.pattern}\s*+)+")
_SENTENCE = re.compile(
    rf"(?:(?<![.!?…])[.!?…]++[\"”’»)*_]*+(?:\s*+{CITED.pattern})*+(?=\s|\Z)"
    rf"|(?<![。！？])[。！？]++[」』”]*+(?:\s*+{CITED.pattern})*+)"
)
_SHORT_FORM = re.compile(r"(?:\b[A-Z]|\b(?:e\.g|i\.e|al|Dr|Mr|Mrs|Ms|Prof|St|Figs?|No|vs|cf|ca|approx|Jr|Sr))\.$")
_BULLET = re.compile(r"\s*(?:(?:[-*+•‣>]|\d{1,3}[.)])\s+)*")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_BOLD_LINE = re.compile(r"\s*\*\*[^*\n]+\*\*:?\s*")
_ROW = re.compile(r"\s*\|")
_EMPHASIS = re.compile(r"\*\*|__|`")
_EDGE = ' -*•.,;:!…，；：。！\t\n"“”„«»'
_LINKING = frozenset("according to as in and or but per see from by of the also both with while source sources".split())

_YES_NO = frozenset("yes no ja nein oui non sí 是 是的 否 不是".split())
"""Claims of their own only where nothing follows them."""

_TEXTS = (
    r"(?:documents?|sources?|passages?|texts?|context|informations?|articles?|(?:search )?results?|files?|materials?"
    r"|pages?|data|records?|reports?|notes?|excerpts?|snippets?|evidence)"
)
_WHICH = r"(?:the|these|this|those|that|your|our|my|all|any|available|provided|given|supplied|retrieved|\s)+"
_FRAMING = re.compile(
    rf"(?:(?:according to|(?:based|drawing|going) (?:up)?on|as (?:stated|described|noted|reported|shown|said) (?:in|by)"
    rf"|(?:in|from) (?=(?:the|these) (?:provided|given|available|supplied|retrieved)))"
    rf"\s+(?:[\w'’-]+\s+){{0,5}}?{_TEXTS}\b(?:\s+[\w'’-]+){{0,6}}?\s*,\s*"
    rf"|{_WHICH}{_TEXTS}\s+(?:say|state|show|mention|indicate|report|note|tell us|confirm|reveal)s?\s+that\s+"
    r"|(?:laut|gemäß|nach)\s+(?:den|dem|der)\s+(?:\w+\s+)?(?:Dokument\w*|Quelle\w*|Text\w*|Unterlagen)\s+"
    r"|(?:selon|d['’]après)\s+les?\s+(?:\w+\s+)?(?:documents?|sources?|textes?)(?:\s+\w+)?\s*,\s*"
    r"|según\s+l[oa]s?\s+(?:documentos?|fuentes?|textos?)(?:\s+\w+)?\s*,\s*"
    r"|根据[^，。]{0,12}(?:文档|文件|资料|信息|材料|来源)[^，。]{0,6}[，,]\s*)",
    re.IGNORECASE,
)
# The answer says that it has none. The first pattern speaks of the texts and counts even where the sentence cites one.
_SILENT_TEXTS = re.compile(
    rf"\b{_TEXTS}(?:\s+[\w'’-]+){{0,6}}?\s+(?:(?:do|does|did|could|can) ?not|(?:do|does|did|ca)n['’]t)"
    r"\s+(?:\w+ly\s+)?(?:say|mention|state|contain|provide|specify|hold|include|give|tell|answer|indicate|reveal|name"
    r"|list|cover|address|discuss|describe|show|have|identify|explain|report|disclose|offer|support)\b"
    rf"|\bnone of the (?:\w+\s+)?{_TEXTS}\b"
    r"|\b(?:Dokument|Quelle|Text|Unterlage|Angabe)\w*\b[^.]{0,60}\b(?:nicht|keine?n?)\b"
    r"|\b(?:documents?|sources?|textes?)\b[^.]{0,40}\bne\s+\w+\s+pas\b"
    r"|\b(?:documentos?|fuentes?|textos?)\b[^.]{0,20}\bno\s+(?:mencion|indic|dice|contien|especific|proporcion)\w*"
    r"|(?:文档|文件|资料|来源|文本|材料|文章|上下文|结果|报告)[^。]{0,12}(?:没有|并未|未|不)(?:直接|明确)?(?:提|说|提供|包含|给出|涉及|记载)",
    re.IGNORECASE,
)
_NO_ANSWER = re.compile(
    r"^\W*(?:unknown|not (?:known|specified|mentioned|stated|found|available)|n/a)\W*$"
    r"|\bnothing (?:that was (?:read|found|given)|to (?:find|look up|report))\b"
    r"|\bnothing\b(?:\s+[\w'’-]+){0,3}?\s+(?:was|were|is|can be|could be) (?:found|known|said|mentioned)\b"
    r"|\b(?:no|not enough|insufficient|not any)\s+(?:[\w'’-]+\s+){0,3}?"
    r"(?:information|evidence|mention|answer|data|details?|documents?|sources?|results?)"
    r"(?=\W*$|\s+(?:was|were|is|are|on|about|that|to|in|regarding|for|of|available|could|which|whether)\b)"
    r"|\b(?:could|can) ?(?:not|n['’]t|['’]t)(?: be)?\s+"
    r"(?:find|found|determined?|answer|answered|known|computed|told|established|say|tell)\b"
    r"|\b(?:is|are|was|were)(?: not|n['’]t) (?:mentioned|stated|specified)\b"
    r"|\b(?:I|we) (?:do not|don['’]t) (?:know|have)\b|\bI['’]?(?: a)?m (?:sorry|unable|not able|not sure)\b"
    r"|\b(?:unable|impossible) to (?:find|answer|determine|say|tell|provide)\b"
    r"|\b(?:keine|nicht genügend|zu wenig) (?:\w+\s+)?(?:Information|Angabe|Hinweis|Daten|Antwort)\w*"
    r"|\b(?:lässt|lassen) sich nicht\b|\bgeht\b[^.]{0,80}\bnicht hervor\b|\bweiß (?:ich|es) nicht\b"
    r"|\baucune (?:information|mention|réponse|donnée)|\bje ne (?:sais|trouve|peux) pas\b"
    r"|\bno (?:hay|se (?:menciona|encontr\w+|indica|especifica))\b|\bno lo sé\b"
    r"|无法(?:确定|回答|找到|得知|判断|提供)|(?:没有|未能?)(?:找到|足够|相关|提供)[^。]{0,12}(?:信息|资料|答案|内容|记录|结果)|找不到|均?与(?:主题|问题)无关",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of an answer. `sources` are the ids that the answer cites for it; `end` is where it ends there."""

    text: str
    sources: tuple[str, ...]
    end: int


def claims(text: str) -> list[Claim]:
    """The claims of an answer in order.

    A sentence with several marks is cut behind each: a claim is what stands before its mark, back to the one before.
    What follows the last mark belongs to the last claim, and a mark without words of its own ("According to [s1], …")
    belongs to what follows.
    """
    found: list[Claim] = []
    announced = ""
    waiting: list[str] = []
    for start, end in _spans(text):
        sentence = text[start:end]
        bare = CITED.sub("", sentence).rstrip("*_ \n")
        if bare.endswith((":", "：")):
            announced, waiting = _clean(bare), find_cited(sentence)
        elif not bare.endswith(("?", "？")) and not _refuses(sentence):
            listed = bool(_BULLET.match(sentence.strip())[0])  # type: ignore[index]  # it matches anything
            lead = announced if listed else ""
            if not listed:
                announced, waiting = "", []
            found += _cut(sentence, start, lead, waiting if listed else ())
    return [one for one in found if one.text.lower() not in _YES_NO] or found[:1]


def is_refusal(text: str) -> bool:
    """Whether an answer says first, or only, that it has none to give."""
    for start, end in _spans(text):
        sentence = text[start:end].rstrip("*_ \n")
        if _refuses(sentence):
            return True
        if not sentence.endswith((":", "：", "?", "？")) and words(_clean(sentence)):
            return False
    return False


def flag_claims(text: str, citations: Sequence[Citation], *, names: Mapping[Verdict, str] | None = None) -> str:
    """The answer with the verdict behind every claim that was checked and not found supported.

    `names` translates verdicts.
    """
    verdicts = {one.claim: one.verdict for one in citations if one.by}
    parts: list[str] = []
    at = 0
    for claim in claims(text):
        verdict = verdicts.get(claim.text, "supported")
        if verdict != "supported":
            parts += [text[at : claim.end], f" ({(names or {}).get(verdict, verdict)})"]
            at = claim.end
    return "".join([*parts, text[at:]])


def _refuses(sentence: str) -> bool:
    return bool(_SILENT_TEXTS.search(sentence) or (not CITED.search(sentence) and _NO_ANSWER.search(sentence)))


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the sentences of a text begin and end; headings, code, plain rows of tables and references are left out."""
    last = references_start(text)
    for start, end in _blocks(text[:last]):
        begin = start
        for match in _SENTENCE.finditer(text, start, end):
            if match[0][0] == "." and _SHORT_FORM.search(text[max(start, match.start() - 8) : match.start() + 1]):
                continue
            if begin == start and re.fullmatch(r"\s*\d{1,3}\.", text[start : match.end()]):
                continue  # the number of a list item
            yield begin, match.end()
            begin = match.end()
        if text[begin:end].strip():
            yield begin, end


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Lines of prose; a line that goes on in small letters is joined to the one before it."""
    lines = text.splitlines(keepends=True)
    last = max((number for number, line in enumerate(lines) if line.strip()), default=-1)
    fenced = False
    open_at = -1
    at = 0
    for number, line in enumerate(lines):
        start, at = at, at + len(line)
        stripped = line.strip()
        fence = stripped.startswith(("```", "~~~"))
        heading = _HEADING.match(line) or (number < last and _BOLD_LINE.fullmatch(line))
        skipped = fence or fenced or not stripped or heading or (_ROW.match(line) and not CITED.search(line))
        fenced = fenced != fence
        if open_at >= 0 and (skipped or not stripped[0].islower()):
            yield open_at, start
            open_at = -1
        if open_at < 0 and not skipped:
            open_at = start
    if open_at >= 0:
        yield open_at, len(text)


def _cut(sentence: str, offset: int, lead: str, waiting: Sequence[str]) -> list[Claim]:
    """The claims of one sentence, which begins at `offset`. `lead` announces it, `waiting` are ids cited there."""
    found: list[Claim] = []
    ids: list[str] = []
    at = 0
    for match in _MARKS.finditer(sentence):
        piece, at = sentence[at : match.start()], match.end()
        ids += [one for one in find_cited(match[0]) if one not in ids]
        if _says(piece):
            found.append(Claim(piece, tuple(ids), offset + len(sentence[: match.end()].rstrip())))
            ids = []
    rest = sentence[at:]
    if not found or ids:
        if _says(rest):
            found.append(Claim(rest, tuple(ids) or tuple(waiting), offset + _stop(sentence)))
        elif found:
            last = found[-1]
            found[-1] = Claim(last.text, (*last.sources, *ids), last.end)
    elif _says(rest):
        last = found[-1]
        found[-1] = Claim(f"{last.text} {rest}", last.sources, last.end)
    cleaned = [Claim(_framed(one.text, lead), one.sources, one.end) for one in found]
    return [one for one in cleaned if one.text]


def _stop(sentence: str) -> int:
    """Where a sentence ends, before its full stop."""
    whole = sentence.rstrip()
    closed = whole.rstrip('"”’»*_')
    stopped = closed.rstrip(".!?…。！？")
    return len(stopped) if stopped != closed else len(whole)


def _framed(piece: str, lead: str) -> str:
    """A piece as a claim: without framing, and with what announces it where it has few words of its own."""
    plain = _clean(piece)
    for _ in range(2):
        plain = _clean(plain[match.end() :]) if (match := _FRAMING.match(plain)) else plain
    return f"{lead}: {plain}" if lead and plain and len(words(plain)) < FEW else plain


def _clean(piece: str) -> str:
    """Without marks, bullets, emphasis and what punctuation stands around."""
    plain = _EMPHASIS.sub("", CITED.sub("", piece))
    return " ".join(plain[_BULLET.match(plain).end() :].strip(_EDGE).split())  # type: ignore[union-attr]


def _says(piece: str) -> bool:
    return any(word.lower() not in _LINKING for word in re.findall(r"\w+", piece))
