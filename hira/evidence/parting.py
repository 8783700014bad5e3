"""Where a passage that has a claim's words says something else: denied, opposite, of another, the other way round."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from hira.evidence.meeting import degree, light, meets, places, slot
from hira.evidence.statement import Statement, Token
from hira.evidence.wording import CJK_OPPOSITES, OPPOSITES, root

Where = dict[Token, list[int]]
_FAR = 1000
_OF = re.compile(r"\b(?:the|an?|its|his|her|their|of|in|for)\b|'s|’s", re.IGNORECASE)
_ASKS = re.compile(r"(?:is|are|was|were|do|does|did|has|have|had|can|could|may|will|would)\b", re.IGNORECASE)
_RELATIONS = re.compile(
    r"位于|击败|打败|战胜|高于|低于|大于|小于|早于|晚于|多于|少于|流入|流经|属于|发现|发明|收购|超过|领导|教|派|娶|嫁|杀|写|比"
)
_STOP = re.compile(r"[;:,.]")
_IS = re.compile(r"\b(?:is|are|was|were|be|been|being)\b", re.IGNORECASE)
_BY = re.compile(r"\bby\s+(?:(?:the|an?)\s+)?$", re.IGNORECASE)
_TURNED = {"from": "to", "to": "from", "before": "after", "after": "before", "until": "since", "since": "until"}
_PREPOSITION = re.compile(r"\b(from|to|before|after|until|since)\s+(?:the\s+)?[$€£¥]?$", re.IGNORECASE)


def denied(claim: Statement, tokens: Sequence[Token], own: Statement) -> bool:
    """Whether one of the two denies what the other says."""
    touched = any(meets(token, one) for one in own.denied for token in tokens)
    return claim.denies != touched


def opposed(claim: Statement, own: Statement, used: set[int]) -> int:
    """How many words of the claim the passage has the opposite of, and not the word."""
    near = {_sense(one) for one in own.tokens if one.piece in used}
    missing = [one for one in claim.tokens if not places(one, own)]
    found = sum(bool(OPPOSITES.get(_sense(one), frozenset()) & near) for one in missing)
    said = claim.text
    return found + sum(
        any(a in said and a not in own.text and b in own.text for a, b in (pair, pair[::-1])) for pair in CJK_OPPOSITES
    )


def _sense(token: Token) -> str:
    """What a token is looked up by among the opposites; an ordinal of one is "first"."""
    if token.quantity:
        return "first" if token.quantity.nth and token.quantity.readings == (1.0,) else ""
    return root(token.key) if token.sort == "name" else token.key


def crossed(tokens: Sequence[Token], where: Where, own: Statement, before: Sequence[Statement] = ()) -> bool:
    """Whether a number or name stands in another piece than what the claim says of it, each with a rival beside it.

    "Jakarta is Indonesia's capital; Bangkok is Thailand's": Bangkok has Thailand, Indonesia has Jakarta. Looked at
    in clauses and in the pieces between their commas, for the whole claim and for each of its pieces.
    """
    parts = {one.piece for one in tokens}
    groups = [tokens, *([one for one in tokens if one.piece == part] for part in parts if len(parts) > 1)]
    return any(
        _crossed(group, where, own, before, by) for group in groups if len(group) > 1 for by in (_piece, _clause)
    )


def _piece(token: Token) -> int:
    return token.piece


def _clause(token: Token) -> int:
    return token.clause


def _crossed(
    tokens: Sequence[Token], where: Where, own: Statement, before: Sequence[Statement], by: Callable[[Token], int]
) -> bool:
    rivals: dict[int, list[Token]] = {}
    for at, sentence in enumerate((own, *before)):
        for one in _strangers(tokens, sentence):
            rivals.setdefault(at * _FAR + by(one), []).append(one)
    held = _where(tokens, where, own, before, by)

    def taken(piece: int, token: Token) -> bool:
        return any(rival(token, one) for one in rivals.get(piece, ()))

    def beside(piece: int, token: Token) -> bool:
        return any(_instead(token, one) for one in rivals.get(piece, ()))

    def apart(of: Token, piece: int) -> bool:
        return any(
            found and piece not in found and all(taken(other, of) for other in found) and beside(piece, token)
            for token, found in held.items()
            if token is not of
        )

    return any(held[of] and all(apart(of, piece) for piece in held[of]) for of in tokens if slot(of))


def _strangers(tokens: Sequence[Token], sentence: Statement) -> list[Token]:
    """The tokens of a sentence that the claim does not have; a given name belongs to the family name behind it."""
    mine = [[one for one in run if one in tokens] for run in runs_of(tokens)]
    known = [
        one
        for run in _runs(sentence)
        if len(run) > 1 and any(_meet(own, run) and _within(own, run) for own in mine if own)
        for one in run
    ]
    return [one for one in sentence.tokens if one not in known and not any(meets(token, one) for token in tokens)]


def _within(some: Sequence[Token], others: Sequence[Token]) -> bool:
    """Whether all of one name stands in another."""
    return all(any(meets(one, other) for other in others) for one in some)


def runs_of(tokens: Sequence[Token]) -> list[list[Token]]:
    """Names of a claim that stand together, by what lies between them."""
    found: list[list[Token]] = []
    for one in tokens:
        last = found[-1][-1] if found else None
        if last and last.sort == one.sort == "name" and one.start - last.start - len(last.text) <= 1:
            found[-1].append(one)
        else:
            found.append([one])
    return found


def _where(
    tokens: Sequence[Token], where: Where, own: Statement, before: Sequence[Statement], by: Callable[[Token], int]
) -> Where:
    """The places of tokens, those of the sentences before too; what their verbs are said of is handed on for free."""
    found: Where = {}
    lent = frozenset().union(*(one.opening for one in before))
    for token in tokens:
        found[token] = where[token]
        if by is _clause and token.sort != "cjk":
            found[token] = (
                list(dict.fromkeys(one.clause for one in own.tokens if meets(token, one))) or where[token][:1]
            )
        for at, one in enumerate(before, 1):
            if not found[token] and token.key not in lent:
                found[token] = [at * _FAR + by(other) for other in one.tokens if meets(token, other)]
    return found


def miscounted(claim: Statement, own: Statement) -> bool:
    """Whether a number of the claim counts what another counts in the passage, and counts something else there."""
    mine, theirs = _counts(claim), _counts(own)
    return any(
        any(meets(word, other) and not meets(number, told) for told, other in theirs)
        and not any(meets(word, other) and meets(number, told) for told, other in theirs)
        and any(meets(number, told) for told, _ in theirs)
        for number, word in mine
    )


def _counts(text: Statement) -> list[tuple[Token, Token]]:
    """Each number with the word right behind it."""
    return [
        (one, other)
        for one, other in pairwise(text.tokens)
        if one.quantity
        and not one.quantity.year
        and other.sort == "word"
        and text.text[one.quantity.end : other.start] == " "
    ]


def rival(token: Token, other: Token) -> bool:
    """Whether another token could stand in the place of this number, name, direction or degree."""
    if token.quantity and other.quantity:
        mine, theirs = token.quantity, other.quantity
        unit = (mine.unit or ("",))[0] == (theirs.unit or ("",))[0]
        return mine.nth == theirs.nth and mine.year == theirs.year and unit
    if token.quantity or token.date:
        return bool(other.date) or bool(token.date and other.quantity and other.quantity.year)
    if token.sort in ("name", "cjk"):
        return other.sort == token.sort
    return (degree(token) and degree(other)) or other.key in OPPOSITES.get(token.key, ())


def _instead(token: Token, other: Token) -> bool:
    """The same for any token: a word has any other word for a rival."""
    if token.sort == "word" or token.lead:
        return other.sort in ("word", "name") and not light(other)
    return rival(token, other)


def turned(claim: Statement, own: Statement) -> bool:
    """Whether the claim has two things the other way round about the same verb or comparison, or from and to."""
    mine = _placed(claim)
    theirs = _placed(own)
    if any(
        _TURNED[word] == other
        and meets(token, one)
        and not any(word == third and meets(token, two) for third, two in theirs)
        for word, token in mine
        for other, one in theirs
    ):
        return True
    if _ASKS.match(claim.text):
        return False
    if _cjk_turned(claim.text, own.text):
        return True
    return any(
        meets(verb, other) and not _meet(who, their_who) and (_meet(who, their_whom) or _meet(whom, their_who))
        for who, verb, whom in _acted(claim)
        for their_who, other, their_whom in _acted(own)
    )


def _cjk_turned(claim: str, own: str) -> bool:
    """Whether the two sides of a relation in a Chinese claim stand the other way round in the passage."""
    for match in _RELATIONS.finditer(claim):
        at = own.find(match[0])
        if at < 0:
            continue
        left, right = claim[: match.start()], claim[match.end() :]
        before, behind = own[:at], own[at + len(match[0]) :]
        if not _share(left, before) and _share(left, behind) and (_share(right, before)):
            return True
    return False


def _share(one: str, other: str) -> bool:
    """Whether two signs in a row stand in both."""
    return any(one[at : at + 2] in other for at in range(len(one) - 1))


def _meet(some: Sequence[Token], others: Sequence[Token]) -> bool:
    return any(meets(one, other) for one in some for other in others)


def _placed(text: Statement) -> list[tuple[str, Token]]:
    """What stands right behind "from", "to", "before" and the like."""
    found = [(_PREPOSITION.search(text.text[: one.start]), one) for one in text.tokens]
    return [(match[1].lower(), one) for match, one in found if match]


def _acted(text: Statement) -> list[tuple[list[Token], Token, list[Token]]]:
    """Who does what to whom, by order alone, the passive turned round: what stands right before a verb and behind it.

    A noun with an article or an owner before it is no verb.
    """
    found: list[tuple[list[Token], Token, list[Token]]] = []
    runs = _runs(text)
    for at, (before, (verb, *more)) in enumerate(pairwise(runs)):
        gap = _between(text.text, before[-1], verb)
        if (
            more
            or verb.sort != "word"
            or degree(before[-1])
            or _OF.search(gap)
            or before[-1].text.endswith(("'s", "’s"))
        ):
            continue
        behind = runs[at + 2] if at + 2 < len(runs) else []
        joined = _between(text.text, verb, behind[0]) if behind else ""
        first = [] if _STOP.search(gap) else before
        if _IS.search(gap) and "than" not in joined:
            agent = next((run for run in runs[at + 2 :] if _BY.search(text.text[: run[0].start])), [])
            found.append((agent, verb, first))
        else:
            found.append((first, verb, [] if _STOP.search(joined) else behind))
    return found


def _runs(text: Statement) -> list[list[Token]]:
    """The words of a statement one by one, names that stand together as one."""
    found: list[list[Token]] = []
    for one in text.tokens:
        if one.sort not in ("name", "word") or light(one):
            continue
        last = found[-1][-1] if found else None
        if last and last.sort == one.sort == "name" and not _between(text.text, last, one).strip():
            found[-1].append(one)
        else:
            found.append([one])
    return found


def swapped(claim: Statement, own: Statement, missing: Sequence[Token]) -> bool:
    """Whether a missing word has another in its place: before or behind the same word, joined in the same way."""
    return any(
        one in missing and _other(text, claim, own, one, step)
        for text in (claim.text,)
        for step in (1, -1)
        for one in claim.tokens
    )


def _other(text: str, claim: Statement, own: Statement, gone: Token, step: int) -> bool:
    at = claim.tokens.index(gone) + step
    if not 0 <= at < len(claim.tokens):
        return False
    joined = _between(text, gone, claim.tokens[at])
    for place, one in enumerate(own.tokens):
        if meets(claim.tokens[at], one) and 0 <= (beside := place - step) < len(own.tokens):
            other = own.tokens[beside]
            new = not any(meets(token, other) for token in claim.tokens) and not light(other)
            if new and other.sort in ("word", "name") and _between(own.text, other, one) == joined:
                return True
    return False


def _between(text: str, one: Token, other: Token) -> str:
    first, second = sorted((one, other), key=lambda token: token.start)
    return text[first.start + len(first.text) : second.start].lower()
