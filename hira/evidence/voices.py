"""Who acts, in a question and in a claim."""

import re
from collections.abc import Sequence
from itertools import pairwise

from hira.core.patterns import compile_lazily
from hira.evidence.measures import find_new
from hira.evidence.passages import Word, is_related
from hira.evidence.questions import ASKS_BY, AUXILIARY, BARE, BEFORE_ASKING, COPULA, Question
from hira.evidence.sentence import is_time

_DOES = compile_lazily(r"\b(?:did|does|do)\b", re.IGNORECASE)
_IS_DONE = compile_lazily(r"\b(?:is|are|was|were)\b", re.IGNORECASE)
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


def has_agents_exchanged(question: Question, claim: Sequence[Word]) -> bool:
    """Return whether subject and object change places: Ida, who acts in "Did Ida teach Otto?" and "Who was taught by
    Ida?", does not in the claim, or Otto of "Who was Otto taught by?" does."""
    asked = list(pairwise(question.words))
    agents = [(word, verb) for verb, word in asked if word.link == "by" and (verb.link == "be" or verb is asked[0][0])]
    pairs = agents or [
        (word, verb) for word, verb in asked if word.kind == "name" and verb.kind == "word" and verb.close
    ]
    suffers = not agents and bool(ASKS_BY.search(question.text) or _IS_DONE.search(question.text))
    if not (pairs or AUXILIARY.search(question.text)):  # "Who taught Otto?"
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
