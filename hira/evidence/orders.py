"""The orders of a claim's words that state the same: in the other voice, with dates elsewhere, with a label first."""

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise, permutations

from hira.evidence.passages import Word, bind
from hira.evidence.questions import MODAL
from hira.evidence.sentence import ANY_LINK, Sentence

LONGEST_VOICE = 40
"""The content words of a claim that is also compared in the other voice."""
MOVED = 2
"""The number of dates and places that may change their order."""


def list_orders(claim: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """Yield the claim, and the orders of its words that state the same: "the author is Ida" and "Ida is the author",
    "in 1911 it burnt" and "it burnt in 1911", "was built in Vesk in 1911" and "was built in 1911 in Vesk"."""
    yield claim
    for place, word in enumerate(claim):
        if place and word.link == "be":
            first = word._replace(link="", marked=False)
            yield [first, *claim[place + 1 :], claim[0]._replace(link="be", close=False), *claim[1:place]]
        if place > 1 and word.link == "accusative":  # "den Turm baute Ida"
            yield [*claim[place:], claim[place - 1]._replace(close=False), *claim[: place - 1]]
    lead = next((place for place, word in enumerate(claim) if word.kind != "number"), 0)
    led, rest = [claim[:lead]] * bool(lead), claim[lead:]
    splits = [_split_adjuncts(rest, with_places=with_places) for with_places in (False, True)]
    for split in splits[splits[0] == splits[1] :]:
        apart = bool(led) and any(map(_is_date, split[1]))  # "In February it burnt in 1919" has one date in two parts
        core, loose = (rest, []) if apart else split
        for clause, phrases in _list_voices(core, [*led, *loose]):
            for order in permutations(phrases):
                if any(by.link == "by" and by.determined and _is_place(after) for (by, *_), after in pairwise(order)):
                    continue  # "was built by the smith in Vesk" does not say where it was built
                yield [*clause, *chain(*order)]
                if order and order[0][0].kind == "number":
                    yield [*order[0], *clause, *chain(*order[1:])]


def _split_adjuncts(words: Sequence[Word], *, with_places: bool) -> tuple[Sequence[Word], list[Sequence[Word]]]:
    """Return a clause without the dates, and the places, at its end, and those, `MOVED` at most."""
    phrases: list[Sequence[Word]] = []
    end = len(words)
    while len(phrases) < MOVED:
        start = end - 1
        while start > 0 and words[start].close and (words[start].kind == words[start - 1].kind):
            start -= 1
        phrase = words[start:end]
        if start < 1 or not (_is_date(phrase) or (with_places and _is_place(phrase))):
            break
        phrases.insert(0, phrase)
        end = start
    return words[:end], phrases


def _is_date(phrase: Sequence[Word]) -> bool:
    return phrase[0].link in ("", "in", ANY_LINK) and all(word.kind == "number" for word in phrase)


def _is_place(phrase: Sequence[Word]) -> bool:
    return phrase[0].link == "in" and all(word.kind == "name" for word in phrase)


def _list_voices(
    core: Sequence[Word], loose: Sequence[Sequence[Word]]
) -> Iterator[tuple[Sequence[Word], Sequence[Sequence[Word]]]]:
    """Yield a clause and the phrases that follow it in any order: as it is, and in the other voice, "the mill was built
    by Ida" for "Ida built the mill", whichever word is the verb."""
    yield core, loose
    if len(core) > LONGEST_VOICE:
        return
    agent = next((place for place, word in enumerate(core) if word.link == "by"), 0)
    patient, before = _split_adjuncts(core[:agent], with_places=True)
    if len(patient) > 1 and patient[-1].link == "be":
        yield patient, [*before, core[agent:], *loose]
        patient, helped, verb = _split_verb(patient, len(patient) - 1)
        yield [*bind(core[agent:], ""), *helped, verb._replace(link=""), *bind(patient, "")], [*before, *loose]
    for place in range(1, len(core) - 1):
        if core[place].kind == "word" and not core[place].link and not core[place + 1].link:
            subject, helped, verb = _split_verb(core, place)
            passive = [*bind(core[place + 1 :], ""), *helped, verb._replace(link="be", close=False)]
            yield passive, [bind(subject, "by"), *loose]


def _split_verb(words: Sequence[Word], place: int) -> tuple[Sequence[Word], Sequence[Word], Word]:
    """Return the words before the verb at `place`, its modal verb if it has one, and the verb."""
    start = place - (place > 1 and words[place - 1].text in MODAL)
    return words[:start], words[start:place], words[place]


def put_label_first(claim: Sequence[Word], sentence: Sentence) -> Iterator[list[Word]]:
    """Yield the claim in the order of a labelled value: "Founded: 2019" is "Otto Ltd was founded in 2019". The value
    follows the label in the claim; a figure may also come before it ("has 20 employees")."""
    label, value = sentence.label, sentence.words[sentence.value_start :]
    keys = {word.key for word in label}
    places = [place for place, word in enumerate(claim) if word.key in keys]
    if not label or {claim[place].key for place in places} != keys:
        return
    values = {word.key for word in value} - sentence.topic
    for place, word in enumerate(claim[: places[-1]]):
        unit = word.close and place and claim[place - 1].kind == "number"
        if word.key in values and word.kind != "number" and not unit:
            return
    named = [claim[place] for place in places]
    in_order = [word.key for word in named] == [word.key for word in label]
    if not in_order and any(word.link for word in label):
        return
    rest = [word for word in claim if word.key not in keys]
    yield [*bind(named if in_order else label, ""), *rest]
