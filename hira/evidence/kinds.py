"""The kinds of things that questions ask for: a time, a place, a person, a reason, a number, a measure."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from hira.evidence.alignment import YEAR
from hira.evidence.passages import LIMITING, MONTHS, Word, fold, is_related
from hira.evidence.questions import ASKS_BY, BARE, COPULA, COUNTING, MODAL, Question
from hira.evidence.sentence import is_time

_PREPOSITIONS = frozenset("for in at on from to by with since until von mit an".split())
_KINDS = {
    **dict.fromkeys("when wann quand cuándo quando".split(), "time"),
    **dict.fromkeys("where wo wohin woher où dónde dove waar onde".split(), "place"),
    **dict.fromkeys("why warum wieso weshalb pourquoi perché waarom".split(), "reason"),
    **dict.fromkeys("who whom wer qui quién quiénes chi quem".split(), "person"),
    **dict.fromkeys("how wie comment cómo hoe".split(), "manner"),
    **dict.fromkeys("what which welche welcher welches welchen welchem".split(), "thing"),
    **dict.fromkeys(COUNTING, "count"),
}
"""The kinds, by the first word of the question."""
_KINDS_OF_NOUNS = {
    **dict.fromkeys("time year month day date century decade jahr monat tag datum uhrzeit".split(), "time"),
    **dict.fromkeys(("often", "oft", "frequently"), "frequency"),
    **dict.fromkeys(COUNTING, "count"),
}
"""The kinds, by the word after "how", "what" or "which"."""
_NAMED = frozenset(
    "colour color kind type sort material language city town country river street person farbe art".split()
)
"""Nouns that no number names."""
_HELPING = frozenset(
    "is are was were do does did has have had can could will would shall should must may might to ist sind war waren"
    " wird wurde wurden hat haben kann".split()
)
_VALUE_LINKS = ("", "be", "of", "than", "by")
"""The links of a number that is the whole value: "is 29", "a total of 29", "more than 29", "rose by 29"."""
_TIME_LINKS = frozenset("before after since during until when while if unless once always never".split())
_CLOCK = frozenset("am pm uhr o'clock a p".split())
_PLACE_LINKS = frozenset(
    "in from to into onto over under above below across against between among near within towards behind beyond".split()
)
_CAUSES = frozenset("because since as for so due owing reason reasons cause caused causes order".split())
_OFTEN = frozenset("time times once twice daily weekly monthly yearly annually hourly".split())
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
        "time": "second minute hour day week month year decade century sekunde minuten stunde stunden tag tage woche"
        " wochen monat monate jahr jahre jahren heure jour semaine mois ans année",
        "money": "dollar euro pound yen rupee cent crown franc eur usd gbp kronen franken",
        "weight": "gram kg kilo kilogram ton tonne pound ounce gramm kilogramm tonnen",
        "temperature": "degree celsius fahrenheit grad",
    }.items()
}
_ALL_UNITS = frozenset[str]().union(*_UNITS.values())
_MEASURES = {
    frozenset(words.split()): frozenset(units.split())
    for words, units in (
        ("high tall height", "length"),
        ("hoch höhe", "length money temperature"),
        ("wide broad width breadth breit breite", "length"),
        ("deep depth tief tiefe", "length"),
        ("far distance weit entfernung", "length"),
        ("long length lang lange länge", "length time"),
        ("old age alt alter", "time"),
        ("heavy weight schwer gewicht", "weight"),
        ("expensive price cost teuer preis", "money"),
        ("hot cold warm temperature heiß kalt temperatur", "temperature"),
        ("fast speed schnell geschwindigkeit", "length"),
        ("big large size groß größe", "length weight"),
    )
}
"""The names of a measure, and its units."""


def find_untold(question: Question, claim: Sequence[Word]) -> tuple[str, ...]:
    """Return the word with which a question asks, if the claim has nothing of that kind: no time for "when", no number
    of visitors for "how many visitors", no height for "how high", no place for "where", no reason for "why", nobody for
    "who", nothing but numbers and words of the question for "how" and "which colour"."""
    kind, noun = _find_kind(question.text)
    places, asked = range(len(claim)), {word.key for word in question.words}
    links = {link for word in claim for link in word.link.split()}
    words = {word.text.lower() for word in claim}
    new = [claim[place] for place in _find_new(claim, asked)]
    told = bool(new) or not kind
    if kind == "time":
        told = not _TIME_LINKS.isdisjoint(links | words) or any(_is_moment(claim, place) for place in places)
        told = told or any(is_related(word.key, {fold(noun)}) for word in claim if noun)
    elif kind == "frequency":
        told = "per" in links or not _OFTEN.isdisjoint(words) or any(map(is_time, words))
    elif kind == "count":
        wanted = {word.key for word in question.wanted}  # not "money", which any of its units tells
        counted = [word.key for word in question.counted if word.key in wanted]
        told = any(_is_quantity(claim, place) and _counts(claim, place, counted) for place in places)
    elif kind == "measure":
        told = _measures(claim, noun)
    elif kind == "person":
        told = told and not _lacks_agent(question, claim)
    elif kind == "thing" and not told:
        figures = any(_is_quantity(claim, place) and not _is_moment(claim, place) for place in places)
        told = (figures and noun not in _NAMED) or any(is_related(word.key, {fold(noun)}) for word in claim)
    elif question.text.lower().startswith(("where", "why")) and not asked.isdisjoint(word.key for word in claim):
        if kind == "place":
            told = any(not _PLACE_LINKS.isdisjoint(word.link.split()) for word in new)
        else:
            told = not _CAUSES.isdisjoint(links | words)
    return () if told else (noun if kind == "measure" else question.text.split(maxsplit=1)[0],)


def _find_kind(question: str) -> tuple[str, str]:
    """Return the kind of what a question asks for, empty if any claim may tell it, and the noun or the measure that it
    names: ("thing", "colour"), ("measure", "high")."""
    asking = [word.strip("¿?.,!\"'").lower() for word in question.split()[:3]]
    asking = asking[1:] if asking and asking[0] in _PREPOSITIONS else asking
    first, second, *_ = [*asking, "", ""]
    kind = _KINDS.get(first, "")
    if kind not in ("manner", "thing"):
        return kind, ""
    if not second or second in _HELPING:
        return (kind if kind == "manner" else ""), ""
    measure = any(second in names for names in _MEASURES)
    return _KINDS_OF_NOUNS.get(second, "measure" if measure else kind), second


def _find_new(words: Sequence[Word], asked: set[str]) -> Iterator[int]:
    """Yield the places of the words that are neither of the question nor a time, a number or its unit. A word
    between two of the question, unless "by" or "of" binds it, describes one of them: "the bridge over the Aller"."""
    known = [place for place, word in enumerate(words) if is_related(word.key, asked)]
    named = [place for place in known if words[place].kind != "number"]
    measured = False
    for place, word in enumerate(words):
        unit = measured and word.close and (word.kind == "word" or word.key in _ALL_UNITS)
        measured = unit or word.kind == "number"
        between = bool(named) and named[0] < place < named[-1] and word.link not in ("of", "by")
        described = place in known or between
        if not (measured or described or word.key in _ALL_UNITS or is_time(word.text)):
            yield place


def _is_moment(words: Sequence[Word], place: int) -> bool:
    """Return whether a word tells when: a day, a month, a year, a time of the clock, a number bound by "at" or alone,
    hours, days or years."""
    word, *rest = words[place : place + 2]
    if word.kind != "number" or YEAR.match(word.text) or word.key in MONTHS:
        return word.kind == "number" or is_time(word.text)
    after = rest[0] if rest and (rest[0].close or (rest[0].marked and rest[0].kind == "number")) else None
    if after:
        timed = after.kind == "number" or after.key in _UNITS["time"] or after.text.lower() in _CLOCK
        return timed or after.kind == "name"
    alone = len(words) == 1 or word.marked
    return alone or not LIMITING.union(("in", "from", "to", "by")).isdisjoint(word.link.split())


def _measures(words: Sequence[Word], noun: str) -> bool:
    """Return whether a number of the words measures this: "120 metres" are a height, unless they are "long"."""
    named = {name for word in words for name in _MEASURES if word.text.lower() in name}
    ours = {name for name in _MEASURES if noun in name}
    if named and named.isdisjoint(ours):
        return False
    units = {unit for name in ours for unit in _MEASURES[name]}
    for place in range(len(words)):
        after = words[place + 1] if place + 1 < len(words) and words[place + 1].close else None
        classes = {name for name, keys in _UNITS.items() if after and after.key in keys}
        fits = bool(classes & units) if classes else after is not None or words[place].link in _VALUE_LINKS
        if _is_quantity(words, place) and fits:
            return True
    return False


def _is_quantity(words: Sequence[Word], place: int) -> bool:
    """Return whether a word tells how much: a number, unless it is a year or the minutes of a time."""
    word = words[place]
    if word.kind != "number":
        return word.text.lower() in _QUANTITIES
    if place and word.marked and words[place - 1].kind == "number":
        return False
    counts = place + 1 < len(words) and words[place + 1].close
    return counts or not YEAR.match(word.text)


def _counts(words: Sequence[Word], place: int, counted: Sequence[str]) -> bool:
    """Return whether the number at `place` is that of what is counted: it comes before it ("29 employees"), or alone
    as a value ("Rooms: 12", "the staff is 29"). "Turbine 2", "29 days" and "until 22:00" count no turbines."""
    number = words[place]
    phrase = list(
        takewhile(lambda word: (word.close and word.text not in MODAL) or word.link == "of", words[place + 1 :])
    )
    if not counted or any(is_related(word.key, counted) for word in phrase):
        return True
    before = words[place - 1] if place else None
    labels = before and number.close and (is_related(before.key, counted) or before.kind == "number")
    code = number.text[0] == "0"
    return not (labels or code or (phrase and phrase[0].close)) and number.link in _VALUE_LINKS


def _lacks_agent(asks: Question, claim: Sequence[Word]) -> bool:
    """Return whether nobody acts in a claim that has the verb of "who built …?": its subject does, or in the passive
    voice one after "by", if that is more than one word, a name or determined ("was built by hand" tells nobody)."""
    asked, by = {word.key for word in asks.words}, ASKS_BY.search(asks.text)
    bare = len(claim) <= BARE and asked.isdisjoint(word.key for word in claim)
    if bare or not asks.wanted or COPULA.match(asks.text) or not (by or asks.text.lower().startswith("who ")):
        return False
    for word, after in zip(claim, [*claim[1:], None], strict=True):
        acts = word.kind == "name" or word.determined or word.text.endswith("s") or (after and after.close)
        if word.link.endswith("by") and acts:
            return False
    place = next((place for place, word in enumerate(claim) if word.key == asks.wanted[0].key), None)
    if place is None:  # "the designer was Ida" for "who designed"
        names = [word for word in claim if word.kind == "name" and not is_related(word.key, asked)]
        return len(claim) > BARE and all(is_time(word.text) for word in names)
    subject = [word for word in claim[:place] if word.key not in asked and not is_time(word.text)]
    return bool(by) or bool(claim[place].tense) or all(word.kind == "number" for word in subject)
