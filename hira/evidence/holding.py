"""Whether a sentence of a source, with what it goes on from, says what a claim says, and where they part."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from hira.evidence.page import Page
from hira.evidence.statement import Statement, Token
from hira.evidence.wording import APPOSITIVE, CJK_OPPOSITES, LIGHT, OPPOSITES, folded, related, root, same_name

SHORT = 5
"""A claim of so many content words or fewer has to be held in every one."""
LOOSE = 0.2
"""The share of a longer claim's plain words that may be said otherwise."""
ALIKE = 0.75
"""The share of a claim that a passage has to hold to contradict the rest."""

Outcome = Literal["held", "against", "apart"]
_DEGREE = re.compile(r"^(?:\w{2,}(?:est)|most|least|only|more|less|fewer|all|none|always|never)$")
_KEEP = frozenset(
    "rest west east forest interest request test nest guest invest protest contest harvest latest suggest honest".split()
) - {"latest"}


@dataclass(frozen=True, slots=True)
class Match:
    """How a passage holds a claim: `outcome`, the share of tokens `held`, and the missing ones."""

    outcome: Outcome
    held: float
    missing: tuple[Token, ...]
    at: int


def weighty(claim: Statement) -> tuple[Token, ...]:
    """The tokens of a claim that have to be looked for: light words and "the city of" fall away, if others are left."""
    solid = [one for one in claim.tokens if one.sort != "word" or one.key not in _LIGHT]
    plain = [one for one in solid if one.sort != "word" or one.key not in _APPOSITIVE]
    return tuple(
        plain
        if (len(plain) >= 2 and len(plain) < len(solid) and any(one.sort == "word" for one in plain)) or len(plain) >= 3
        else solid or claim.tokens
    )


_LIGHT = frozenset(root(word) for word in LIGHT) | LIGHT
_APPOSITIVE = frozenset(root(word) for word in APPOSITIVE)


def polar(token: Token) -> bool:
    """Whether a word says a direction or a degree, so that no passage without it says the same."""
    low = folded(token.text)
    return token.sort in ("word", "name") and (
        (token.key in OPPOSITES and token.key not in _MILD) or (bool(_DEGREE.match(low)) and low not in _KEEP)
    )


_MILD = frozenset(
    root(word)
    for word in "people child day night parent leave begin end include cause known create found build destroy full add kill hold marry open".split()
)


def places(token: Token, passage: Statement) -> list[int]:
    """The pieces of a passage in which it holds a token."""
    if token.sort == "cjk":
        return _covered(token.key, passage)
    found = [one.piece for one in passage.tokens if _meets(token, one)]
    if (
        not found
        and token.sort == "name"
        and token.text.isupper()
        and 2 <= len(token.text) <= 6
        and token.key in passage.initials
    ):
        return [one.piece for one in passage.tokens if one.sort == "name"][:1]
    return list(dict.fromkeys(found))


def _meets(token: Token, other: Token) -> bool:
    if token.quantity:
        if other.date:
            return token.quantity.year and other.date.year == token.quantity.readings[0]
        return bool(other.quantity) and token.quantity.held_by(other.quantity)  # type: ignore[arg-type]
    if token.date:
        return bool(other.date) and token.date.held_by(other.date)  # type: ignore[arg-type]
    if other.sort in ("number", "date", "cjk"):
        return False
    if token.sort == "name" and other.sort == "name":
        return (
            same_name(token.key, other.key) or ((token.lead or other.lead) and related(root(token.key), root(other.key)))
        )
    mine = root(token.key) if token.sort == "name" else token.key
    theirs = root(other.key) if other.sort == "name" else other.key
    return bool(mine) and related(mine, theirs)


def _covered(chunk: str, passage: Statement) -> list[int]:
    """Where the signs of a Chinese chunk stand: in runs of two or more, a single sign by itself."""
    text, at, found = passage.text, 0, []
    while at < len(chunk):
        size = next((size for size in range(len(chunk) - at, 0, -1) if chunk[at : at + size] in text), 0)
        if not size or (size == 1 and len(chunk) > 3 and chunk[at : at + 1] not in text):
            return []
        found.append(passage.piece_at(text.index(chunk[at : at + size])))
        at += size
    return list(dict.fromkeys(found))


