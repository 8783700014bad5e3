"""A question over a table while it is taken apart: its words, which of them are used, and what was understood."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from hira.policies.offline.table.cells import TOKEN, rank, stem, stems
from hira.policies.offline.table.rows import Rows
from hira.policies.offline.table.sheet import Sheet

_NEAR = 2


@dataclass
class Condition:
    """What the cell in `column` has to be, and how that is told; conditions that `join` widen each other."""

    column: str
    holds: Callable[[str], bool]
    told: str
    how: str = "join"


@dataclass
class Reading:
    """A question being taken apart: its tokens, which of them are used, and what was understood so far.

    Many small steps on one state, since each step sees what those before it used; it lives for one question.
    """

    question: str
    sheet: Sheet
    tokens: list[str] = field(init=False)
    stems: list[str] = field(init=False)
    used: list[bool] = field(init=False)
    found: list[Condition] = field(default_factory=list)
    column: str = ""
    bounded: str = ""
    counted: str = ""

    def __post_init__(self) -> None:
        self.tokens = TOKEN.findall(self.question)
        self.stems = [stem(token.replace(",", "")) for token in self.tokens]
        self.used = [False] * len(self.tokens)

    @property
    def columns(self) -> list[str]:
        return self.sheet.columns

    @property
    def orders(self) -> dict[str, str]:
        return self.sheet.orders

    def left(self) -> set[str]:
        """The words that no step has used yet."""
        return {one for at, one in enumerate(self.stems) if not self.used[at]}

    def limited(self, column: str) -> bool:
        """Whether a condition is on this column."""
        return any(one.column == column for one in self.found)

    def use(self, span: range) -> None:
        for at in span:
            self.used[at] = True

    def span(self, start: int, end: int) -> range:
        places = [at for at, match in enumerate(TOKEN.finditer(self.question)) if start <= match.start() < end]
        return range(places[0], places[-1] + 1) if places else range(0)

    def says(self, phrases: Iterable[str], at: int) -> str:
        """The longest of the phrases that stands at a place."""
        fitting = [
            one
            for one in phrases
            if [token.lower() for token in self.tokens[at : at + one.count(" ") + 1]] == one.split()
        ]
        return max(fitting, key=len, default="")

    def named(self, column: str, at: int) -> int:
        """How many of the tokens from a place on name the column."""
        own, size = set(stems(column)), 0
        for end in range(at, len(self.stems)):
            if self.stems[end] in own:
                size = end + 1 - at
            elif not size or self.tokens[end].lower() != "of":
                break
        return size

    def before(self, column: str, at: int) -> bool:
        return any(one in stems(column) for one in self.stems[max(0, at - _NEAR) : at])

    def use_named(self, column: str) -> None:
        """Use the words of a column's name wherever they stand."""
        for at, one in enumerate(self.stems):
            self.used[at] |= one in stems(column)

    def skip(self, at: int) -> int:
        """Past words that only lead to a cell: "the", "in", "the month of"."""
        naming = {one for name in self.columns if self.orders[name] != "number" for one in stems(name)}
        while at < len(self.tokens) and (
            self.tokens[at].lower() in ("the", "in", "of", "for", "with") or self.stems[at] in naming
        ):
            at += 1
        return at

    def ordinal(self, at: int) -> bool:
        """Whether a number, a month or a day of the week stands at a place."""
        if at >= len(self.tokens):
            return False
        token = self.tokens[at]
        return token[0].isdigit() or any(rank(token, kind) is not None for kind in ("month", "day"))

    def ranked(self, at: int, column: str) -> float | None:
        return rank(self.tokens[at].replace(",", ""), self.orders[column]) if column else None

    def order(self, value: int, start: int, end: int, *, measured: bool = False) -> str:
        """The column that a value at a place is compared in: named beside it, or the only one of its kind.

        A year is looked for among years, unless it is `measured` ("more than 2000") or a column is named behind it.
        """
        token = self.tokens[value]
        kinds = [kind for kind in ("month", "day") if rank(token, kind) is not None] or ["number", "year"]
        fitting = [name for name in self.columns if self.orders[name] in kinds]
        most = max((self.named(name, end) for name in fitting), default=0)
        named = [name for name in fitting if most and self.named(name, end) == most]
        year = not measured and rank(token, "year") is not None and "year" in self.orders.values()
        if not named and not year:
            named = [name for name in fitting if self.before(name, start)]
        if not named:
            wanted = kinds[0] if kinds[0] != "number" else "year" if rank(token, "year") is not None else ""
            named = [name for name in fitting if self.orders[name] == wanted]
        return named[0] if len(named) == 1 else ""

    def kept(self) -> Rows:
        """The rows that meet all conditions; named cells and ranges of one column widen each other."""
        joined: dict[str, list[Condition]] = {}
        for one in self.found:
            if one.how == "join":
                joined.setdefault(one.column, []).append(one)
        every = [one for one in self.found if one.how == "all"]
        return [
            row
            for row in self.sheet.rows
            if all(one.holds(row.get(one.column, "")) for one in every)
            and all(any(one.holds(row.get(name, "")) for one in group) for name, group in joined.items())
        ]

    def where(self) -> str:
        joined: dict[str, list[str]] = {}
        for one in self.found:
            joined.setdefault(f"{one.column} is {one.how}", []).append(one.told)
        told = []
        for name, group in joined.items():
            column = name.rpartition(" is ")[0]
            joint = " or " if name.endswith("join") else " and "
            rest = [one.removeprefix(f"{column} is ") for one in group[1:]]
            told.append(joint.join([group[0], *rest]))
        return f" where {' and '.join(told)}" if told else ""
