"""Which column a question is about, and what it counts."""

import re
from collections.abc import Sequence

from hira.policies.offline.table.cells import UNITS, stem, stems
from hira.policies.offline.table.question import Reading
from hira.policies.offline.table.wide import VALUE

_SIZES = (
    ("tall tallest high highest", "height elevation altitude"),
    ("long longest shortest", "length duration distance"),
    ("takes take took last lasts lasted", "minute hour duration"),
    ("large largest big biggest smallest", "area size surface population inhabitant"),
    ("deep deepest", "depth"),
    ("wide widest", "width"),
    ("heavy heaviest lightest weigh weighs weighed", "weight mass"),
    ("cost costs cheap cheapest dearest expensive", "price cost fare"),
    ("far farthest", "distance"),
    ("fast fastest slowest", "speed"),
    ("old oldest youngest", "age"),
)
_LASTING = frozenset("takes take took last lasts lasted".split())
_NEUTRAL = frozenset("highest largest biggest smallest".split())
_LINKS = frozenset("a an per of in by at for the from to on with".split())
_GENERAL = frozenset(stems("number no amount count total sum quantity value name"))
_QUALIFYING = frozenset(
    stems(
        "new free lost net gross average mean median max min maximum minimum used unused sold returned open closed"
        " male female planned expected target estimated previous last first change growth rate share percent"
        " percentage per ratio current former rank index density cumulative other extra late early missing empty"
    )
)
_TIMED = frozenset(stems("minute hour second"))
_NO_NOUN = frozenset("of in at on from to by for with did does do has have had is are was were there more".split())
_RECORDS = frozenset({"row", "entry", "line", "record"})
_COUNTED = re.compile(
    r"\b(?:how many|(?:total )?number of)\s+(?:of )?(?:all |the |these )*(?:different |distinct )?([^\W\d_]+)"
    r"(?:[ _-]([^\W\d_]+))?"
)


def choose(asking: Reading, asked: str) -> bool:
    """The column that is meant. False if two may be, or if there has to be one and there is none."""
    years = [name for name in asking.columns if asking.orders[name] == "year"]
    if asked in ("earliest", "latest"):
        asking.column = years[0] if len(years) == 1 else ""
        return bool(asking.column)
    if asked == "number" and counted(asking):
        asking.use_named(asking.bounded)
        asking.use_named(counted(asking))
        return True
    names = asking.columns if asked == "value" else asking.sheet.measures
    named = _meant(asking, names) or _sized(asking, asking.sheet.measures)
    if not named and asking.sheet.measures == [VALUE]:
        named = [VALUE]
    if len(named) != 1:
        return asked == "value" and not named and _names_row(asking)
    asking.column = named[0]
    asking.use_named(asking.column)
    return _fits_adjective(asking) and (asked != "number" or asking.column != asking.bounded)


def _names_row(asking: Reading) -> bool:
    """Whether the name of a row is asked for: "who", "which ward"."""
    match = re.search(r"\b(?:who|which|what) ?([^\W\d_]*)", asking.question.lower())
    return match is not None and (match[0].startswith("who") or stem(match[1]) in asking.sheet.nouns)


def _meant(asking: Reading, names: Sequence[str]) -> list[str]:
    """The columns whose names the unused words hold most of, with the word that they are about."""
    left = asking.left()
    cores = {name: _core(name) for name in names}
    shares = {
        name: (len(left & set(stems(name)) - _LINKS), set(cores[name]) <= left)
        for name in names
        if _about(left, name) and not asking.limited(name) and set(cores[name]) - _LINKS
    }
    most = max(shares.values(), default=None)
    return [name for name, share in shares.items() if share == most]


def _about(said: set[str], name: str) -> bool:
    """Whether these words hold what the name of a column is about, and what changes its meaning.

    A unit behind it need not be said, nor what stands in brackets: "apples_kg", "Inhabitants (2020)". "Opening" alone
    is not "opening hours", and "members" are not "new members".
    """
    own = stems(re.sub(r"\([^()]*\)", " ", name)) or stems(name)
    core = _core(name)
    return bool(core) and core[-1] in said and all(one in said for one in own if one in _QUALIFYING)


def _core(name: str) -> list[str]:
    """The words of a column's name that say what it is about, the last one most: without units and what follows."""
    own = stems(re.sub(r"\([^()]*\)", " ", name)) or stems(name)
    before = next((at for at, one in enumerate(own) if one in _LINKS and at), len(own))
    part = own[:before] if set(own[:before]) - _GENERAL else own[before:] or own
    core = [one for at, one in enumerate(part) if not _unit(name, part, at) and one not in _LINKS | _GENERAL]
    told = [one for one in part if one not in _LINKS and not one[0].isdigit()]
    rest = [one for at, one in enumerate(part) if one in told and not _unit(name, part, at)]
    return [one for one in core if one in told] or rest or told or part


def _unit(name: str, own: Sequence[str], at: int) -> bool:
    """Whether a word of a column's name is a unit: not "hours" in "opening hours"."""
    timed = own[at] in _TIMED and at > 0 and bool(re.search(r"ing[ _-]*(?:minute|hour|second)", name.lower()))
    return own[at] in UNITS and not timed


def _sized(asking: Reading, numeric: Sequence[str]) -> list[str]:
    """The columns that hold what an adjective measures: the height for "tallest", minutes for "takes the longest"."""
    words = [token.lower() for token in asking.tokens]
    for forms, hints in _SIZES[::-1]:
        said = set(forms.split()) & set(words)
        for hint in hints.split() if said and (said - _LASTING or {"long", "longest", "shortest"} & set(words)) else ():
            if named := [name for name in numeric if _about({stem(hint)}, name)]:
                for at, word in enumerate(words):
                    asking.used[at] |= word in forms.split()
                return named
    return []


def measuring(column: str) -> set[str]:
    """The words that ask for what a column measures: "weigh" for a weight."""
    own = set(stems(column))
    forms = [one for forms, hints in _SIZES if own & {stem(hint) for hint in hints.split()} for one in forms.split()]
    return {one for one in forms if not one.endswith("est")}


def _fits_adjective(asking: Reading) -> bool:
    """Whether the column is what a superlative measures: the fastest takes no highest number of minutes."""
    said = {token.lower() for token in asking.tokens if token.lower().endswith("est")}
    lasting = bool(_LASTING & {token.lower() for token in asking.tokens})
    for forms, hints in _SIZES:
        if said & set(forms.split()) - _NEUTRAL:
            measures = {stem(one) for one in hints.split()} | (
                {"min", "h"} if lasting and "longest" in forms else set()
            )
            if not measures & set(stems(asking.column)):
                return False
    return True


def counted(asking: Reading) -> str:
    """What is counted: a column of words, or "rows"; empty if it is neither."""
    match = _COUNTED.search(asking.question.lower())
    nouns = [stem(one) for one in match.groups() if one and one not in _NO_NOUN] if match else []
    counts = any(_about({nouns[0]}, name) and asking.sheet.naming(name) for name in asking.columns) if nouns else False
    if not counts and any(noun in stems(name) for noun in nouns for name in asking.sheet.measures):
        return ""
    for noun in nouns[::-1]:
        fitting = [name for name in asking.columns if name not in asking.sheet.measures and noun in _core(name)]
        fitting = [name for name in fitting if _about(set(nouns), name)]
        if fitting and not asking.limited(fitting[0]):
            return fitting[0]
    general = bool(nouns) and (nouns[0] in _RECORDS or bool(set(nouns) & asking.sheet.nouns))
    return "rows" if general else ""
