"""The claims of an answer: sentences that state something, each with the sources that it cites.

Questions, headings, code, lists of sources and sentences that only announce a list state nothing. A refusal ("the
documents do not say …") is not a claim either. Every pass over a text takes linear time.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from hira.core.bm25 import words
from hira.core.patterns import compile_lazily
from hira.evidence.citations import CITED, Citation, find_cited, references_start
from hira.evidence.passages import BULLET, FENCE, find_sentences

FEW = 3
"""A list item with fewer content words is read together with the line that announces the list."""
_MARKS = compile_lazily(rf"(?:{CITED.pattern}\s*+)+")
_SPACED_MARK = compile_lazily(rf"(?<!\s)\s*+{CITED.pattern}")
_NO_PROSE = compile_lazily(
    rf"{FENCE.pattern}|^[ \t]*(?:#{{1,6}}\s.*|\*\*[^*\n]+\*\*:?[ \t]*$(?=\s*\S)|\|(?!.*{CITED.pattern}).*)",
    re.MULTILINE,
)
_EMPHASIS = compile_lazily(r"(?<!\w)\*\*|\*\*(?!\w)|__|`|\\boxed\{")
_EDGE = ' }-*•.,;:!…，；：。！\t\n"“”„«»'
_LINKING = frozenset(
    "according to as in and or but per see from by of the also both with while source sources based on laut".split()
)
_COURTESY = compile_lazily(
    r"(?:please )?(?:let me know|feel free|do(?: not|n['’]t) hesitate|(?:i )?hope (?:this|that|it) helps)\b",
    re.IGNORECASE,
)
"""The beginning of a sentence to the reader, which states nothing."""
_POLARITY = compile_lazily(
    r"(?:(yes|ja|oui|sí|correct|是的?)|no|nein|non|否|不是)(?=\s*(?:[,!.:;，。]|\Z))[\s.,!:;，。]*", re.IGNORECASE
)

_TEXTS = (
    r"(?:documents?|sources?|passages?|texts?|context|informations?|articles?|results?|files?|materials?|pages?|data"
    r"|records?|reports?|notes?|excerpts?|snippets?|evidence|Dokument\w*|Quellen?|Unterlagen|textes?|documentos?|fuentes?"
    r"|textos?|文档|文件|资料|来源|文本|材料|文章|上下文|结果|报告|信息)"
)
_NAMED = (
    rf"(?:{_TEXTS}|sheets?|tables?|spreadsheets?|workbooks?|slides?|books?|manuals?|handbooks?|lists?|plans?|contracts?"
    r"|agreements?|guides?|timetables?|schedules?|minutes|newsletters?|polic(?:y|ies)|brochures?|catalogues?|websites?)"
)
_SAY = (
    r"(?:say|mention|state|contain|provide|specif|hold|include|give|tell|answer|indicat|reveal|name|list|cover|address"
    r"|discuss|describe|show|have|identif|explain|report|confirm|disclose|note|offer|support)"
)
_WHICH = r"(?:the|these|this|those|that|your|our|my|all|any|available|provided|given|supplied|retrieved|\s)+"
_FRAMING = compile_lazily(
    rf"(?:(?:according to|(?:based|drawing) (?:up)?on|as (?:\w+ed|shown|said) (?:in|by)|selon|d['’]après|según|根据"
    rf"|(?:in|from) (?=(?:the|these) (?:provided|given|available|supplied|retrieved)))"
    rf"\s*(?:[\w'’.-]+\s+){{0,5}}?\w{{0,6}}{_NAMED}(?:\s+[\w'’.-]+){{0,6}}?\s*[,，]\s*"
    rf"|{_WHICH}{_TEXTS}\s+{_SAY}\w*\s+that\s+|(?:laut|gemäß|nach)\s+(?:\w+\s+){{1,2}}{_TEXTS}\s+"
    r"|(?:(?:the|final|short)\s+)?(?:answer|antwort|réponse|respuesta)(?:\s+is)?\s*[:：]\s*"
    r"|(?:but|aber|doch|mais|pero)\s+|但是?)",
    re.IGNORECASE,
)
_INTRODUCING = compile_lazily(
    r"\W*(?:in|on|at|from|by|as|per|under|for|during|since|after|before|according|based|laut|nach|gemäß|im|am|bei|seit"
    r"|selon|dans|en|depuis|según|desde)\s+(?:\S+\s*+){1,6}\Z",
    re.IGNORECASE,
)
"""A phrase before a comma and the statement: "In the report", "According to the handbook"."""
INTRODUCTION = 4
"""The most words of such a phrase, unless it names the source: a longer one may be a statement."""
_AFTER = compile_lazily(r"[,，](?!\s*(?:and|or|but|und|oder|aber|et|mais|y|pero)\b)")
_NAMING = compile_lazily(rf"(?:{_NAMED}|\w\.[a-z]{{2,4}})\W*\Z", re.IGNORECASE)
"""The end of such a phrase that only names the source."""
# The answer says that it has none. The first pattern is about the texts and counts even if the sentence cites one.
_SILENT_TEXTS = compile_lazily(
    rf"\b{_TEXTS}(?:\s+[\w'’-]+){{0,6}}?\s+(?:(?:do|does|did|could|can) ?not|(?:do|does|did|ca)n['’]t)\s+"
    rf"(?:\w+ly\s+)?{_SAY}"
    rf"|\bnone of the (?:\w+\s+)?{_TEXTS}|\b(?:Dokument|Quelle|Text|Unterlage)\w*\b[^.]{{0,60}}\b(?:nicht|keine?n?)\b"
    rf"|\b{_TEXTS}[^.]{{0,40}}\b(?:ne\s+\w+\s+pas\b|no\s+(?:mencion|indican?\b|dicen?\b|contien|especific|proporcion))"
    rf"|{_TEXTS}[^。]{{0,12}}(?:没有|并未|未|不)(?:直接|明确)?(?:提|说|包含|给出|涉及|记载)",
    re.IGNORECASE,
)
_NO_ANSWER = compile_lazily(
    r"^\W*(?:\[\d+\] )?nothing found for\b"
    r"|^\W*(?:unknown|not (?:known|specified|mentioned|stated|found|available)|n/a)\W*$"
    r"|\bnothing\b(?:\s+[\w'’-]+){0,3}? (?:was|were|is|can be|could be|to) "
    r"(?:found|known|read|given|said|mentioned|find|look up|report)\b"
    r"|\b(?:no|not enough|insufficient|not any)\s+(?:[\w'’-]+\s+){0,3}?"
    r"(?:information|evidence|mention|answer|data|details?|documents?|sources?|results?)"
    r"(?=\W*$|\s+(?:was|were|is|are|on|about|that|to|in|regarding|for|of|available|could|which|whether)\b)"
    r"|\b(?:(?:could|can) ?(?:not|n['’]t|['’]t)(?: be)?|unable to|impossible to)\s+"
    r"(?:find|found|determined?|answer(?:ed)?|known|computed|told|established|say|tell|provide)\b"
    r"|\b(?:is|are|was|were)(?: not|n['’]t) (?:mentioned|stated|specified)\b"
    r"|\b(?:I|we) (?:do not|don['’]t) (?:know|have)\b|\bI['’]?(?: a)?m (?:sorry|unable|not able|not sure)\b"
    r"|\b(?:keine|nicht genügend|zu wenig|aucune) (?:\w+ )?(?:Information|Angabe|Hinweis|Daten|Antwort|réponse|donnée)"
    r"|\b(?:lässt|lassen) sich nicht\b|\bgeht\b[^.]{0,80}\bnicht hervor\b|\bweiß (?:ich|es) nicht\b"
    r"|\bje ne (?:sais|trouve|peux) pas\b|\bno (?:hay|lo sé|se (?:menciona|encontr\w+|indica|especifica))\b"
    r"|无法(?:确定|回答|找到|得知|判断|提供)|找不到|与(?:主题|问题)无关"
    r"|(?:没有|未能?)(?:找到|足够|相关|提供)[^。]{0,12}(?:信息|资料|答案|内容|记录|结果)",
    re.IGNORECASE,
)
_TURN = r"(?:(?:but|however|though|although|yet|while|aber|doch|obwohl|mais|bien que|pero|aunque)\b|但是?|不过|虽然)"
_CLAUSE = compile_lazily(rf"\A\W*{_TURN}(?!\s*[,，])[^,，]*[,，]\s*|[,;，；]\s*(?={_TURN})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of an answer. `sources` are the ids that the answer cites for it; `end` is its end in the answer."""

    text: str
    sources: tuple[str, ...]
    end: int


