"""The kinds of things that questions ask for: a time, a place, a person, a reason, a number, a measure.

A claim about another time, or of what is only thought, tells nothing of them.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from hira.core.patterns import compile_lazily
from hira.evidence.alignment import NUMBERING, OWNING, YEAR
from hira.evidence.passages import DENIALS, LIMITING, MONTHS, Word, fold, is_related
from hira.evidence.questions import ASKS_BY, AUXILIARY, BARE, BEFORE_ASKING, COPULA, COUNTING, Question, asks_yes_no
from hira.evidence.sentence import TIME_UNITS, is_day, is_past, is_time

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
_TIMES = {
    **dict.fromkeys("time uhrzeit".split(), "hour"),
    **dict.fromkeys("day date tag datum".split(), "day"),
    **dict.fromkeys("month monat".split(), "month"),
    **dict.fromkeys("year jahr".split(), "year"),
}
"""The parts of a date, by the noun that asks for them: "at what time", "on which day"."""
_NAMED = frozenset(
    "colour color kind type sort material language city town country river street person farbe art".split()
)
"""Nouns that no number names."""
_HELPING = frozenset(
    "is are was were do does did has have had can could will would shall should must may might to ist sind war waren"
    " wird wurde wurden hat haben kann".split()
)
_TIME_LINKS = frozenset("before after since during until when while if unless once always never".split())
_CLOCK = frozenset("am pm uhr o'clock a p".split())
_HOURS = frozenset("noon midnight morning afternoon evening night dawn dusk sunrise sunset mittag mitternacht".split())
_PLACE_LINKS = frozenset(
    "in from to into onto over under above below across against between among near within towards behind beyond".split()
)
_CAUSES = frozenset("because since as for so due owing reason reasons cause caused causes order".split())
_MANNERS = frozenset("by with through via from using because as without like".split())
_NOT = frozenset("not never nicht nie niemals".split())
_DENIED = _NOT | DENIALS | frozenset("unknown unclear uncertain".split())
_CLAIMING = frozenset("claims claimed alleges alleged asserts asserted denies denied knows knew".split())
_HARDLY = frozenset("almost nearly hardly barely".split())
_OFTEN = frozenset(
    "per time times once twice daily weekly monthly yearly annually hourly every each alle jede jeden jedes mal einmal"
    " zweimal täglich wöchentlich monatlich jährlich stündlich".split()
)
_UNREAL = compile_lazily(
    r"\b(?:would|could|might|may|perhaps|maybe|probably|possibly|(?:alleg|report|suppos)edly|rumoured|planned|proposed|expect(?:s|ed)|intended"
    r"|forecast|believe[sd]?|thinks|assume[sd]|suspect(?:s|ed)|guesses|hope[sd]|würden?|könnten?|sollten?|angeblich"
    r"|vermut(?:lich|et)|wahrscheinlich|vielleicht|glaubt|meint|behauptet|geplant"
    r"|(?:plans?|promise[sd]?|intends?|want(?:s|ed)?|used|supposed|meant|offer(?:s|ed)|agree[sd]?|tr(?:y|ies|ied)|pledged"
    r"|vowed|fail(?:s|ed)?|refuse[sd]?|declined|attempted|threatened) to(?! the))\b"
)
"""Words of what has not happened, or is only thought."""
_COMING = compile_lazily(r"\b(?:will|shall|soll|sollen|wird|werden)\b")
_TENSES = {
    **dict.fromkeys("was were did had wurde wurden war waren hatte hatten".split(), "past"),
    **dict.fromkeys("is are does do wird werden ist sind".split(), "present"),
}
_HAS = compile_lazily(r"\bha(?:ve|s)\b|\bhat\b|\bhaben\b", re.IGNORECASE)
_WAS = compile_lazily(r"Was (?!(?:the|an?|this|that|these|those|it|he|she|they|there|his|her|its|their)\b)[a-zäöü]")
"""German "was"."""
_DOES = compile_lazily(r"\b(?:did|does|do)\b", re.IGNORECASE)
_IS_DONE = compile_lazily(r"\b(?:is|are|was|were)\b", re.IGNORECASE)
_ASKS_WHOM = compile_lazily(r"who (?:did|does|do)\b", re.IGNORECASE)
_WER = compile_lazily(r"wer (?!ist|sind|war|waren)", re.IGNORECASE)


def find_untold(question: Question, claim: Sequence[Word]) -> tuple[str, ...]:
    """Return the word with which a question asks, if the claim has nothing of that kind: no time for "when", no number
    of visitors for "how many visitors", no height for "how high", no place for "where", no reason for "why", nobody for
    "who", nothing but numbers and words of the question for "how" and "which colour". A claim about another time, of
    what is only thought, or with another who acts does not tell it either."""
    kind, noun = _find_kind(question.text)
    asked = {word.key for word in question.words}
    speaks = not asked.isdisjoint(word.key for word in claim)
    ways = (_is_unreal, _has_other_tense, _has_agents_exchanged, _has_only_owner, _is_only_denied)
    differs = speaks and any(is_other(question, claim) for is_other in ways)
    if _has_kind(kind, noun, question, claim, speaks=speaks) and not differs:
        return ()
    return (noun,) if kind == "measure" else tuple(question.text.split(maxsplit=1)[:1])


def _has_kind(kind: str, noun: str, question: Question, claim: Sequence[Word], *, speaks: bool) -> bool:
    """Return whether a claim tells something of this kind. It `speaks` of the question if they share a word."""
    places, asked, text = range(len(claim)), {word.key for word in question.words}, question.text.lower()
    words = {part for word in claim for part in (*word.link.split(), word.text.lower())}
    if not kind:
        return True
    if kind == "time":
        named = noun and any(is_related(word.key, {fold(noun)}) for word in claim)
        return named or _has_time(claim, _TIMES.get(noun, ""), asked)
    if kind == "frequency":
        repeated = (claim[place : place + 2] for place in places if claim[place].determined and not claim[place].link)
        units = any(word.key in TIME_UNITS for pair in repeated for word in pair)  # of "every 20 minutes", "a day"
        return units or not _OFTEN.isdisjoint(words) or any(map(is_time, words))
    from hira.evidence.measures import find_new, has_measure, is_count, is_quantity

    new = [claim[place] for place in find_new(claim, asked)]
    told = bool(new)
    if kind == "count":
        counted = [word.key for word in question.counted]
        wanted = {word.key for word in question.wanted}
        counted = counted if wanted.issuperset(counted[:1]) else []  # any of its units tells "money"
        told = any(is_quantity(claim, place) and is_count(claim, place, counted, text) for place in places)
    elif kind == "measure":
        told = has_measure(claim, noun, question)
    elif kind == "person" and told:
        told = not _is_without_agent(question, claim)
    elif kind == "thing" and not told:
        figures = any(is_quantity(claim, place) and not _is_moment(claim, place) for place in places)
        told = (figures and noun not in _NAMED) or any(is_related(word.key, {fold(noun)}) for word in claim)
    elif kind in ("act", "place", "reason") and (speaks or any(word.link == "from" for word in new)):
        told = _has_circumstance(kind, claim, new, asked, text)
    return told


def _has_circumstance(kind: str, claim: Sequence[Word], new: Sequence[Word], asked: set[str], question: str) -> bool:
    """Return whether words tell how, where or why: by the light words that bind them."""
    links = {link for word in new for link in word.link.split()}
    if kind == "act":
        places = [place for place, word in enumerate(claim) if place and word.link == "of"]
        of = any(claim[place - 1].key in asked for place in places)  # "died of cholera"
        return of or not _MANNERS.isdisjoint(links) or any(word.text.endswith("ly") for word in new)
    if kind == "place" and question.startswith("where"):
        inside = [word.key for word in claim if word.link == "in" and word.kind == "name" and not is_time(word.text)]
        ways = _PLACE_LINKS - ({"from"} - {*re.findall(r"\w+", question)})  # "from Lund" is not where one goes
        return not ways.isdisjoint(links) or any(not is_related(key, asked) for key in inside)
    if kind == "reason" and question.startswith("why"):
        return not _CAUSES.isdisjoint(part for word in claim for part in (*word.link.split(), word.text.lower()))
    return bool(new)


def _find_kind(question: str) -> tuple[str, str]:
    """Return the kind of what a question asks for, empty if any claim may tell it, and the noun or the measure that it
    names: ("thing", "colour"), ("measure", "high")."""
    asking = [word.strip("¿?.,!\"'").lower() for word in question.split()[:3]]
    asking = asking[1:] if asking and asking[0] in BEFORE_ASKING else asking
    first, second, *_ = [*asking, "", ""]
    kind = _KINDS.get(first, "")
    if kind not in ("manner", "thing"):
        return kind, ""
    if not second or second in _HELPING:
        acts = kind == "manner" and second in ("did", "do", "does")
        return ("act" if acts else kind if kind == "manner" else ""), ""
    if [second, *asking[2:]] == ["many", "times"]:
        return "frequency", ""
    if second in ("lautet", "lauten"):  # "Wie lautet die Nummer?"
        return "", ""
    from hira.evidence.measures import MEASURES

    measure = any(second in names for names in MEASURES)
    return _KINDS_OF_NOUNS.get(second, "measure" if measure else kind), second


def _has_time(words: Sequence[Word], part: str, asked: set[str]) -> bool:
    """Return whether words tell when, or this part of a date, and do not only repeat the time of the question."""
    for place, word in enumerate(words):
        related = not _TIME_LINKS.isdisjoint((*word.link.split(), word.text.lower()))
        named = is_time(word.text) or word.key in MONTHS
        tells = {
            "": _is_moment(words, place),
            "year": word.text.isdecimal() and len(word.text) in (3, 4),
            "month": named,
            "day": is_day(words[place : place + 2]) or (named and word.kind != "number"),
            "hour": _is_hour(words[place : place + 2]) or word.text.lower() in _HOURS or len(words) == 1,
        }
        if (tells[part] and word.key not in asked) or (related and (not part or (part, word.kind) == ("hour", "word"))):
            return True
    return False


def _is_hour(words: Sequence[Word]) -> bool:
    """Return whether the first of two words is a time of the clock: "9 am", "9:30", "at 9"."""
    word, *rest = words
    if word.kind != "number" or word.key in MONTHS or YEAR.match(word.text):
        return False
    if rest and (rest[0].close or (rest[0].marked and rest[0].kind == "number")):
        return rest[0].text.lower() in _CLOCK or (rest[0].marked and len(rest[0].text) == 2)
    return not LIMITING.union(("in", "from", "to", "by")).isdisjoint(word.link.split())


def _is_moment(words: Sequence[Word], place: int) -> bool:
    """Return whether a word tells when: a date or a part of one, a time of the clock, a number alone, hours or days."""
    word, *rest = words[place : place + 2]
    if word.kind != "number" or YEAR.match(word.text) or word.key in MONTHS:
        unit = place > 0 and word.key in TIME_UNITS and words[place - 1].text.lower() in NUMBERING  # "the third day"
        return unit or word.kind == "number" or is_time(word.text)
    if is_day(words[place : place + 2]) or _is_hour(words[place : place + 2]):
        return True
    after = rest[0] if rest and rest[0].close else None
    if after:
        return after.key in TIME_UNITS or (after.kind == "number" and not after.marked)
    return len(words) == 1 or word.marked


def _is_unreal(question: Question, claim: Sequence[Word]) -> bool:
    """Return whether a claim tells what is only thought, planned, over ("used to") or to come, unlike its question."""
    asked = question.text[:1].lower() + question.text[1:]
    keys = {word.key for word in question.words}
    texts = ("the " * word.determined + word.text * (word.key not in keys) for word in claim)
    said = " ".join(f"{word.link} {text}" for word, text in zip(claim, texts, strict=True))
    has = question.counted and _HAS.search(question.text)
    unreal = _UNREAL.search(said) or ((has or _read_tense(question) == "past") and _COMING.search(said))
    return bool(unreal) and not (_UNREAL.search(asked) or _COMING.search(asked))


def _read_tense(question: Question) -> str:
    """Return whether a question is about the past or the present, empty if its words do not show it."""
    tense = next((_TENSES[word] for word in re.findall(r"\w+", question.text.lower()) if word in _TENSES), "")
    verb = question.wanted[0] if question.wanted else None
    if tense or not verb or verb.kind != "word" or not question.text.lower().startswith(("who ", "what ", "which ")):
        return "" if _WAS.match(question.text) else tense
    return "past" if is_past(verb.text) else "present" if verb.text.endswith("s") and verb.text[-2:] != "ss" else ""


def _has_other_tense(question: Question, claim: Sequence[Word]) -> bool:
    """Return whether a claim is about the past and its question about the present, or the other way round. "Who
    is Ida?" may be about the past."""
    tenses = {word.tense for word in claim if word.tense}
    tense = "" if COPULA.match(question.text) and not question.role else _read_tense(question)
    forms = {word.key: word.text for word in question.wanted if word.kind == "word"}
    pairs = [(word.text, forms[word.key]) for word in claim if word.key in forms]
    if tense == "past" and any(is_past(ours) for ours, _ in pairs):  # "Ida reported that the crane is broken"
        return False
    if tenses or not tense:
        return bool(tense) and tense not in tenses
    if tense == "present":
        return any(is_past(ours) and not is_past(form) for ours, form in pairs)
    return any(ours.endswith("s") and (is_past(form) or ours == f"{form}s") for ours, form in pairs)


