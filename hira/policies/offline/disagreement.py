"""Whether two sentences of different sources give different values for the same thing that a question asks about.

They do not if they speak of other things or other times, of plans, of what may happen more than once, or if they say
the same otherwise: rounded, in another unit, with more beside it. In doubt they do not.
"""

import re
from dataclasses import dataclass

from hira.policies.offline.kinds import PAID, fits, kind, measured
from hira.policies.offline.quantities import Quantity, quantities
from hira.policies.offline.sentences import ROW
from hira.policies.offline.wording import NAME, NAMED, folded, holds, keywords, names, numbers, words

FEW = 3
"""Words beyond those of the question, in which two sentences without a value of a kind may differ."""

_YEAR = re.compile(r"\b(?:1\d{3}|20\d\d)\b")
_TIMED = re.compile(
    r"\b(?:in|by|until|till|since|during|for|of|before|after|from|the)\s+(?:the\s+)?(?:(?:year|summer|winter|spring"
    r"|autumn|census|end|season|January|February|March|April|May|June|July|August|September|October|November"
    r"|December)\s+(?:of\s+)?)?((?:1\d{3}|20\d\d))\b",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:plan(?:s|ned)?|propos(?:al|ed)|intend(?:s|ed)|expect(?:s|ed)|schedul\w+|should|would|might|(?-i:may)|was to"
    r"|were to|will|original(?:ly)?|initial(?:ly)?|at first|former(?:ly)?|no longer|used to|later|replac\w+"
    r"|rebuil\w+|instead|not|never|once|second|new)\b",
    re.IGNORECASE,
)
_REPEATED = frozenset(
    words(
        "inspected renovated restored repaired rebuilt extended enlarged widened visited flooded held won met measured"
        " counted damaged burned closed played taught worked lived studied travelled moved painted played performed"
        " published wrote write recorded changed raised"
    )
)
"""What may happen to a thing, or be done by somebody, more than once, without an object that says which time."""
_ONCE = frozenset(words("built designed founded established invented discovered composed carved cast written wrote"))
_CHANGING = frozenset(
    words(
        "inhabitants population people residents members visitors staff employees employs pupils students cost costs"
        " price fare ticket salary passengers guests households books volumes"
    )
)
"""What has another value at another time."""
_MOVED = re.compile(
    r"(?P<change>\b(?:up|down|goes|went|rises|rose|raised|falls|fell|increas\w+|reduc\w+|lower\w*|chang\w+)\b[^.;]*?)"
    r"\bfrom [^.;]*? to\b"
)
"""Says that a value is past."""
_DAYS = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekends?|weekdays?|summer|winter|spring|autumn|january|february"
    r"|march|april|june|july|august|september|october|november|december|holidays?)\b",
    re.IGNORECASE,
)
_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DAY = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})\b|\b({_MONTH}) (\d{{1,2}})\b")
_CLOCK = re.compile(r"\b(\d{1,2})(?:[:.](\d\d))?\s?(am|pm|a\.m\.|p\.m\.|o[’']?clock|h\b)?", re.IGNORECASE)
_LABEL = re.compile(rf"((?:{NAME})(?: (?:{NAME}|[a-z]+))*): (?!.*{re.escape(ROW)})")
_OF = re.compile(rf"\b(?:of|in|at|from|near)\s+(?:the\s+)?((?:{NAME})(?: (?:{NAME}))*)")


@dataclass(frozen=True, slots=True)
class Stated:
    """A sentence, the stems it holds, and those of what it goes on from: its paragraph so far, heading and title."""

    text: str
    own: frozenset[str]
    about: frozenset[str]


def differ(question: str, mine: Stated, theirs: Stated) -> bool:
    """Whether these sentences, each of which answers the question, cannot both be the answer."""
    one, other, wanted = folded(mine.text), folded(theirs.text), kind(question)
    if any(map(_UNSURE.search, (one, other))) or not _alike(question, mine, theirs):
        return False
    apart = _elsewhere(question, one, other) or _elsewhere(question, other, one)
    if apart or _at_other_times(question, one, other):
        return False
    if wanted in ("date", "person"):
        values = _years if wanted == "date" else _persons
        return not _repeats(question) and values(question, one, other)
    if wanted == "hours":
        return _hours(one, other)
    if all(_asked_for(question, text) for text in (one, other)):
        return _figures(question, one, other)
    return _short(question, one, other)


