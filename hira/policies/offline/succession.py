"""Who came before or after whom: "Who was captain before Peder Lund?" is answered only where a text says the order."""

import re
from dataclasses import dataclass

from hira.policies.offline.questions import LONGEST, NAME
from hira.policies.offline.wording import NAMED, words

_AFTER = r"after|succeeded|followed|replaced|took over from|(?:the )?successor (?:of|to)"
_BEFORE = r"before|preceded|(?:the )?predecessor (?:of|to)"
_ASKED = re.compile(rf"\b(?:(?P<after>{_AFTER})|(?P<before>{_BEFORE})) (?P<name>{NAME})")
_OWNED = re.compile(rf"\b(?P<name>{NAME})[’']s (?:(?P<after>successor)|(?P<before>predecessor))")
_NAMES = re.compile(r"\W*(?:who|whom|which|what)\b", re.IGNORECASE)
_THEN = re.compile(
    r"\b(?:followed|succeeded|replaced) by\b|\bgave way to\b|\bhanded (?:\w+ ){0,3}(?:over )?to\b"
    r"|\b(?:after|following) (?:him|her|them)\b|\bthen\b|\blater\b|\b(?:until|till) \d{4}\b"
    r"|[;,.] (?=(?-i:[A-Z])[^;,.]*\b(?:took over from|succeeded|followed|replaced) (?:him|her|them)\b)"
    r"|\b(?:his|her|their|the|whose) successor\b|\bbefore (?-i:(?=[A-Z]))",
    re.IGNORECASE,
)
"""Whoever stands before it came first."""
_EARLIER = re.compile(
    r"\b(?:succeeded|followed|replaced)\b(?! by)|\btook over (?:\w+ ){0,6}from\b|\bsuccessor (?:of|to)\b"
    r"|\bcame after\b|\bafter (?-i:(?=[A-Z]))|\b(?:his|her|their|the|whose) predecessor\b|\bbefore (?:him|her|them)\b",
    re.IGNORECASE,
)
"""Whoever stands before it came later."""

RELATING = frozenset(words("successor predecessor succeeded preceded followed replaced took over"))
"""What a question says the order by; a text may say it otherwise."""


@dataclass(frozen=True, slots=True)
class Order:
    """Someone is asked for who came `before` the one whose stems are `name`, or after."""

    name: frozenset[str]
    before: bool

    def told(self, text: str, question: str) -> bool:
        """Whether a text says it of somebody whom the question does not name."""
        known = set(words(question))
        forward = ((match, self.before) for match in _THEN.finditer(text))
        backward = ((match, not self.before) for match in _EARLIER.finditer(text))
        for match, leads in (*forward, *backward):
            sides = text[: match.start()], text[match.end() :]
            wanted, given = sides if leads else sides[::-1]
            others = (set(words(name[0])) for name in NAMED.finditer(wanted))
            if self.name & set(words(given)) and any(other - known for other in others if other):
                return True
        return False


def order(question: str) -> Order | None:
    """The order that a question asks for, None if it asks for none among persons or things with a name."""
    if len(question) > LONGEST or not _NAMES.match(question):
        return None
    match = _ASKED.search(question) or _OWNED.search(question)
    if not match or match["name"][0].isdigit():
        return None
    return Order(frozenset(words(match["name"].split()[-1])), bool(match["before"]))
