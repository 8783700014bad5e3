"""Reading a question over a table: what it does, with which column, over which rows, and whether a word is left over.

Every word of a question has to be understood: as the operation, a column, a condition, or a word that asks for nothing.
With one word left over there is no answer, since a figure over other rows than those meant looks just as computed.
"""

import re

from hira.policies.offline.table.cells import DAYS, MONTHS, UNITS, stem, stems
from hira.policies.offline.table.columns import choose
from hira.policies.offline.table.conditions import conditions
from hira.policies.offline.table.operations import OPERATIONS
from hira.policies.offline.table.question import Reading
from hira.policies.offline.table.rows import Rows

_POINT = rf"(\d{{4}}|{'|'.join(MONTHS + DAYS)})"
_DASH = re.compile(rf"(?<![\d-]){_POINT}\s*[-–—]\s*{_POINT}(?!-)", re.IGNORECASE)
_FRAME = frozenset(
    "what which who how many much number is are was were be been the a an of in for to on at or and with do does did"
    " has have had come came there give tell show find compute calculate please me us value figure column row rows"
    " table file data sheet spreadsheet csv tsv xlsx from according list listed recorded entry entries line all"
    " whole entire overall it s sold bought made produced caught"
    " picked taken visited arrived counted measured registered that who whom where when whose which it its they their"
    " this so work worked works take takes took last lasts hold holds reach reached run runs lie lies stand stands"
    " during".split()
)
_SHORT = 3
_ASKED = re.compile(r"\b(?:which|what) ([^\W\d_]+)", re.IGNORECASE)
_IN = re.compile(r"\b(?:in|how many) ([^\W\d_]+)", re.IGNORECASE)
_EVERY = re.compile(
    r"\b(?:over|across|in|during|through|for|of) (?:all )?(?:the|these|those|all) (?:\w+ )?"
    r"(?:years|months|days|weeks|seasons|period|time)\b"
    r"(?! (?:from|between|since|until|before|after|of|that|when|in)\b)",
    re.IGNORECASE,
)


def understanding(question: str, rows: Rows, about: str, asked: str) -> Reading | None:
    """The question as it is understood over these rows, None if not all of it is."""
    asking = Reading(_EVERY.sub(" ", _DASH.sub(r"\1 to \2", question)), rows, about)
    _operate(asking, asked)
    return asking if conditions(asking) and choose(asking, asked) and _understood(asking, asked) else None


def _operate(asking: Reading, asked: str) -> None:
    """Use the words of the operation, where they are not those of a column's whole name."""
    for name, form in OPERATIONS:
        for match in re.finditer(form, asking.question.lower()) if name in (asked, "number", "total") else ():
            asking.use(asking.span(match.start(), match.end()))


def _understood(asking: Reading, asked: str) -> bool:
    """Whether no word is left over. A figure "per" something is one a row already, or not to be had."""
    known = {*_FRAME, *stems(asking.about), *({"different"} if asked == "number" else ())}
    known |= {one for name in asking.columns if asking.orders[name] != "number" for one in stems(name)}
    known |= _units(asking)
    if asked in ("highest", "lowest", "earliest", "latest"):
        known |= {stem(match[1]) for match in _ASKED.finditer(asking.question)}
    for at, (token, one) in enumerate(zip(asking.tokens, asking.stems, strict=True)):
        if token.lower() in ("per", "each", "every", "by"):
            single = [name for name in asking.columns if asking.named(name, at + 1) and asking.unique(name)]
            if not single or asked not in ("average", "median", "highest", "lowest"):
                return False
        elif not (asking.used[at] or token.lower() in known or one in known or _like(one, known)):
            return False
    return True


def _like(word: str, known: set[str]) -> bool:
    """Whether a word is a form of a known one: "graded" of "grade", "starting" of "start"."""
    base = re.sub(r"(?:ing|ed|e|d)$", "", word)
    return len(base) > _SHORT and any(base == re.sub(r"(?:ing|ed|e|d)$", "", one) for one in known)


def _units(asking: Reading) -> set[str]:
    """The unit that is asked for, where the column is told in that unit or in none: "the length in metres"."""
    asked = {stem(match[1]) for match in _IN.finditer(asking.question)}
    return asked & UNITS if not set(stems(asking.column)) & UNITS - asked else set()
