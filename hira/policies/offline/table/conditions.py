"""Which rows a question asks for: named cells, ranges, bounds and exclusions."""

from collections.abc import Callable

from hira.policies.offline.table.cells import rank, stem, stems
from hira.policies.offline.table.naming import end_of, meant_end
from hira.policies.offline.table.question import Condition, Reading

_NOT = (
    "without", "except for", "except", "excluding", "other than", "apart from", "not counting", "not including",
    "leaving out", "ignoring", "omitting", "but not", "not in", "not",
)  # fmt: skip
_BOUNDS = (
    ("more than", ">"), ("greater than", ">"), ("larger than", ">"), ("above", ">"), ("over", ">"), ("exceeding", ">"),
    ("less than", "<"), ("fewer than", "<"), ("smaller than", "<"), ("below", "<"), ("under", "<"),
    ("at least", ">="), ("at most", "<="), ("after", ">"), ("since", ">="), ("before", "<"), ("until", "<="),
    ("till", "<="), ("up to", "<="),
)  # fmt: skip
_SHORT_CELL = 3
_TIMES = frozenset({"after", "since", "before", "until", "till"})
_TO = ("to", "until", "till", "through", "up to")
_SIGNS: dict[str, tuple[Callable[[float, float], bool], str]] = {
    ">": (lambda value, bound: value > bound, "above"),
    "<": (lambda value, bound: value < bound, "below"),
    ">=": (lambda value, bound: value >= bound, "at least"),
    "<=": (lambda value, bound: value <= bound, "at most"),
}


def conditions(asking: Reading) -> bool:
    """Find every range, bound, exclusion and named cell. False if one is meant and cannot be made out."""
    at = 0
    while at < len(asking.tokens):
        if excluded := asking.says(_NOT, at):
            start = at + excluded.count(" ") + 1
            if (end := _selected(asking, start, excluding=True)) == start:
                return False
            asking.use(range(at, end))
        else:
            end = _condition(asking, at, excluding=False)
            if end < 0:
                return False
        at = max(end, at + 1)
    return True


def _selected(asking: Reading, at: int, *, excluding: bool) -> int:
    """Cells and ranges joined by commas, "and" and "or"; where they end."""
    end = at
    while (after := _condition(asking, asking.skip(end), excluding=excluding)) > asking.skip(end):
        asking.use(range(end, after))
        end = after
        if end < len(asking.tokens) and asking.tokens[end].lower() in ("and", "or", "nor"):
            following = asking.skip(end + 1)
            if _condition(asking, following, excluding=excluding, dry=True) <= following:
                break
            asking.used[end] = True
            end += 1
    return end


def _condition(asking: Reading, at: int, *, excluding: bool, dry: bool = False) -> int:
    """Read one condition at a place: where it ends, the place itself if there is none, -1 if it is unclear."""
    if at >= len(asking.tokens):
        return at
    for read in (_range, _bound, _cell):
        end, condition = read(asking, at)
        if end != at:
            if condition is not None and not dry:
                _keep(asking, condition, excluding=excluding)
                asking.use(range(at, end))
            return end if condition is not None else -1
    return at


def _keep(asking: Reading, one: Condition, *, excluding: bool) -> None:
    if excluding:
        holds = one.holds
        told = one.told.replace(" is ", " is not ", 1) if " is " in one.told else f"not {one.told}"
        one = Condition(one.column, lambda cell: not holds(cell), told, "all")
    asking.found.append(one)


def _range(asking: Reading, at: int) -> tuple[int, Condition | None]:
    """ "from A to B", "between A and B", "A to B"."""
    lead = asking.tokens[at].lower()
    first = asking.skip(at + 1) if lead in ("from", "between") else at
    joins = ("and",) if lead == "between" else _TO
    if not asking.ordinal(first) or not (joined := asking.says(joins, first + 1)):
        if lead == "from" and asking.ordinal(first) and asking.says(("on", "onward", "onwards"), first + 1):
            return _made(asking, first, first + 2, ">=", asking.order(first, at, first + 2))
        return (at + 1, None) if lead == "between" else (at, None)
    last = asking.skip(first + joined.count(" ") + 2)
    if not asking.ordinal(last):
        return last + 1, None
    column = asking.order(first, at, last + 1)
    low, high = asking.ranked(first, column), asking.ranked(last, column)
    if not column or low is None or high is None:
        return last + 1, None
    if low > high:
        return last + 1, None
    kind = asking.orders[column]
    asking.bounded = column if kind == "number" else asking.bounded

    def within(cell: str) -> bool:
        value = rank(cell, kind)
        return value is not None and low <= value <= high

    end = last + 1 + asking.named(column, last + 1)
    return end, Condition(column, within, f"{column} is from {asking.tokens[first]} to {asking.tokens[last]}")