def hold(claim: Statement, tokens: Sequence[Token], page: Page, at: int, beside: frozenset[str]) -> Match:
    """Hold a claim's tokens against one sentence. `beside` are the question's roots."""
    own, context = page.statement(at), page.context(at)
    where = {token: places(token, own) for token in tokens}
    strange = (
        own.subject
        and not own.back
        and not any(where[one] for one in tokens if one.sort == "name" and one.key in own.subject)
    )
    missing = []
    for token in tokens:
        if where[token] or _in_context(token, context, strange=bool(strange)) or _full_name(token, tokens, where, page):
            continue
        missing.append(token)
    share = 1 - len(missing) / len(tokens)
    used = {piece for found in where.values() for piece in found[:1]}
    if not any(where.values()):
        return Match("apart", 0.0, tuple(missing), at)
    opposed = _opposed(tokens, where, own, used)
    before = context[: page.chain(at)]
    against = opposed or _denied(claim, own, used) or _crossed(tokens, where, own, before) or _turned(claim, own)
    hard = [one for one in missing if one.sort != "word" or polar(one)]
    soft = [one for one in missing if one not in hard and one.key not in beside]
    allowed = int(LOOSE * len(tokens)) if len(tokens) > SHORT else 0
    if not hard and len(soft) <= allowed and not (against or _swapped(tokens, own, missing)):
        return Match("held", share, tuple(missing), at)
    if against and len(missing) - opposed <= len(tokens) * (1 - ALIKE):
        return Match("against", share, tuple(missing), at)
    if _one_slot(missing, tokens, own):
        return Match("against", share, tuple(missing), at)
    return Match("apart", share, tuple(missing), at)


def _in_context(token: Token, context: Sequence[Statement], *, strange: bool) -> bool:
    if strange and token.sort == "name":
        return False
    if token.quantity and not token.quantity.year:
        return any(places(token, one) for one in context[:-1])
    return any(places(token, one) for one in context)


def _full_name(token: Token, tokens: Sequence[Token], where: dict[Token, list[int]], page: Page) -> bool:
    """Whether a given name stands before a family name that is held, and the source tells the full name elsewhere."""
    if token.sort != "name":
        return False
    place = tokens.index(token)
    for other in (*tokens[place + 1 : place + 2], *tokens[max(0, place - 1) : place]):
        first, second = sorted((token, other), key=lambda one: one.start)
        if other.sort == "name" and where[other] and f"{first.key} {second.key}" in page.low:
            return True
    return False


def _denied(claim: Statement, own: Statement, used: set[int]) -> bool:
    return bool(claim.denied) != bool(own.denied & used)


def _opposed(tokens: Sequence[Token], where: dict[Token, list[int]], own: Statement, used: set[int]) -> bool:
    """Whether the passage has the opposite of a word of the claim, and not the word."""
    near = {one.key for one in own.tokens if one.piece in used and one.sort in ("word", "name")}
    near |= {root(one.key) for one in own.tokens if one.piece in used and one.sort == "name"}
    if any(OPPOSITES.get(token.key, frozenset()) & near for token in tokens if not where[token]):
        return True
    said = "".join(one.text for one in tokens if one.sort == "cjk")
    return any(
        (a in said and a not in own.text and b in own.text) or (b in said and b not in own.text and a in own.text)
        for a, b in CJK_OPPOSITES
    )


def _slot(token: Token) -> bool:
    return token.sort in ("number", "date", "name") or polar(token)


_FAR = 1000


def _with_context(
    tokens: Sequence[Token], where: dict[Token, list[int]], before: Sequence[Statement]
) -> dict[Token, list[int]]:
    """The places of tokens, those of the sentences before too; what their verbs are said of is handed on for free."""
    found = dict(where)
    for at, one in enumerate(before, 1):
        for token in tokens:
            if not found[token] and token.key not in one.opening:
                found[token] = [at * _FAR + piece for piece in places(token, one)]
    return found


def _crossed(
    tokens: Sequence[Token], where: dict[Token, list[int]], own: Statement, before: Sequence[Statement] = ()
) -> bool:
    """Whether a number or name stands in another piece than what the claim says of it, each with a rival beside it.

    "Jakarta is Indonesia's capital; Bangkok is Thailand's": Bangkok has Thailand, Indonesia has Jakarta.
    """
    rivals = {at * _FAR + one.piece: [] for at, sentence in enumerate((own, *before)) for one in sentence.tokens}  # type: dict[int, list[Token]]
    for at, sentence in enumerate((own, *before)):
        for one in sentence.tokens:
            if not any(_same(token, one) for token in tokens):
                rivals[at * _FAR + one.piece].append(one)
    where = _with_context(tokens, where, before)

    def rival(piece: int, token: Token) -> bool:
        return any(_alike(token, one) for one in rivals.get(piece, ()))

    def opposite(piece: int, slot: Token) -> bool:
        if slot.sort != "word":
            return rival(piece, slot)
        return any(one.key in OPPOSITES.get(slot.key, ()) for one in rivals.get(piece, ()))

    def apart(slot: Token, piece: int) -> bool:
        return any(
            found and piece not in found and all(opposite(other, slot) for other in found) and rival(piece, token)
            for token, found in where.items()
            if token is not slot
        )

    return any(
        where[slot] and all(apart(slot, piece) for piece in where[slot])
        for slot in tokens
        if _slot(slot) or slot.sort == "cjk"
    )