def _has_agents_exchanged(question: Question, claim: Sequence[Word]) -> bool:
    """Return whether subject and object change places: Ida, who acts in "Did Ida teach Otto?" and "Who was taught by
    Ida?", does not in the claim, or Otto of "Who was Otto taught by?" does."""
    asked = list(pairwise(question.words))
    agents = [(word, verb) for verb, word in asked if word.link == "by" and (verb.link == "be" or verb is asked[0][0])]
    words, said = question.words, {tuple(word.key for word in claim[place : place + 3]) for place in range(len(claim))}
    threes = [words[place : place + 3] for place in range(len(words) - 2)]
    named = [three[0] for three in threes if three[2].kind == "name" and tuple(word.key for word in three) in said]
    pairs = agents or [
        (word, verb)
        for word, verb in asked
        if word.kind == "name" and verb.kind == "word" and verb.close and word not in named  # not "Vasco da Gama"
    ]
    suffers = not agents and bool(ASKS_BY.search(question.text) or _IS_DONE.search(question.text))
    before_asking = question.text.partition(" ")[0].lower() in BEFORE_ASKING  # "An wen geht der Preis?"
    if not (pairs or before_asking or AUXILIARY.search(question.text)):  # "Who taught Otto?"
        pairs = [(word, verb) for verb, word in asked if word.kind == "name" and not word.link and verb.kind == "word"]
        suffers = True
    if not pairs or not (agents or suffers or _DOES.search(question.text)):
        return False
    (name, verb), *_ = pairs
    names = [place for place, word in enumerate(claim) if word.key == name.key]
    verbs = [n for n, word in enumerate(claim) if is_related(word.key, {verb.key}) and not word.determined]
    if not names or not verbs:
        return False
    verb, after = claim[verbs[0]], claim[verbs[0] + 1 :][:1]
    transitive = any(not word.link and (word.determined or word.kind == "name") for word in after)
    passive = not transitive and (verb.link == "be" or any(word.link.endswith("by") for word in after))
    passive = passive and not verb.text.endswith("ing")
    if suffers and not (transitive or passive):  # "the mill, which later burned"
        return False
    acts = not passive if names[0] < verbs[0] else claim[names[0]].link.endswith("by")
    return acts == suffers


