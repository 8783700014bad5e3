"""Words of a question that only lead somewhere: to the table by its name, to where a way begins or ends."""

from itertools import pairwise

from hira.policies.offline.table.cells import TOKEN, stem, stems
from hira.policies.offline.table.question import Reading

_TABLES = frozenset("table list file csv tsv sheet spreadsheet data dataset overview".split())
_ARTICLES = frozenset("the this that these my our your a".split())
_LEADING = frozenset("by in from of on per using according to based see into at".split())
_BEHIND = frozenset("of for about on with".split())
_SIDES = {
    "origin": frozenset(stems("from start origin departure depart source begin")),
    "goal": frozenset(stems("to destination end arrival arrive target")),
}
_VERBS = {
    "origin": frozenset(
        stems("start begin leave depart set send sent originate starting beginning leaving departing began left")
    ),
    "goal": frozenset(stems("end arrive finish terminate reach ending arriving reaching bound lead leading")),
}
_ON_THE_WAY = frozenset(stems("go run lead sail drive travel fly come going running sailing driving connect"))
_BEFORE = {"from": "origin", "to": "goal", "towards": "goal", "toward": "goal", "into": "goal", "for": ""}
_FAR = 3


def named(asking: Reading) -> None:
    """Use the words that name the table: "by the table of the harvest", "in the libraries table"."""
    own = asking.sheet.titled | {one for column in asking.columns for one in stems(column)}
    words = [token.lower() for token in asking.tokens]
    pairs = _pairs_of(asking)
    for at, word in enumerate(words):
        if tuple(asking.stems[at : at + 2]) in pairs:
            asking.use(range(at, at + 2))
        if word in _TABLES:
            start, end = _names_before(asking, words, at), _names_behind(asking, words, at, own)
            asking.use(range(start, end))
        elif word == "by":
            first = at + 2 if words[at + 1 : at + 2] and words[at + 1] in _ARTICLES else at + 1
            end = first
            while end < len(words) and asking.stems[end] in asking.sheet.titled:
                end += 1
            last = end == len(words) or _comma(asking, end)
            asking.use(range(at, end) if end > first and last else range(0))


def _pairs_of(asking: Reading) -> set[tuple[str, str]]:
    """Two words of the title that stand together there and name no column: "bike stations"."""
    columns = [set(stems(name)) for name in asking.sheet.measures]
    plain = asking.sheet.titled - _LEADING - _BEHIND - _ARTICLES - {"to", "and"}
    pairs = set(pairwise(stems(asking.sheet.about)))
    return {pair for pair in pairs if set(pair) <= plain and not any(set(pair) <= own for own in columns)}


def _names_before(asking: Reading, words: list[str], at: int) -> int:
    """Where the name of the table begins that ends in "table": "according to the harvest" and the like included."""
    start = at
    while start and asking.stems[start - 1] in asking.sheet.titled:
        start -= 1
    if start and words[start - 1] in _ARTICLES:
        start -= 1
    while start and words[start - 1] in _LEADING:
        start -= 1
    return start


def _names_behind(asking: Reading, words: list[str], at: int, own: set[str] | frozenset[str]) -> int:
    """Where the name of the table ends: "table of the harvest"."""
    if words[at + 1 : at + 2] and words[at + 1] in _BEHIND:
        first = at + 2
        while first < len(words) and words[first] in (*_ARTICLES, "all"):
            first += 1
        end = first
        while end < len(words) and asking.stems[end] in own and not words[end].isdigit():
            end += 1
        if end > first:
            return end
    return at + 1


def _comma(asking: Reading, at: int) -> bool:
    """Whether a comma or the end stands before the token at a place."""
    places = list(TOKEN.finditer(asking.question))
    return "," in asking.question[places[at - 1].end() : places[at].start()]


def end_of(column: str) -> str:
    """Whether a column tells where a way begins ("origin") or ends ("goal"), or neither."""
    own = set(stems(column))
    return next((side for side, words in _SIDES.items() if own & words), "")


def meant_end(asking: Reading, at: int) -> str:
    """Which end of a way a place is that stands there, by the preposition and the verb before it."""
    before = [word.lower() for word in asking.tokens[max(0, at - _FAR) : at]]
    while before and before[-1] in ("the", "both", "either"):
        before.pop()
    if before and before[-1] in _BEFORE:
        return _BEFORE[before[-1]]
    if before and before[-1] in ("in", "at"):
        before.pop()
    return next((side for side, verbs in _VERBS.items() if before and stem(before[-1]) in verbs), "")


def gone(asking: Reading) -> None:
    """Use verbs of going where a row tells its ends: "start in" with an origin, "run" with either.

    What a row tells is told of where it begins, unless its goal is named.
    """
    ends = {end_of(one.column) for one in asking.found}
    if any(end_of(one) == "origin" for one in asking.columns) and "goal" not in {end_of(asking.column), *ends} - {""}:
        _use(asking, _VERBS["origin"])
    if "goal" in {end_of(asking.column), *ends}:
        _use(asking, _VERBS["goal"] | (_VERBS["origin"] if "origin" in ends else frozenset()))
    if ends - {""}:
        _use(asking, _ON_THE_WAY)


def _use(asking: Reading, verbs: frozenset[str]) -> None:
    for at, one in enumerate(asking.stems):
        asking.used[at] |= one in verbs