def claims(text: str) -> list[Claim]:
    """Return the claims of an answer in order.

    A sentence with several marks is cut after each: a claim is the text before its mark, back to the previous one. Text
    after the last mark belongs to the last claim, and a mark without a statement ("According to [s1], …") belongs to
    the text that follows.
    """
    statements: list[Claim] = []
    announced = ""
    waiting: list[str] = []
    for start, end in _spans(text[: references_start(text)]):
        sentence = text[start:end]
        bare = CITED.sub("", sentence).rstrip("*_ \n")
        if bare.endswith((":", "：")):
            announced, waiting = _clean(bare), find_cited(sentence)
        elif not bare.endswith(("?", "？")) and not _has_refusal(sentence):
            listed = bool(BULLET.match(sentence.strip())[0])  # type: ignore[index]  # it matches anything
            lead = announced if listed else ""
            if not listed:
                announced, waiting = "", []
            statements += _cut(sentence, start, lead, waiting if listed else ())
    stating = [one for one in statements if not _COURTESY.match(one.text)]
    if len(stating) > 1 and not read_polarity(stating[0].text)[1]:  # "Yes." belongs to what follows it
        yes, first, *rest = stating
        stating = [Claim(f"{yes.text}, {first.text}", yes.sources or first.sources, first.end), *rest]
    return stating or statements[:1]


