"""Reading a question over a table: what it does, with which column, over which rows, and whether a word is left over.

Every word of a question has to be understood: as the operation, a column, a condition, or a word that asks for nothing.
With one word left over there is no answer, since a figure over other rows than those meant looks just as computed.
"""

import re

from hira.policies.offline.table.cells import DAYS, MONTHS, UNITS, stem, stems
from hira.policies.offline.table.columns import choose, measuring
from hira.policies.offline.table.conditions import conditions
from hira.policies.offline.table.naming import gone, named
from hira.policies.offline.table.operations import EXTREMES, OPERATIONS
from hira.policies.offline.table.question import Reading
from hira.policies.offline.table.sheet import Sheet

_POINT = rf"(\d{{4}}|{'|'.join(MONTHS + DAYS)})"
_DASH = re.compile(rf"(?<![\d-]){_POINT}\s*[-–—]\s*{_POINT}(?!-)", re.IGNORECASE)
_FRAME = frozenset(
    "what which who how many much number is are was were be been the a an of in for to on at or and with do does did"
    " come has have had came there give gives gave tell show find compute calculate me us value figure column row"
    " rows table file data sheet spreadsheet csv tsv xlsx from according list listed recorded entry entries line all"
    " whole entire overall it s sold bought made produced caught yield yields yielded brought given shown both either"
    " picked taken visited arrived counted measured registered that whom where when whose it its they their"
    " this so work worked works take takes took last lasts hold holds reach reached run runs lie lies stand stands"
    " during over across among placed get gets got any employ employs contain contains".split()
)
_SHORT = 3
_ENDING = re.compile(r"(?:ing|ed|er|e|d)$")
_ASKED = re.compile(r"\b(?:which|what) ([^\W\d_]+)(?:[ _-]([^\W\d_]+))?", re.IGNORECASE)
_IN = re.compile(r"\b(?:in|how many) ([^\W\d_]+)", re.IGNORECASE)
_EVERY = re.compile(
    r"\b(?:over|across|in|during|through|for|of) (?:all )?(?:the|these|those|all) (?:\w+ )?"
    r"(?:years|months|days|weeks|seasons|period|time)\b"
    r"(?! (?:from|between|since|until|before|after|of|that|when|in)\b)",
    re.IGNORECASE,
)


_POLITE = re.compile(
    r"^\W*(?:please|(?:can|could|would|will) you (?:please )?(?:tell me|say|compute|calculate|find|give me|show me)"
    r"|i (?:want|need|would like|'d like) to know|do you know|tell me)\b[,:]?",
    re.IGNORECASE,
)
_TIME = r"(?:year|month|week|day|hour|season|quarter|decade|summer|winter|spring|autumn|night|weekend)s?"
_POINTING = re.compile(
    rf"\b(?:this|last|next|past|current|previous|coming|recent|first|second|third|other|half)\s+(?:\w+\s+)?{_TIME}\b",
    re.IGNORECASE,
)
"""A time that only the one who asks knows: "last year"; or a part of one."""
_OF_SEVERAL = frozenset({"number", "total", "average", "median"})
_WHICH = re.compile(r"^\W*(?:in |on |at |of )?which\b", re.IGNORECASE)
_WHICH_NOUN = re.compile(
    r"\bwhich (?!(?:is|are|was|were|has|have|had|do|does|did|one|ones|of|the|row|entry)\b)[^\W\d_]", re.IGNORECASE
)
_RATE = frozenset(stems("year month week day hour minute person head night"))
_WHOLE = frozenset("together altogether combined all total".split())


def understanding(question: str, sheet: Sheet, asked: str) -> Reading | None:
    """The question as it is understood over this table, None if not all of it is."""
    if _POINTING.search(question) or (asked in _OF_SEVERAL and _WHICH.search(question)):
        return None
    asking = Reading(_EVERY.sub(" ", _DASH.sub(r"\1 to \2", _POLITE.sub(" ", question))), sheet)
    _operate(asking, asked)
    named(asking)
    if not (conditions(asking) and choose(asking, asked)):
        return None
    gone(asking)
    return asking if _understood(asking, asked) else None


def _operate(asking: Reading, asked: str) -> None:
    """Use the words of the operation, where they are not those of a column's whole name."""
    for name, form in OPERATIONS:
        for match in re.finditer(form, asking.question.lower()) if name in (asked, "number", "total") else ():
            asking.use(asking.span(match.start(), match.end()))


def _understood(asking: Reading, asked: str) -> bool:
    """Whether no word is left over. A figure "per" something is one a row already, or not to be had."""
    known = {*_FRAME, *asking.sheet.titled, *asking.sheet.nouns, *({"different"} if asked == "number" else ())}
    known |= {one for name in asking.columns if _led_to(asking, name) for one in stems(name)}
    known |= _units(asking) | measuring(asking.column) | measuring(asking.bounded)
    if asked in EXTREMES or asked == "value":
        wanted = wanted_noun(asking)
        if not wanted and _WHICH_NOUN.search(asking.question):
            return False
        known |= {wanted} - {""}
    words = [token.lower() for token in asking.tokens]
    for at, (word, one) in enumerate(zip(words, asking.stems, strict=True)):
        if asking.used[at]:
            continue
        if word in ("per", "each", "every", "by"):
            if not _of_rows(asking, at, asked):
                return False
        elif _rate(asking, at) or not (word in known or one in known or _like(one, known)):
            return False
    return True


def _rate(asking: Reading, at: int) -> bool:
    """Whether "a year", "an hour" stands at a place."""
    return asking.tokens[at].lower() in ("a", "an") and bool(_RATE & set(asking.stems[at + 1 : at + 2]))


def _led_to(asking: Reading, name: str) -> bool:
    """Whether the name of a column of words only leads to what it names: rows, or a cell that is asked for."""
    named = name in (asking.columns[0], asking.column)
    return asking.limited(name) or (named and asking.orders[name] != "number")


def _of_rows(asking: Reading, at: int, asked: str) -> bool:
    """Whether "every", "each" or "per" goes through the rows, and the figure is one over all of them."""
    single = [name for name in asking.columns if asking.named(name, at + 1) and asking.sheet.unique(name)]
    joint = asking.tokens[at].lower() in ("every", "each") and _WHOLE & {one.lower() for one in asking.tokens}
    return bool(single) and (asked in ("average", "median", "highest", "lowest") or bool(joint))


def wanted_noun(asking: Reading) -> str:
    """What is asked for by name, if the table has it: "which *branch*"; empty if it is not the name of anything."""
    nouns = [stem(one) for match in _ASKED.finditer(asking.question) for one in match.groups() if one]
    names = {one for name in asking.columns for one in stems(name)} | asking.sheet.nouns | {asking.sheet.head}
    return next((noun for noun in nouns if noun in names), "")


def _like(word: str, known: set[str]) -> bool:
    """Whether a word is a form of a known one: "graded" of "grade", "starting" of "start", "use" of "used"."""
    base = _ENDING.sub("", word)
    return any(
        base == _ENDING.sub("", one) and (len(base) > _SHORT or one.startswith(word) or word.startswith(one))
        for one in known
        if min(len(word), len(one)) >= _SHORT
    )


def _units(asking: Reading) -> set[str]:
    """The unit that is asked for, where the column is told in that unit or in none: "the length in metres"."""
    asked = {stem(match[1]) for match in _IN.finditer(asking.question)} - {"pct"}
    return asked & UNITS if not set(stems(asking.column)) & UNITS - asked else set()
