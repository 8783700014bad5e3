"""A table as questions are put to it: its columns, what orders them, and where each cell is written."""

import re
from dataclasses import dataclass, field

from hira.policies.offline.table.cells import DAYS, MONTHS, TOKEN, number, order_of, stem, stems
from hira.policies.offline.table.rows import Rows

_GENERIC = frozenset("name id no nr number title key code label".split())
_UNTOLD = frozenset("no not without except never none only other non".split())
_COUNTED_UP = 3


@dataclass
class Sheet:
    """The rows, and the words that name the table itself (`about`). Made once for all readings of a question."""

    rows: Rows
    about: str = ""
    columns: list[str] = field(init=False)
    orders: dict[str, str] = field(init=False)
    titled: frozenset[str] = field(init=False)
    written: dict[str, list[tuple[str, str, list[str]]]] = field(init=False)

    def __post_init__(self) -> None:
        self.columns = list(dict.fromkeys(key for row in self.rows for key in row))
        self.orders = {name: order_of(name, self.cells(name)) for name in self.columns}
        told = {one for one in stems(self.about) if not one[0].isdigit()}
        self.titled = frozenset(told - _UNTOLD - {*MONTHS, *DAYS})
        self.written = {}
        for name in self.columns:
            for cell in dict.fromkeys(self.cells(name)):
                if own := TOKEN.findall(cell):
                    self.written.setdefault(stem(own[0].replace(",", "")), []).append((name, cell, own))

    def cells(self, column: str) -> list[str]:
        return [row.get(column, "") for row in self.rows]

    def unique(self, column: str) -> bool:
        return len(set(self.cells(column))) == len(self.rows)

    def unread(self, column: str) -> bool:
        """Whether a column of numbers has cells that hold one and cannot be read as one: "12 or 14"."""
        cells = self.cells(column)
        return self.orders[column] == "number" and any(number(one) is None and re.search(r"\d", one) for one in cells)

    def counted_up(self, column: str) -> bool:
        """Whether the numbers of a column only count its rows: 1, 2, 3, … in any order, or in groups."""
        values = {number(cell) for cell in self.cells(column)}
        return max(_COUNTED_UP, len(self.rows) / 2) <= len(values) and values == set(range(1, len(values) + 1))

    @property
    def measures(self) -> list[str]:
        """The columns of numbers that are more than the number of a row."""
        return [name for name in self.columns if self.orders[name] == "number" and not self.counted_up(name)]

    def naming(self, column: str) -> bool:
        """Whether the cells of a column name the rows: its first, or one in which each is another."""
        return column == self.columns[0] or (self.orders[column] != "number" and self.unique(column))

    @property
    def nouns(self) -> frozenset[str]:
        """What a row is called: by its first column, and by the table's title where that column is called "name"."""
        first = self.columns[0]
        own, head = set(stems(first)), self.head
        named = self.orders[first] in ("", "number") and bool(own & _GENERIC or head in own or not self.measures)
        return frozenset(own - _GENERIC | ({head} - {""} if named else set()))

    @property
    def head(self) -> str:
        """The noun of the title: "ward" of "hospital_wards", "guest" of "Guests of the museum"."""
        words = stems(re.split(r"[,.:;(]|\b(?:of|by|in|at|on|from|for|used)\b", self.about)[0])
        return words[-1] if words else ""