def read_polarity(claim: str) -> tuple[bool | None, str]:
    """Return whether a claim begins with yes (True) or no (False), None without either, and what follows."""
    match = _POLARITY.match(claim)
    return (bool(match[1]), claim[match.end() :]) if match else (None, claim)


def is_refusal(text: str) -> bool:
    """Return whether an answer first, or only, says that it has no answer."""
    for start, end in _spans(text[: references_start(text)]):
        sentence = text[start:end].rstrip("*_ \n")
        if _has_refusal(sentence):
            return True
        if not sentence.endswith((":", "：", "?", "？")) and words(_clean(sentence)):
            return False
    return False


def flag_claims(text: str, citations: Sequence[Citation], *, chinese: bool = False) -> str:
    """Return the answer with the verdict and the missing words after every checked claim that does not hold."""
    checked = {citation.claim: citation for citation in citations if citation.by}
    parts: list[str] = []
    begin = 0
    for claim in claims(text):
        citation = checked.get(claim.text)
        if citation and not citation.verdict.holds:
            parts += [text[begin : claim.end], f" ({citation.flag(chinese=chinese)})"]
            begin = claim.end
    return "".join([*parts, text[begin:]])


@lru_cache(maxsize=64)
def _has_refusal(sentence: str) -> bool:
    return bool(_SILENT_TEXTS.search(sentence) or (not CITED.search(sentence) and _NO_ANSWER.search(sentence)))


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence begins and ends; headings, code and plain rows of tables are left out.

    A sentence that refuses in one clause and states something in another is cut between them.
    """
    prose = _NO_PROSE.sub(lambda match: "\n" * len(match[0]), text)
    for start, end in find_sentences(prose):
        turns = _CLAUSE.finditer(text[start:end]) if _has_refusal(text[start:end]) else ()
        ends = [*(start + match.end() for match in turns), end]
        yield from pairwise([start, *ends])


def _cut(sentence: str, offset: int, lead: str, waiting: Sequence[str]) -> list[Claim]:
    """Return the claims of one sentence, which begins at `offset`. `lead` announces it, and cites the ids `waiting`. A
    mark after the words that introduce a sentence ("In May [s1], …") does not cut it."""
    spans: list[tuple[int, int, list[str]]] = []
    ids: list[str] = []
    begin = 0
    for match in _MARKS.finditer(sentence):
        piece, after = sentence[begin : match.start()], sentence[match.end() :]
        ids += [source for source in find_cited(match[0]) if source not in ids]
        named = _NAMING.search(piece)
        introduces = not spans and (named or len(piece.split()) <= INTRODUCTION) and _INTRODUCING.match(piece)
        introduces = introduces and _AFTER.match(after)
        if not _is_statement(piece) or (introduces and named):
            begin = match.end()
        elif not introduces:
            spans.append((begin, len(sentence[: match.end()].rstrip()), ids))
            begin, ids = match.end(), []
    states = _is_statement(sentence[begin:])
    if states and (ids or not spans):
        spans.append((begin, _stop(sentence), ids or list(waiting)))
    elif spans:
        start, end, cited = spans[-1]
        spans[-1] = start, _stop(sentence) if states else end, [*cited, *ids]
    made: list[Claim] = []
    for start, end, cited in spans:
        plain = _clean(sentence[start:end])
        for _ in range(2):
            plain = _clean(plain[framing.end() :]) if (framing := _FRAMING.match(plain)) else plain
        announced = f"{lead}: {plain}" if lead and len(words(plain)) < FEW else plain
        made += [Claim(announced, tuple(cited), offset + end)] if plain else []
    return made


def _stop(sentence: str) -> int:
    """Return where a sentence ends, before its full stop."""
    whole = sentence.rstrip()
    closed = whole.rstrip('"”’»*_')
    stopped = closed.rstrip(".!?…。！？")
    return len(stopped) if stopped != closed else len(whole)


def _clean(piece: str) -> str:
    """Remove marks, bullets, emphasis and surrounding punctuation."""
    plain = _EMPHASIS.sub("", _SPACED_MARK.sub("", piece))
    return " ".join(plain[BULLET.match(plain).end() :].strip(_EDGE).split())  # type: ignore[union-attr]


def _is_statement(piece: str) -> bool:
    return any(word.lower() not in _LINKING for word in re.findall(r"(?<!\[)\b\w+", piece))
