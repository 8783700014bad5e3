"""What the cells of a table hold: numbers, years, months, days of the week, and the words of a name."""

import re
from collections.abc import Sequence
from itertools import pairwise

MONTHS = "january february march april may june july august september october november december".split()
DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_UNITS = {
    "kilogram": "kg", "gram": "g", "tonne": "t", "ton": "t", "euro": "eur", "dollar": "usd", "franc": "chf",
    "pound": "gbp", "metre": "m", "meter": "m", "kilometre": "km", "kilometer": "km", "centimetre": "cm",
    "millimetre": "mm", "litre": "l", "liter": "l", "hectare": "ha", "hectolitre": "hl", "minute": "min", "hour": "h",
    "second": "sec", "kilowatt": "kw", "megawatt": "mw", "percent": "pct", "degree": "deg", "celsius": "c",
}  # fmt: skip
_MONEY = frozenset(
    "crown cent penny pence krona kronor krone yen yuan rupee rouble peso taler thaler mark florin".split()
)
UNITS = frozenset(_UNITS.values()) | _MONEY
TOKEN = re.compile(r"\d[\d,]*\.\d+|\d+(?:,\d{3})*|[^\W\d_]+")
_IRREGULAR = {
    "people": "person", "children": "child", "men": "man", "women": "woman", "feet": "foot", "mice": "mouse",
    "geese": "goose", "wives": "wife", "knives": "knife", "shelves": "shelf", "wolves": "wolf",
    "calves": "calf", "halves": "half", "loaves": "loaf",
}  # fmt: skip
_DATED = frozenset("year date built founded opened born died season jahr".split())
_LAST_YEAR = 2100
_SIGN = r"(?:[^\w\s.+-]{0,2}|CHF|EUR|USD|GBP|Fr\.|Rs\.?|kr\.?|ca\.)\s?"


def number(cell: str) -> float | None:
    """The number a cell holds, with a unit behind it or a currency around it or not; "IC 101" is a name."""
    match = re.fullmatch(rf"{_SIGN}([-+−]?(?:\d{{1,3}}(?:[,' ]\d{{3}})+|\d+)(?:\.\d+)?)\s*[^\d]{{0,12}}", cell.strip())
    return float(re.sub(r"[,' ]", "", match[1]).replace("−", "-")) if match else None


def stem(word: str) -> str:
    """A word in lower case without a plural ending; a unit by its sign."""
    word = word.lower()
    base = _IRREGULAR.get(word) or re.sub(r"(?<=ch|sh|ss)es$|(?<=x)es$", "", re.sub(r"ies$", "y", word))
    base = base if base.endswith("ss") else base.rstrip("s") or base
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
