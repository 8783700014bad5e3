"""Where a passage holds a token of a claim: names as names, numbers by value, words by their root, Chinese by sign."""

import re

from hira.evidence.statement import Statement, Token
from hira.evidence.wording import APPOSITIVE, LIGHT, OPPOSITES, folded, related, root, same_name

DEGREE = re.compile(
    r"^(?!(?:rest|west|east|forest|interest|request|test|nest|guest|invest|protest|contest|harvest)$)[\w-]{2,}est$"
)
_SENSE = frozenset("most least only more less fewer all always".split())
_LIGHT = frozenset(root(word) for word in LIGHT) | LIGHT
_APPOSITIVE = frozenset(root(word) for word in APPOSITIVE)
_ONE = re.compile(r"\bone\b", re.IGNORECASE)
_TIMES = frozenset(root(word) for word in "year month day date time".split())
# they have opposites, and are said in other words all the same
_MILD = frozenset(
    root(word)
    for word in (
        "child day night parent leave begin end include cause known create build destroy full add kill hold marry open"
        " man woman"
    ).split()
)


def weighty(claim: Statement) -> tuple[Token, ...]:
    """The tokens of a claim that have to be looked for: light words and "the city of" fall away, if others are left."""
    solid = [one for one in claim.tokens if not light(one)]
    plain = [one for one in solid if not _named(one, claim)]
    return tuple((plain if len(plain) >= 2 else solid) or claim.tokens)


def _named(token: Token, claim: Statement) -> bool:
    """Whether a word only says of what kind a name is ("the city of"); of a time, only right before it ("the year")."""
    if token.sort != "word" or token.key not in _APPOSITIVE:
        return False
    return token.key not in _TIMES or bool(re.match(r"\s+(?:of\s+)?\d", claim.text[token.start + len(token.text) :]))


def light(token: Token) -> bool:
    """Whether a word weighs nothing, such as "called" or "page"."""
    return token.sort == "word" and token.key in _LIGHT


def degree(token: Token) -> bool:
    """Whether a word is a superlative."""
    return token.sort in ("word", "name") and bool(DEGREE.match(folded(token.text)))


def polar(token: Token) -> bool:
    """Whether a word says a direction or a degree, so that no passage without it says the same."""
    if token.sort not in ("word", "name"):
        return False
    return degree(token) or token.key in _SENSE or (token.key in OPPOSITES and token.key not in _MILD)


def slot(token: Token) -> bool:
    """Whether a token is one that another could stand in the place of: a name, a number, a direction, a degree."""
    return token.sort != "word" or polar(token)


def places(token: Token, passage: Statement) -> list[int]:
    """The pieces of a passage in which it holds a token."""
    if token.sort == "cjk":
        return _covered(token.key, passage)
    found = [one.piece for one in passage.tokens if meets(token, one)]
    if token.quantity and token.quantity.readings == (1.0,):
        found += [passage.piece_at(match.start()) for match in _ONE.finditer(passage.text)]
    if not found and token.sort == "name" and token.text.isupper() and 2 <= len(token.text) <= 6:
        found = [one.piece for one in passage.tokens if one.sort == "name"][: token.key in passage.initials]
    return list(dict.fromkeys(found))


def meets(token: Token, other: Token) -> bool:
    """Whether another token says what this one says."""
    if token.quantity or token.date:
        return _as_much(token, other)
    if token.sort == "cjk":
        return other.sort == "cjk" and (other.key in token.key or token.key in other.key)
    if other.sort not in ("name", "word"):
        return False
    if token.sort == other.sort == "name" and not (token.lead or other.lead):
        return same_name(token.key, other.key)
    mine, theirs = (root(one.key) if one.sort == "name" else one.key for one in (token, other))
    return same_name(token.key, other.key) or (bool(mine) and related(mine, theirs))


def _as_much(token: Token, other: Token) -> bool:
    if token.quantity and other.date:
        return token.quantity.year and other.date.year == token.quantity.readings[0]
    if token.quantity:
        return other.quantity is not None and token.quantity.held_by(other.quantity)
    return token.date is not None and other.date is not None and token.date.held_by(other.date)


def _covered(chunk: str, passage: Statement) -> list[int]:
    """Where the signs of a Chinese chunk stand: the longest runs that the passage has, from the left."""
    text, at, found = passage.text, 0, []
    while at < len(chunk):
        size = next((size for size in range(len(chunk) - at, 0, -1) if chunk[at : at + size] in text), 0)
        if not size:
            return []
        found.append(passage.piece_at(text.index(chunk[at : at + size])))
        at += size
    return list(dict.fromkeys(found))