def _alike(question: str, one: Stated, other: Stated) -> bool:
    """Whether both say of the same thing what is asked: all that is asked about it stands in both or in what they go on
    from, and most of it in both."""
    paid = PAID if kind(question) == "money" else frozenset[str]()
    rest = [word for word in keywords(question) if word not in names(question) | paid]
    about = all(holds(word, stated.own | stated.about) for word in rest for stated in (one, other))
    both = [word for word in rest if holds(word, one.own) and holds(word, other.own)]
    return about and 2 * len(both) >= len(rest)


def _elsewhere(question: str, one: str, other: str) -> bool:
    """Whether a sentence that leaves out a name of the question speaks of another one, which its fellow lacks; a line
    that begins with a label is of what that says."""
    known = set(words(f"{question} {other}"))
    if (label := _LABEL.match(one)) and set(words(label[1])) - known:
        return True
    if kind(question) == "place" or names(question) <= set(words(one)):
        return False
    return any(not set(words(match[1])) & known for match in _OF.finditer(one))


def _at_other_times(question: str, one: str, other: str) -> bool:
    """Whether the sentences are of different years, or only one is of a year where values change with time."""
    if kind(question) == "date":
        return False
    mine, theirs = ({match[1] for match in _TIMED.finditer(text)} for text in (one, other))
    if mine & theirs or not (mine or theirs):
        return False
    changes = bool(set(keywords(question)) & _CHANGING)
    return bool(mine and theirs) or changes


def _repeats(question: str) -> bool:
    """Whether what is asked about may have happened more than once, or been done by several."""
    asked = set(keywords(question))
    return bool(asked & _REPEATED) and not asked & _ONCE


def _years(question: str, one: str, other: str) -> bool:
    known = numbers(question)
    mine, theirs = (set(_YEAR.findall(text)) - known for text in (one, other))
    if mine and theirs:
        return not mine & theirs
    mine, theirs = (
        {" ".join(sorted(filter(None, day.groups()))) for day in _DAY.finditer(text)} for text in (one, other)
    )
    return bool(mine and theirs) and not mine & theirs


def _persons(question: str, one: str, other: str) -> bool:
    """Whether each names somebody and none of the names is the other's, or a part of it."""
    mine, theirs = (_named(question, text) for text in (one, other))
    return bool(mine and theirs) and not mine & theirs


def _named(question: str, text: str) -> set[str]:
    """The stems of the names in a text that the question does not hold; a capital at its start alone is none."""
    known = set(words(question))
    found = [
        match[0] for match in re.finditer(rf"\b(?:{NAME})(?: (?:{NAME}))*", text) if match.start() or " " in match[0]
    ]
    return {stem for name in found for stem in words(name) if stem not in known and NAMED.search(name)}


def _hours(one: str, other: str) -> bool:
    """Whether the times of day differ; other days and seasons have other hours."""
    if {day.lower() for day in _DAYS.findall(one)} != {day.lower() for day in _DAYS.findall(other)}:
        return False
    mine, theirs = ({match.groups() for match in _CLOCK.finditer(text)} for text in (one, other))
    return bool(mine and theirs) and not mine & theirs


def _figures(question: str, one: str, other: str) -> bool:
    """Whether the figures that are asked for differ, beyond rounding, and can be compared."""
    mine, theirs = (_asked_for(question, text) for text in (one, other))
    if not mine or not theirs:
        return False
    if any(_same(a, b) for a in mine[:1] for b in theirs) or any(_same(a, b) for a in mine for b in theirs[:1]):
        return False
    return (mine[0].unit or ("",))[0] == (theirs[0].unit or ("",))[0]


def _asked_for(question: str, text: str) -> list[Quantity]:
    """The quantities of a text that the question does not hold: those first that stand nearest to what is asked."""
    known, text = numbers(question), _MOVED.sub(r"\g<change> to", text)
    found = [one for one in quantities(text) if not (one.nth or one.year or numbers(text[one.start : one.end]) & known)]
    wanted = measured(question) or frozenset(word for word in keywords(question) if word not in names(question))
    places = [match.start() for match in re.finditer(r"[^\W\d_]+", text) if set(words(match[0])) & wanted]
    return sorted(found, key=lambda one: min((abs(place - one.end) for place in places), default=0))


def _same(one: Quantity, other: Quantity) -> bool:
    return one.held_by(other, bare=True) or other.held_by(one, bare=True)


def _short(question: str, one: str, other: str) -> bool:
    """Whether both say it in nearly the words of the question, and end in different ones."""
    known = frozenset(words(question))
    mine, theirs = ({word for word in words(text) if not holds(word, known)} for text in (one, other))
    return 0 < len(mine) <= FEW and 0 < len(theirs) <= FEW and not mine & theirs and fits(kind(question), one, question)