def _has_only_owner(question: Question, claim: Sequence[Word]) -> bool:
    """Return whether what acts in a question, or is described, only owns something in the claim: "Ida's rival lives in
    Lund" tells nothing of Ida. "Ida's 40 boats" are counted."""
    numbers = {place for place, word in enumerate(claim) if word.kind == "number"}
    owning = {place for place, word in enumerate(claim) if word.text.endswith(OWNING)}
    owners = {claim[place].key for place in owning if place + 1 not in numbers}
    owners -= {word.key for place, word in enumerate(claim) if place not in owning}
    link = "of"
    for word in question.wanted if owners else ():
        link = link if word.close else word.link
        if word.key in owners and link in ("", "be", "when", "where") and not word.text.endswith(OWNING):
            return True
    return False


def _is_only_denied(question: Question, claim: Sequence[Word]) -> bool:
    """Return whether a claim denies what its question asks for: it "does not cost 30 euros", "is no longer the mayor",
    "is not Ida", "nearly won", is "the second largest" or "unknown", or is what somebody claims."""
    asked, text = {word.key for word in question.words}, question.text.lower()
    for place, (before, word) in enumerate(pairwise(claim if not asks_yes_no(text) else ()), 1):
        no, after = before.text.lower(), word.text.lower()
        not_so = no in _NOT | _HARDLY or (no == "longer" and claim[max(place - 2, 0)].text.lower() == "no")
        lesser = no in NUMBERING and word.close and after.endswith("est")
        claimed = after in _CLAIMING and not any(is_related(other.key, asked) for other in claim[: place + 1])
        if claimed or ((not_so or lesser) and no not in text and is_related(word.key, asked)):
            return True
        subject = is_related(before.key, asked) or (place == 1 and before.light)
        other = any(later.marked or "but" in later.link.split() for later in claim[place:])
        if subject and word.link == "be" and after in _DENIED and after not in text and not other:
            return True
    return False