def _same(token: Token, other: Token) -> bool:
    if token.sort == "cjk":
        return other.sort == "cjk" and (other.key in token.key or token.key in other.key)
    return _meets(token, other)


def _alike(token: Token, other: Token) -> bool:
    """Whether one could stand in the other's place."""
    if token.quantity or token.date:
        if other.quantity and token.quantity:
            mine, theirs = token.quantity, other.quantity
            return (
                mine.nth == theirs.nth
                and mine.year == theirs.year
                and (mine.unit or ("",))[0] == (theirs.unit or ("",))[0]
            )
        return bool(other.date) or bool(other.quantity and other.quantity.year)
    if token.sort == "name":
        return other.sort == "name"
    if token.sort == "cjk":
        return other.sort == "cjk"
    return other.sort in ("word", "name") and other.key not in _LIGHT


def _turned(claim: Statement, own: Statement) -> bool:
    """Whether the claim has two names the other way round about the same verb or comparison, or from and to."""
    for low in (claim.low,):
        for prep, other in (("from", "to"), ("to", "from"), ("before", "after"), ("after", "before")):
            for match in re.finditer(rf"\b{prep} (?:the )?([a-z]\w+)", low):
                if re.search(rf"\b{other} (?:the )?{match[1]}\b", own.low) and not re.search(
                    rf"\b{prep} (?:the )?{match[1]}\b", own.low
                ):
                    return True
    mine = _acted(claim)
    return any((b, verb, a) in mine for a, verb, b in _acted(own))


def _acted(text: Statement) -> set[tuple[str, str, str]]:
    """Who does what to whom, by order alone: (name, verb, name), the passive turned round."""
    found = set()
    tokens = [one for one in text.tokens if one.sort in ("name", "word")]
    for at, verb in enumerate(tokens):
        if verb.sort != "word" or not 0 < at < len(tokens) - 1:
            continue
        gap = text.text[tokens[at - 1].start + len(tokens[at - 1].text) : verb.start].lower()
        if (
            re.search(r"\b(?:the|an?|its|his|her|their|of|in|for)\b|'s|’s", gap)
            or tokens[at - 1].sort != "name"
            or tokens[at - 1].text.endswith(("'s", "’s"))
        ):
            continue
        after = next((one for one in tokens[at + 1 : at + 3] if one.sort == "name"), None)
        if after is None:
            continue
        between = text.text[verb.start : after.start].lower()
        passive = re.search(r"\bby\b", between)
        first, second = tokens[at - 1].key, after.key
        found.add((second, verb.key, first) if passive else (first, verb.key, second))
    return found


def _swapped(tokens: Sequence[Token], own: Statement, missing: Sequence[Token]) -> bool:
    """Whether one missing word has just another word in its place, everything about it being equal."""
    mine, theirs = [one.key for one in tokens], [one.key for one in own.tokens if one.key not in _LIGHT]
    gone = {one.key for one in missing}
    for kind, a, b, c, d in SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes():
        if (
            kind == "replace"
            and b - a == d - c == 1
            and mine[a] in gone
            and a > 0
            and c > 0
            and (b < len(mine))
            and d < len(theirs)
        ):
            return True
    return False


def _one_slot(missing: Sequence[Token], tokens: Sequence[Token], own: Statement) -> bool:
    """Whether everything is held but the numbers, or but one name, and the passage has others in their place."""
    rest = [one for one in tokens if one not in missing]
    if not missing or not rest:
        return False
    rivals = [one for one in own.tokens if not any(_same(token, one) for token in tokens)]
    figures = [one for one in missing if one.quantity or one.date]
    others = [one for one in missing if one not in figures]
    if (
        figures
        and len(others) <= (1 - ALIKE) * (len(rest) + len(others))
        and not any(one.sort == "name" for one in others)
    ):
        return any(_differ(one, rival) for one in figures for rival in rivals)
    names = [one for one in missing if one.sort == "name"]
    run = len(names) == len(missing) and all(
        tokens.index(b) - tokens.index(a) == 1 for a, b in zip(names, names[1:], strict=False)
    )
    return run and len(rest) >= 2 and any(one.sort == "name" for one in rivals)


def _differ(token: Token, other: Token) -> bool:
    """Whether another number is one that could stand there, with this or with another unit."""
    if token.quantity and other.quantity:
        return token.quantity.nth == other.quantity.nth
    return bool(other.quantity or other.date)
