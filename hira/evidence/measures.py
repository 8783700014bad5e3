"""Amounts: which numbers of a claim count, or measure, what a question asks for."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from hira.core.patterns import compile_lazily
from hira.evidence.alignment import YEAR
from hira.evidence.passages import LIMITING, MONTHS, POSSESSIVES, Word, fold, is_related
from hira.evidence.questions import MODAL, Question
from hira.evidence.sentence import TIME_UNITS, is_day, is_past, is_time, read_keys

_VALUE_LINKS = ("", "be", "of", "than", "by")
"""The links of a number that is the whole value: "is 29", "a total of 29", "more than 29", "rose by 29"."""
_WAYS = frozenset("from to by von auf um".split())
_ASKS_HAVE = compile_lazily(r"\b(?:do|does|did)\b.*\bhave\b", re.IGNORECASE)
_HAVING = read_keys(
    "holds contains comprises includes owns employs offers possesses features houses counts keeps totals"
)
"""Verbs that tell what something has."""
_QUANTITIES = frozenset(
    "none no several dozens hundreds thousands millions half twice once daily weekly monthly yearly free"
    " one thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty"
    " seventy eighty ninety hundred thousand million few dozen zwei drei vier fünf sechs sieben acht neun zehn zwölf"
    " deux trois quatre cinq sept huit neuf dix dos tres cuatro cinco seis siete ocho nueve diez".split()
)
_UNITS = {
    name: frozenset(fold(unit) for unit in units.split())
    for name, units in {
        "length": "metre kilometre km m cm mm centimetre millimetre mile yard foot feet inch mètre metro metri",
        "money": "dollar euro pound yen rupee cent crown franc eur usd gbp kronen franken",
        "weight": "gram kg kilo kilogram ton tonne pound ounce gramm kilogramm tonnen",
        "temperature": "degree celsius fahrenheit grad ° c f",
        "size": "hectare acre square cubic litre gallon hektar quadratmeter quadratkilometer kubikmeter m² m2 km² km2"
        " m³ m3 percent prozent",
    }.items()
} | {"time": TIME_UNITS}
_AWAY = frozenset("away apart off entfernt".split())
_ALL_UNITS = frozenset[str]().union(*_UNITS.values())
MEASURES = {
    frozenset(words.split()): frozenset(units.split())
    for words, units in (
        ("high tall height", "length"),
        ("hoch höhe", "length money temperature size"),
        ("wide broad width breadth breit breite", "length"),
        ("deep depth tief tiefe", "length"),
        ("far distance weit entfernung", "length"),
        ("long length lang lange länge", "length time"),
        ("old age alt alter", "time"),
        ("heavy weight schwer gewicht", "weight"),
        ("expensive price cost costs teuer preis kosten kostet kostete", "money"),
        ("hot cold warm temperature heiß kalt temperatur", "temperature"),
        ("fast speed schnell geschwindigkeit", "length"),
        ("big large size groß größe", "length weight size"),
    )
}
"""The names of a measure, and its units."""
_DISTANCES = frozenset(names for names in MEASURES if "far" in names)


def find_new(words: Sequence[Word], asked: set[str]) -> Iterator[int]:
    """Yield the places of the words that are neither of the question nor a time, a number or its unit. A word
    between two of the question, unless "by" or "of" binds it, describes one of them: "the bridge over the Aller"."""
    known = [place for place, word in enumerate(words) if is_related(word.key, asked)]
    named = [place for place in known if words[place].kind != "number"]
    measured = False
    for place, word in enumerate(words):
        unit = measured and word.close and (word.kind == "word" or word.key in _ALL_UNITS)
        measured = unit or word.kind == "number"
        between = bool(named) and named[0] < place < named[-1] and word.link not in ("of", "by")
        described = place in known or between or word.text.lower() in POSSESSIVES
        if not (measured or described or word.key in _ALL_UNITS or is_time(word.text)):
            yield place


def has_measure(words: Sequence[Word], noun: str, question: Question) -> bool:
    """Return whether a number measures this: "120 metres" are a height, unless they are "long" or "from" something."""
    named = {name for word in words for name in MEASURES if word.text.lower() in name}
    nouns = {noun, *(word.text.lower() for word in question.words)}  # "Wie hoch ist der Preis?"
    ours = {name for name in MEASURES if not nouns.isdisjoint(name)}
    if named and named.isdisjoint(ours):
        return False
    units = {unit for name in ours for unit in MEASURES[name]}
    for place in range(len(words)):
        after = words[place + 1] if place + 1 < len(words) and words[place + 1].close else None
        phrase = [word.key for word in takewhile(lambda word: word.close, words[place + 1 : place + 3])]
        classes = {name for name, keys in _UNITS.items() if not keys.isdisjoint(phrase)}  # "8 working days"
        value = words[place].link in (("be", "of") if after else _VALUE_LINKS)
        fits = bool(classes & units) if classes else bool(named) or value
        following = words[place + 2 : place + 3]
        away = any("from" in word.link.split() or word.text.lower() in _AWAY for word in following)
        distance = away and "length" in classes and ours.isdisjoint(_DISTANCES)
        if is_quantity(words, place) and fits and not distance:
            return True
    return False


def is_quantity(words: Sequence[Word], place: int) -> bool:
    """Return whether a word tells how much: a number, unless it belongs to a date or is the minutes of a time."""
    word = words[place]
    if word.kind != "number":
        return word.text.lower() in _QUANTITIES
    if word.key in MONTHS or is_day(words[place : place + 2]):
        return False
    if place and word.marked and len(word.text) == 2 and words[place - 1].text.isdecimal():
        return len(words[place - 1].text) > 2
    counts = place + 1 < len(words) and words[place + 1].close
    return counts or not YEAR.match(word.text)


def is_count(words: Sequence[Word], place: int, counted: Sequence[str], question: str) -> bool:
    """Return whether the number at `place` is that of what is counted: it comes before it ("29 employees"), or alone
    as a value ("Rooms: 12", "the staff is 29"). "Turbine 2", "29 days" and "until 22:00" count no turbines, and "rose
    by 29" does not answer "to how much"."""
    number, before = words[place], words[place - 1] if place else None
    phrase = list(
        takewhile(lambda word: (word.close and word.text not in MODAL) or word.link == "of", words[place + 1 :])
    )
    ways = _WAYS.intersection((*number.link.split(), before.text.lower() if before and number.close else ""))
    if before and before.text == "up":  # "up to three"
        ways = frozenset()
    asked = _WAYS.intersection(question.split())
    if ways and asked and ways.isdisjoint(asked):
        return False
    if before and _ASKS_HAVE.search(question) and not number.marked and LIMITING.issuperset(number.link.split()):
        acts = is_past(before.text) or (before.text.endswith("s") and before.kind == "word")
        if acts and not is_related(before.key, _HAVING | read_keys(question)):
            return False  # "lends 90,000 books"
    if not counted or any(is_related(word.key, counted) for word in phrase):
        return True
    labels = before and number.close and (is_related(before.key, counted) or before.kind == "number")
    code = number.text[0] == "0"
    return not (labels or code or (phrase and phrase[0].close)) and number.link in _VALUE_LINKS
