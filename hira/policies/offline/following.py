"""A question that continues a conversation, made to stand alone: "And the Petrel?", "Where was she born?".

It is told as the question, a line that ends in a colon, and what was said before, each turn behind its role.
"""

import re
from collections.abc import Iterator

from hira.evidence import unmarked
from hira.policies.offline.questions import LONGEST, NAME, entity

_ROLE = r"(?:user|assistant|system|developer|tool|function)"
_EARLIER = re.compile(rf"\n\n[^\n]*[:：]\n(?={_ROLE}: )")
_TURN = re.compile(rf"^({_ROLE}): ", re.MULTILINE)
_INSTEAD = re.compile(
    r"\W*(?:(?i:and|but),? )?(?:(?i:what|how) about )?"
    rf"(?P<what>(?:(?P<place>(?i:in|on|at|for|of|from|to|by|since|before|after)) )?(?:{NAME}|the [a-z][\w-]*))\W*"
)
_BARE = re.compile(r"\W*(?:and )?(?P<ask>who|what|when|where|why|how)\W*", re.IGNORECASE)
_ASKING = re.compile(r"\W*\w+(?= (?:is|was|are|were|did|does|do|has|had|can|will)\b)", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:1\d{3}|20\d\d)\b")
_NAMED = re.compile(NAME)
_WHO = re.compile(r"\W*(?:who|whom|whose)\b", re.IGNORECASE)
_FINDS = re.compile(r"\W*(?:(?:in|at|on|from|to|by) )?(?:where|which|what)\b", re.IGNORECASE)
_POINTS = re.compile(
    r"\b(?:(?P<owner>its|his|her|their)(?= [a-z])|(?P<person>he|she|him|her|they|them)|(?P<thing>it))\b", re.IGNORECASE
)
_PERSONAL = frozenset(["his", "her"])


def standing(text: str) -> str:
    """The question alone, with what it leaves out or points back to; a text that continues nothing as it is."""
    begins = _EARLIER.search(text)
    if not begins:
        return text
    before, answer = "", ""
    for role, words in _turns(text[begins.end() :]):
        if role == "user":
            before, answer = _resolved(words, before, answer), ""
        elif role == "assistant":
            answer = unmarked(words)
    return _resolved(text[: begins.start()].strip(), before, answer)


def _turns(told: str) -> Iterator[tuple[str, str]]:
    heads = list(_TURN.finditer(told))
    ends = [*(head.start() for head in heads[1:]), len(told)]
    for head, end in zip(heads, ends, strict=True):
        yield head[1], " ".join(told[head.end() : end].split())


def _resolved(question: str, before: str, answer: str) -> str:
    """The question with what it takes from the one before, and from the answer to that."""
    if not before or max(len(question), len(before)) > LONGEST:
        return question
    if bare := _BARE.fullmatch(question):
        return _ASKING.sub(bare["ask"].capitalize(), before, count=1) if _ASKING.match(before) else question
    if other := _INSTEAD.fullmatch(question):
        return _instead(other["what"], other["place"] or "", before) or question
    return _POINTS.sub(lambda back: _meant(back, before, answer), question)


def _instead(what: str, place: str, before: str) -> str:
    """The question before about another thing, year or place; empty if it has none to put in its stead."""
    if place:
        same = re.search(rf"\b{place} (?:{NAME})", before)
    else:
        same = _YEAR.search(before) if _YEAR.fullmatch(what) else _named(before)
    if same:
        return f"{before[: same.start()]}{what}{before[same.end() :]}"
    bare = before.rstrip(" ?")
    if place:
        return f"{bare} {what}?"
    return f"{bare} in {what}?" if _YEAR.fullmatch(what) else ""


def _meant(back: re.Match[str], before: str, answer: str) -> str:
    """What a pronoun points back to: the person who was asked for, the place or thing that was, or what the question
    before was about. The pronoun itself if that is nothing with a name."""
    personal = bool(back["person"]) or (back["owner"] or "").lower() in _PERSONAL
    topic, found = _named(before), entity(answer, before, "")
    asked_for = _WHO.match(before) if personal else _FINDS.match(before) and not topic
    names = [found, topic[0] if topic else ""]
    name = next(filter(None, names if asked_for else reversed(names)), "")
    if not name:
        return back[0]
    return f"{name}'s" if back["owner"] else name


def _named(question: str) -> re.Match[str] | None:
    """The last name in a question, but for its first word."""
    found = [match for match in _NAMED.finditer(question) if question[: match.start()].strip()]
    return found[-1] if found else None