def _is_without_agent(asks: Question, claim: Sequence[Word]) -> bool:
    """Return whether nobody acts in a claim that has the verb of "who built …?": its subject does, or in the passive
    voice one after "by", if that is more than one word, a name or determined ("was built by hand" tells nobody)."""
    asked, by = {word.key for word in asks.words}, ASKS_BY.search(asks.text)
    bare = len(claim) <= BARE and asked.isdisjoint(word.key for word in claim)
    if not bare and _WER.match(asks.text):
        from hira.evidence.measures import find_new

        for new in find_new(claim, asked):  # the subject: a noun without a preposition, or one after "von"
            before = claim[new - 1].text.lower() if new and claim[new].close else ""
            free = claim[new].kind == "name" and claim[new].link in ("", "be", "of", "and", "dative of")
            if before == "von" or (free and before not in BEFORE_ASKING):
                return False
        return True
    asks_agent = by or (asks.text.lower().startswith("who ") and not _ASKS_WHOM.match(asks.text))
    if bare or not asks.wanted or COPULA.match(asks.text) or not asks_agent:
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


def is_other_role(claim: Sequence[Word], question: Question) -> bool:
    """Return whether a claim has the role that a question asks for as a part of another one only: "the vice president"
    and "the son of the president" are not the president, whereas "its president" is."""
    asked_keys = {word.key for word in question.words}
    roles = [place for place, word in enumerate(claim) if question.role and word.key == question.role.key]
    for place in roles:
        before, role = claim[place - 1], claim[place]
        narrowed = (role.close and not before.light and before.key not in asked_keys) or "of" in role.link.split()
        if not (place and narrowed):
            return False
    return bool(roles)
