"""Who acts in a claim that answers "who", and whose role it gives."""

import re
from collections.abc import Sequence

from hira.core.patterns import compile_lazily
from hira.evidence.measures import find_new
from hira.evidence.passages import Word, is_related
from hira.evidence.questions import ASKS_BY, BARE, BEFORE_ASKING, COPULA, Question
from hira.evidence.sentence import is_time

_ASKS_WHOM = compile_lazily(r"who (?:did|does|do)\b", re.IGNORECASE)
_WER = compile_lazily(r"wer (?!ist|sind|war|waren)", re.IGNORECASE)


def is_without_agent(asks: Question, claim: Sequence[Word]) -> bool:
    """Return whether nobody acts in a claim that has the verb of "who built …?": its subject does, or in the passive
    voice one after "by", if that is more than one word, a name or determined ("was built by hand" tells nobody)."""
    asked, by = {word.key for word in asks.words}, ASKS_BY.search(asks.text)
    bare = len(claim) <= BARE and asked.isdisjoint(word.key for word in claim)
    if not bare and _WER.match(asks.text):
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
