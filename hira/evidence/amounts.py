"""Amounts of a claim as its source writes them: 6.5 euros are 6.50 euros, whereas version 6.5 is not version 6.50."""

from collections.abc import Iterator, Sequence
from functools import cache

from hira.evidence.notation import list_cased, list_symbols
from hira.evidence.passages import AMBIGUOUS, Passages, Word, fold, is_row

_LONGEST_WHOLE, _ZEROS = 20, 4
"""Digits of a whole number that gets a fraction, and zeros at its end that are looked for: 5 euros are 5.0000 euros."""
_LOOKED_AT = 50
"""Sentences with a number in which its unit is looked for."""


def write_amounts(words: Sequence[Word], passages: Passages, *, is_computed: bool) -> list[Word]:
    """Return the words of a claim with the keys that amounts have in a text. Other numbers keep their digits, except
    about a result that is computed."""
    written = list(words)
    for place, word in enumerate(words):
        unit = _find_unit(words, place)
        if word.kind != "number" or not (unit or is_computed) or _is_unclear(word):
            continue
        for key in _list_writings(word.key):
            there = passages.postings.get(key, ())[:_LOOKED_AT]
            sentences = [(passages.words(at), is_row(passages.sentences[at])) for at in there]
            if any(is_computed or _has_amount(some, key, unit, in_row=in_row) for some, in_row in sentences):
                written[place] = word._replace(key=key)
                break
    return written


def _has_amount(words: Sequence[Word], key: str, unit: str, *, in_row: bool) -> bool:
    """Return whether words have a number with this unit. In a row, the name of the column has the unit."""
    units = (unit, "") if in_row else (unit,)
    return any(
        word.key == key and _find_unit(words, place) in units and not _is_unclear(word)
        for place, word in enumerate(words)
    )


def _list_writings(key: str) -> Iterator[str]:
    """Yield the keys of one value with fewer and more zeros at the end: of 4.1, 4.10, 4.100; the given one first."""
    digits, _, power = key.partition("e")
    if not power:
        return
    yield key
    least = digits.rstrip("0")
    missing = max(int(power) - len(least.lstrip("-")), 0)  # of a whole number
    if missing > _LONGEST_WHOLE:
        return
    for zeros in (0, *range(missing + 1, missing + _ZEROS + 1)):
        if (writing := f"{least}{'0' * zeros}e{power}") != key:
            yield writing


def _is_unclear(number: Word) -> bool:
    """Return whether a number has three digits after a point that may separate thousands: 12.500, read as 12.5."""
    return number.key.partition("e")[0].endswith("0") and AMBIGUOUS.fullmatch(number.text) is not None


def _find_unit(words: Sequence[Word], place: int) -> str:
    """Return the key of the unit after a number, or of the currency before it, empty without one."""
    word, *after = words[place : place + 2]
    if after and after[0].close and after[0].key in _list_units():
        return after[0].key
    before = words[place - 1].key if place and word.close else ""
    return before if before in _list_units() else ""


@cache
def _list_units() -> frozenset[str]:
    """Return the keys of units and currencies."""
    names = (
        "metre kilometre centimetre millimetre mile yard foot feet inch gram kilo kilogram ton tonne pound ounce litre"
        " hectare acre second minute hour day week month year percent dollar euro yen rupee cent franc crown degree"
        " celsius fahrenheit watt kilowatt megawatt volt byte kilobyte megabyte gigabyte terabyte knot gramm kilogramm"
        " tonnen stunden sekunden minuten tage tagen wochen monate monaten jahre jahren grad prozent franken kronen"
        " mètre heure jour ans mois eur usd gbp chf"
    )
    cased = list_cased()
    return frozenset(map(fold, names.split())) | {
        symbol if symbol in cased else fold(symbol) for symbol in list_symbols()
    }
