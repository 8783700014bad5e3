"""Which column a question is about, and what it counts."""

import re
from collections.abc import Sequence

from hira.policies.offline.table.cells import stem, stems
from hira.policies.offline.table.question import Reading

_SIZES = (
    ("tall tallest high highest", "height elevation altitude"),
    ("long longest shortest", "length duration minute hour distance"),
    ("large largest big biggest smallest", "area size population inhabitant"),
    ("deep deepest", "depth"),
    ("wide widest", "width"),
    ("heavy heaviest lightest", "weight mass"),
    ("cost costs cheapest dearest expensive", "price cost fare"),
    ("far farthest", "distance"),
    ("fast fastest slowest", "speed"),
    ("old oldest youngest", "age"),
)


def choose(asking: Reading, asked: str) -> bool:
    """The column that is meant. False if two may be, or if there has to be one and there is none."""
    numeric = [name for name in asking.columns if asking.orders[name] == "number"]
    years = [name for name in asking.columns if asking.orders[name] == "year"]
    if asked in ("earliest", "latest"):
        asking.column = years[0] if len(years) == 1 else ""
        return bool(asking.column)
    if asked == "number" and counted(asking):
        asking.use_named(asking.bounded)
        return True
    named = _meant(asking, numeric) or (_meant(asking, years) if asked in ("highest", "lowest") else [])
    if not named:
        named = _sized(asking, numeric)
    if not named and asking.bounded:
        named = [asking.bounded]
    if len(named) > 1:
        return False
    asking.column = named[0] if named else ""
    asking.use_named(asking.column)
    return bool(asking.column)


def _meant(asking: Reading, names: Sequence[str]) -> list[str]:
    """The columns whose names the unused words hold most of."""
    left = {one for at, one in enumerate(asking.stems) if not asking.used[at]}
    shares = {name: len(left & set(stems(name))) / len(set(stems(name))) for name in names if stems(name)}
    most = max(shares.values(), default=0.0)
    return [name for name, share in shares.items() if share == most] if most else []


def _sized(asking: Reading, numeric: Sequence[str]) -> list[str]:
    """The columns that hold what an adjective measures: the height for "tallest"."""
    words = [token.lower() for token in asking.tokens]
    measures = [(set(forms.split()), own.split()) for forms, own in _SIZES if set(forms.split()) & set(words)]
    for forms, hints in measures:
        for hint in hints:
            if named := [name for name in numeric if stem(hint) in stems(name)]:
                for at, word in enumerate(words):
                    asking.used[at] |= word in forms
                return named
    return []


def counted(asking: Reading) -> str:
    """What is counted: a column of words, or "rows"; empty if it is neither."""
    match = re.search(r"\b(?:how many|number of)\s+(?:different\s+)?([^\W\d_]+)", asking.question.lower())
    noun = stem(match[1]) if match else ""
    if any(asking.orders[name] == "number" and noun in stems(name) for name in asking.columns):
        return ""
    column = next((name for name in asking.columns if asking.orders[name] != "number" and noun in stems(name)), "")
    general = noun in {"row", "entry", "line", "record"} or (noun and noun in stems(asking.about))
    return column or ("rows" if general else "")