def _bound(asking: Reading, at: int) -> tuple[int, Condition | None]:
    """ "more than 500 cars", "after 2019", "at least 3"."""
    word = asking.says([form for form, _ in _BOUNDS], at)
    if not word:
        return at, None
    if at and asking.tokens[at - 1].lower() == "or" and any(one.how == "all" for one in asking.found):
        return at + 1, None
    value = asking.skip(at + word.count(" ") + 1)
    if not asking.ordinal(value):
        return (at, None) if word == "over" else (at + 1, None)
    column = asking.order(value, at, value + 1, measured=word not in _TIMES)
    if not column and word not in _TIMES and asking.tokens[value][0].isdigit():
        column = _likely(asking)
    return _made(asking, value, value + 1, dict(_BOUNDS)[word], column)


def _made(asking: Reading, value: int, end: int, sign: str, column: str) -> tuple[int, Condition | None]:
    bound = asking.ranked(value, column)
    if not column or bound is None:
        return end, None
    compare, told = _SIGNS[sign]
    kind = asking.orders[column]
    limit = f"{bound:g}" if kind in ("number", "year") else asking.tokens[value]
    if kind != "number":
        told = {">": "after", "<": "before", ">=": "since", "<=": "until"}[sign]

    def beyond(cell: str) -> bool:
        held = rank(cell, kind)
        return held is not None and compare(held, bound)

    if kind == "number":
        asking.bounded = column
    end += asking.named(column, end)
    return end, Condition(column, beyond, f"{column} is {told} {limit}", "all")


def _cell(asking: Reading, at: int) -> tuple[int, Condition | None]:
    """The longest cell that stands at a place, as the question writes it."""
    matches: dict[str, tuple[int, str]] = {}
    for column, cell, own in asking.sheet.written.get(asking.stems[at], ()):
        size = _written(asking, cell, own, at)
        named = asking.named(column, at + size) or asking.before(column, at)
        if size > matches.get(column, (0, ""))[0] and (asking.orders[column] != "number" or named):
            matches[column] = (size, cell)
    if not matches:
        return at, None
    longest = max(size for size, _ in matches.values())
    matches = _at_end(asking, {column: one for column, one in matches.items() if one[0] == longest}, at)
    if len(matches) > 1:
        near = [column for column in matches if asking.named(column, at + longest) or asking.before(column, at)]
        matches = {column: matches[column] for column in near}
    if len(matches) != 1:
        return at + longest, None
    column, (size, cell) = next(iter(matches.items()))
    if meant_end(asking, at) == "goal" and not end_of(column) and asking.limited(column):
        return at + longest, None
    wanted = stems(cell)
    return at + size, Condition(column, lambda held: stems(held) == wanted, f"{column} is {cell}")


def _at_end(asking: Reading, matches: dict[str, tuple[int, str]], at: int) -> dict[str, tuple[int, str]]:
    """Without the columns of the other end of a way: "from Bern" is not where it goes."""
    side = meant_end(asking, at)
    before = [one for one in asking.found if end_of(one.column)]
    joined = asking.tokens[at - 1].lower() in ("and", "or", "nor") if at else False
    if not side and joined and before:
        side = end_of(before[-1].column)
    ends = {column: end_of(column) for column in matches}
    return {column: one for column, one in matches.items() if not side or ends[column] in ("", side)}


def _written(asking: Reading, cell: str, own: list[str], at: int) -> int:
    """How many tokens write this cell at a place, 0 if it does not stand there. "BE" is not "be"."""
    here = asking.tokens[at : at + len(own)]
    if len(here) < len(own) or any(asking.used[at : at + len(own)]):
        return 0
    if len(cell) <= _SHORT_CELL and cell.isupper():
        return len(own) if here == own else 0
    lowered = [[one.replace(",", "").lower() for one in tokens] for tokens in (here, own)]
    last = stem(lowered[0][-1]) == stem(lowered[1][-1])
    return len(own) if lowered[0][:-1] == lowered[1][:-1] and last else 0


def _likely(asking: Reading) -> str:
    """The one number column that the question names at all, else the only one there is."""
    numeric = [name for name in asking.columns if asking.orders[name] == "number"]
    named = [name for name in numeric if set(stems(name)) & set(asking.stems)] or numeric
    return named[0] if len(named) == 1 else ""
