"""What the cells of a table hold: numbers, years, months, days of the week, and the words of a name."""

import re
from collections.abc import Sequence
from itertools import pairwise

MONTHS = "january february march april may june july august september october november december".split()
DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_UNITS = {
    "kilogram": "kg", "gram": "g", "tonne": "t", "ton": "t", "euro": "eur", "dollar": "usd", "franc": "chf",
    "metre": "m", "meter": "m", "kilometre": "km", "kilometer": "km", "centimetre": "cm", "millimetre": "mm",
    "litre": "l", "liter": "l", "hectare": "ha", "hectolitre": "hl", "minute": "min", "hour": "h",
    "kilowatt": "kw", "percent": "pct",
}  # fmt: skip
UNITS = frozenset(_UNITS.values())
TOKEN = re.compile(r"\d[\d,]*\.\d+|\d+(?:,\d{3})*|[^\W\d_]+")
_DATED = frozenset("year date built founded opened born died season jahr".split())
_LAST_YEAR = 2100


def number(cell: str) -> float | None:
    """The number a cell holds, with a unit or a currency around it or not."""
    match = re.fullmatch(r"\D{0,4}?(-?\d[\d,' ]*(?:\.\d+)?)\s*[^\d]{0,12}", cell.strip())
    return float(re.sub(r"[,' ]", "", match[1])) if match else None


def stem(word: str) -> str:
    """A word in lower case without a plural ending; a unit by its sign."""
    base = re.sub(r"ies$", "y", word.lower()).rstrip("s")
    return _UNITS.get(base, base)


def stems(text: str) -> list[str]:
    """The words and numbers of a text, without plural endings, in lower case."""
    return [stem(word.replace(",", "")) for word in TOKEN.findall(text)]


def order_of(name: str, cells: Sequence[str]) -> str:
    """What orders the cells of a column: "month", "day", "year", "number"; empty if nothing does.

    Numbers are years only where the column is named so, or goes through them one by one.
    """
    filled = [cell for cell in cells if cell]
    for kind in ("month", "day", "year", "number"):
        ranks = [value for cell in filled if (value := rank(cell, kind)) is not None]
        in_turn = len(set(ranks)) == len(ranks) and len({b - a for a, b in pairwise(ranks)}) == 1
        if len(ranks) * 2 > len(filled) and (kind != "year" or in_turn or _DATED & set(stems(name))):
            return kind
    return ""


def rank(cell: str, kind: str) -> float | None:
    """Where a cell stands in an order of that kind."""
    names = {"month": MONTHS, "day": DAYS}.get(kind)
    if names:
        word = cell.strip(" .").lower()
        short = [at for at, name in enumerate(names) if word == name or (len(word) > 2 and name.startswith(word))]
        return float(short[0]) if short else None
    value = number(cell)
    if kind == "year":
        return value if value is not None and re.fullmatch(r"[12]\d{3}", cell) and value <= _LAST_YEAR else None
    return value
