"""Whether a sentence of a source, with what it goes on from, says what a claim says."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from hira.evidence.meeting import meets, places, polar
from hira.evidence.page import Page
from hira.evidence.parting import Where, crossed, denied, miscounted, opposed, swapped, turned
from hira.evidence.statement import Statement, Token

SHORT = 5
"""A claim of so many content words or fewer has to be held in every one."""
LOOSE = 0.15
"""The share of a longer claim's plain words that may be said otherwise."""
ALIKE = 0.75
"""The share of a claim that a passage has to hold to contradict the rest."""
OWN = 0.4
"""The share of a claim that has to stand in the sentence itself, and not in what it goes on from."""

Outcome = Literal["held", "against", "apart"]


@dataclass(frozen=True, slots=True)
class Match:
    """How a passage holds a claim: `outcome`, the share of tokens `held`, and the missing ones."""

    outcome: Outcome
    held: float
    missing: tuple[Token, ...]
    at: int


def hold(claim: Statement, tokens: Sequence[Token], page: Page, at: int) -> Match:
    """Hold a claim's tokens against one sentence and what it goes on from."""
    own, context = page.statement(at), page.context(at)
    where = {token: places(token, own) for token in tokens}
    if not any(where.values()):
        return Match("apart", 0.0, tuple(tokens), at)
    strange = _of_another(tokens, own)
    missing = [
        one
        for one in tokens
        if not (
            where[one]
            or _in_context(one, claim, context, page.chain(at), strange=strange)
            or _full(one, tokens, where, own, page)
        )
    ]
    if len(missing) > len(tokens) / 2:
        return Match("apart", 1 - len(missing) / len(tokens), tuple(missing), at)
    used = {piece for found in where.values() for piece in found[:1]}
    opposite = opposed(claim, own, used)
    against = bool(opposite) or denied(claim, tokens, own) or turned(claim, own)
    against = against or miscounted(claim, own) or crossed(tokens, where, own, context[: page.chain(at)])
    outcome: Outcome = "apart"
    inside = sum(map(bool, where.values())) >= OWN * len(tokens)
    if not against and inside and _enough(claim, tokens, own, missing):
        outcome = "held"
    elif (against and len(missing) - opposite <= len(tokens) * (1 - ALIKE)) or _one_slot(missing, tokens, own):
        outcome = "against"
    return Match(outcome, 1 - len(missing) / len(tokens), tuple(missing), at)


def _enough(claim: Statement, tokens: Sequence[Token], own: Statement, missing: Sequence[Token]) -> bool:
    """Whether nothing is missing that matters: a long claim may say a few plain words otherwise."""
    allowed = int(LOOSE * len(tokens)) if len(tokens) > SHORT else 0
    if any(one.sort != "word" or polar(one) for one in missing) or len(missing) > allowed:
        return False
    return not swapped(claim, own, missing)


def _of_another(tokens: Sequence[Token], own: Statement) -> bool:
    """Whether the sentence begins with a name that the claim does not have: no title lends it another."""
    names = [one for one in tokens if one.sort == "name"]
    begins = [one for one in own.tokens if one.sort == "name" and one.key in own.subject]
    return bool(begins) and not own.back and not any(meets(name, one) for name in names for one in begins)


def _in_context(token: Token, claim: Statement, context: Sequence[Statement], chain: int, *, strange: bool) -> bool:
    """Whether a token stands in what the sentence goes on from.

    Sentences before it lend the claim's subject and plain words; headings and the title other names and years, too.
    """
    if polar(token) or (strange and token.sort == "name"):
        return False
    if token.quantity and not token.quantity.year:
        return False
    lent = token.sort in ("word", "cjk") or token.key in claim.opening
    return any(places(token, one) for one in (context if lent and not token.quantity else context[chain:]))


def _full(token: Token, tokens: Sequence[Token], where: Where, own: Statement, page: Page) -> bool:
    """Whether a given name stands before a family name held alone, and the source tells it in full elsewhere."""
    for first, second in pairwise(tokens):
        if token is first and first.sort == second.sort == "name" and where[second]:
            given = any(meets(second, after) and before.sort == "name" for before, after in pairwise(own.tokens))
            of = re.search(rf"\b{re.escape(second.text)} of\b", own.text)
            return not given and not of and f"{first.key} {second.key}" in page.low
    return False


def _one_slot(missing: Sequence[Token], tokens: Sequence[Token], own: Statement) -> bool:
    """Whether everything is held but the numbers, or but one name, and the passage has others in their place."""
    rest = [one for one in tokens if one not in missing]
    if not missing or not rest:
        return False
    rivals = [one for one in own.tokens if not any(meets(token, one) for token in tokens)]
    figures = [one for one in missing if one.quantity or one.date]
    others = [one for one in missing if one not in figures]
    if figures and len(others) <= (1 - ALIKE) * (len(rest) + len(others)) and all(one.sort != "name" for one in others):
        return any(_differ(one, other) for one in figures for other in rivals)
    names = [one for one in missing if one.sort == "name"]
    run = len(names) == len(missing) and all(tokens.index(b) - tokens.index(a) == 1 for a, b in pairwise(names))
    return run and len(rest) >= 2 and any(one.sort == "name" for one in rivals)


def _differ(token: Token, other: Token) -> bool:
    """Whether another number is one that could stand there, with this or with another unit."""
    if token.quantity and other.quantity:
        return token.quantity.nth == other.quantity.nth
    return bool(other.quantity or other.date)
