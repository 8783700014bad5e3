"""How numbers and units are written: what groups thousands, symbols that differ only by case, and scripts."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache

_WORD = re.compile(r"[^\W\d_]+")
_LOOKED_AT = 20_000
"""Characters of a text that tell its language."""
_DECIMAL_COMMA = frozenset(
    "der das des dem den ein eine einen einem einer und ist sind wurde wurden nicht mit von für auf wird im zum zur bei"
    " nach aus auch oder sich hat wer wie wann welche le les la une et est sont du dans pour par sur aux qui en los las"
    " el una y del por con para que fue è di che il sono gli nel della os da em um uma não het een van voor niet zijn"
    " heeft met og er det til af ikke som ve bir".split()
)
"""Light words of languages that write 12.500 for twelve thousand five hundred."""
_DECIMAL_POINT = frozenset(
    "the of and to is are were be been has have had from with for that this these by at which it its not or but".split()
)


def find_grouping(text: str) -> str:
    """Return the character that groups thousands in the language of a text: "." in German, "," in English, empty if
    its light words do not tell."""
    words = [match[0].lower() for match in _WORD.finditer(text[:_LOOKED_AT])]
    comma = sum(word in _DECIMAL_COMMA for word in words)
    point = sum(word in _DECIMAL_POINT for word in words)
    if comma == point:
        return ""
    return "." if comma > point else ","


@cache
def list_symbols() -> frozenset[str]:
    """Return the symbols of units."""
    units = "m g s t l A B b C F H Hz J K N Pa S T V W Ω Bq bps Bps bit eV Gy Sv VA Wh bar mol".split()
    prefixed = (f"{prefix}{unit}" for prefix in ("", *"nµmkMGTP") for unit in units)
    return frozenset((*prefixed, *"cm dm ha hPa dB cl dl M d h min kn rpm mph °".split()))


@cache
def list_cased() -> frozenset[str]:
    """Return the symbols that are other ones in other case: mW and MW."""
    spelled = Counter(map(str.lower, list_symbols()))
    return frozenset(symbol for symbol in list_symbols() if spelled[symbol.lower()] > 1)


def read_symbol(written: str, *, counted: bool) -> str:
    """Return the symbol of a unit that is another one in other case, empty for any other word. A single letter is a
    unit only after a number (`counted`)."""
    if not (counted or len(written) > 1):
        return ""
    symbol = f"k{written[1:]}" if written[0] == "K" and len(written) > 1 else written
    symbol = f"{symbol[:-1]}l" if symbol[-1] == "L" else symbol.replace("\u2126", "Ω")
    return symbol if symbol in list_cased() else ""


def is_comparable(claim: str, sentences: Sequence[str]) -> bool:
    """Return whether claim and text share a script."""
    letters = {read_script(char) for char in claim if char.isalpha()}
    there = {read_script(char) for sentence in sentences[:50] for char in sentence if char.isalpha()}
    return not letters or not there or bool(letters & there)


def read_script(char: str) -> int:
    """Return a rough block of Unicode: Latin with its accents is one, Han and kana are one, others by 256 letters."""
    point = ord(char)
    if point < 0x250 or 0x1E00 <= point < 0x2000:
        return 0
    return 1 if 0x3000 <= point < 0xA000 else point >> 8
