"""Does with a column of a table what a question asks. Sent whole to the sandbox, so it needs the standard library only.

`rows` are dictionaries of text, one a row, keyed by column. Every word of a question has to be understood: as the
operation, a column, a condition, or a word that asks for nothing. With one word left over there is no answer, since a
figure over other rows than those meant looks just as computed.
"""

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

Row = dict[str, str]
Rows = list[Row]

OPERATIONS = (
    ("average", r"\b(?:average|mean)\b"),
    ("median", r"\bmedian\b"),
    ("total", r"\b(?:total|sum|altogether|together|combined)\b"),
    ("earliest", r"\b(?:oldest|earliest)\b"),
    ("latest", r"\b(?:youngest|newest|latest)\b"),
    (
        "highest",
        r"\b(?:max|maximum|highest|largest|biggest|(?<!\bat )most|longest|tallest|greatest|deepest|heaviest)\b",
    ),
    ("lowest", r"\b(?:min|minimum|lowest|smallest|(?<!\bat )least|fewest|shortest|cheapest|lightest)\b"),
    ("number", r"\b(?:how many|number of|count)\b"),
)
_SIZES = (
    ("tallest highest", "height elevation altitude"),
    ("longest shortest", "length duration"),
    ("largest biggest smallest", "area size population inhabitants"),
    ("deepest", "depth"),
    ("heaviest lightest", "weight mass"),
    ("cheapest", "price cost"),
)
_MONTHS = "january february march april may june july august september october november december".split()
_DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_UNITS = {"kilogram": "kg", "euro": "eur", "dollar": "usd", "metre": "m", "meter": "m", "kilometre": "km"}
_TOKEN = re.compile(r"\d[\d,]*\.\d+|\d+(?:,\d{3})*|[^\W\d_]+")
_POINT = rf"(\d{{4}}|{'|'.join(_MONTHS + _DAYS)})"
_DASH = re.compile(rf"(?<![\d-]){_POINT}\s*[-–—]\s*{_POINT}(?!-)", re.IGNORECASE)
_DATED = frozenset("year date built founded opened born died season jahr".split())
_FRAME = frozenset(
    "what which who how many much number is are was were be been the a an of in for to on at or and with do does did"
    " has have had come came there give tell show find compute calculate please me us value figure column row rows"
    " table file data sheet spreadsheet csv tsv xlsx from according list listed recorded entry entries line all"
    " whole entire overall it s sold bought made produced caught"
    " picked taken visited arrived counted measured registered".split()
)
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
_TIMES = frozenset({"after", "since", "before", "until", "till"})
_TO = ("to", "until", "till", "through", "up to")
_SIGNS: dict[str, tuple[Callable[[float, float], bool], str]] = {
    ">": (lambda value, bound: value > bound, "above"),
    "<": (lambda value, bound: value < bound, "below"),
    ">=": (lambda value, bound: value >= bound, "at least"),
    "<=": (lambda value, bound: value <= bound, "at most"),
}
_SUMS = frozenset({"total", "sum", "subtotal", "grand total", "all", "average", "mean"})
_NEAR = 2
_LAST_YEAR = 2100


def operation(question: str) -> str:
    """What is asked of a column: "total", "average", …; empty if nothing is, or two things at once are."""
    asked = {name for name, form in OPERATIONS if re.search(form, question.lower())}
    if asked == {"number", "total"}:
        return "number"
    others = asked - {"number"}
    return (others or asked).pop() if len(others) < 2 and asked else ""


def located(name: str, roots: Sequence[str]) -> Path:
    """The file of that name: as it is, one of the roots itself, or below one of them."""
    path = Path(name)
    below = [place for root in map(Path, roots) for place in (root / path, root.parent / path)]
    found = [place for place in (path, *below) if place.is_file()]
    return (found or [Path(root) for root in roots if Path(root).name == path.name] or [path])[0]


def from_file(path: Path) -> Rows:
    """The rows of a CSV or TSV file."""
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    head = text.partition("\n")[0]
    delimiter = max(",;\t|", key=head.count)
    rows = csv.DictReader(text.splitlines(keepends=True), delimiter=delimiter)
    return [{key.strip(): str(cell or "").strip() for key, cell in row.items() if key} for row in rows]


def from_lines(lines: Iterable[str]) -> Rows:
    """The rows in lines such as "City: Bern | Inhabitants: 134,000" or "| Bern | 134,000 |"; others are left out.

    The row of a sheet has its number before it ("row 2: City: Bern | …") and may hold formulas ("12 (=A1+1)").
    """
    rows: Rows = []
    header: list[str] = []
    for line in (re.sub(r"^row \d+: ", "", line.strip()) for line in lines):
        cells = [re.sub(r" \(=.*\)$", "", cell.strip()) for cell in line.strip("|").split("|")]
        named = [cell.split(": ", 1) for cell in cells if ": " in cell]
        if not line.startswith("|"):
            rows += [{name.strip(): cell.strip() for name, cell in named}] if len(named) > 1 else []
        elif not header:
            header = cells
        elif line.strip("|-: "):
            rows.append(dict(zip(header, cells, strict=False)))
    return rows


def number(cell: str) -> float | None:
    """The number a cell holds, with a unit or a currency around it or not."""
    match = re.fullmatch(r"\D{0,4}?(-?\d[\d,' ]*(?:\.\d+)?)\s*[^\d]{0,12}", cell.strip())
    return float(re.sub(r"[,' ]", "", match[1])) if match else None


def stem(word: str) -> str:
    """A word in lower case without a plural ending; a unit by its sign."""
    base = re.sub(r"ies$", "y", word.lower()).rstrip("s")
    return _UNITS.get(base, base)


def stems(text: str) -> list[str]:
    """The words and numbers of a text, without plural endings, in lower case."""
    return [stem(word.replace(",", "")) for word in _TOKEN.findall(text)]


def answer(question: str, rows: Rows, about: str = "") -> str:
    """One line: the figure, the column, the rows it was taken from. Empty if not all of the question is understood.

    `about` holds words that name the table itself.
    """
    rows = [row for row in rows if next(iter(row.values()), "").lower() not in _SUMS]
    asked = operation(question)
    if not asked or not rows:
        return ""
    reading = Reading(_DASH.sub(r"\1 to \2", question), rows, about)
    if not (reading.operate(asked) and reading.conditions() and reading.choose(asked) and reading.understood(asked)):
        return ""
    return reading.told(asked)


def order_of(name: str, cells: Sequence[str]) -> str:
    """What orders the cells of a column: "month", "day", "year", "number"; empty if nothing does.

    Numbers are years only where the column is named so, or goes through them one by one.
    """
    filled = [cell for cell in cells if cell]
    for kind in ("month", "day", "year", "number"):
        ranks = [value for cell in filled if (value := rank(cell, kind)) is not None]
        in_turn = len(set(ranks)) == len(ranks) and len({b - a for a, b in pairwise(ranks)}) == 1
        if len(ranks) * 2 > len(filled) and (kind != "year" or in_turn or _DATED & set(stems(name))):
            return kind
    return ""


def rank(cell: str, kind: str) -> float | None:
    """Where a cell stands in an order of that kind."""
    names = {"month": _MONTHS, "day": _DAYS}.get(kind)
    if names:
        word = cell.strip(" .").lower()
        short = [at for at, name in enumerate(names) if word == name or (len(word) > 2 and name.startswith(word))]
        return float(short[0]) if short else None
    value = number(cell)
    if kind == "year":
        return value if value is not None and re.fullmatch(r"[12]\d{3}", cell) and value <= _LAST_YEAR else None
    return value


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
    rows: Rows
    about: str
    tokens: list[str] = field(init=False)
    stems: list[str] = field(init=False)
    used: list[bool] = field(init=False)
    columns: list[str] = field(init=False)
    orders: dict[str, str] = field(init=False)
    found: list[Condition] = field(default_factory=list)
    column: str = ""
    bounded: str = ""

    def __post_init__(self) -> None:
        self.tokens = _TOKEN.findall(self.question)
        self.stems = [stem(token.replace(",", "")) for token in self.tokens]
        self.used = [False] * len(self.tokens)
        self.columns = list(dict.fromkeys(key for row in self.rows for key in row))
        self.orders = {name: order_of(name, [row.get(name, "") for row in self.rows]) for name in self.columns}

    def operate(self, asked: str) -> bool:
        """Use the words of the operation, where they are not those of a column's whole name."""
        for name, form in OPERATIONS:
            for match in re.finditer(form, self.question.lower()) if name in (asked, "number", "total") else ():
                self._use(self._span(match.start(), match.end()))
        return True

    def _span(self, start: int, end: int) -> range:
        places = [at for at, match in enumerate(_TOKEN.finditer(self.question)) if start <= match.start() < end]
        return range(places[0], places[-1] + 1) if places else range(0)

    def _use(self, span: range) -> None:
        for at in span:
            self.used[at] = True

    def _says(self, phrases: Iterable[str], at: int) -> str:
        """The longest of the phrases that stands at a place."""
        fitting = [
            one
            for one in phrases
            if [token.lower() for token in self.tokens[at : at + one.count(" ") + 1]] == one.split()
        ]
        return max(fitting, key=len, default="")

    def conditions(self) -> bool:
        """Find every range, bound, exclusion and named cell. False if one is meant and cannot be made out."""
        at = 0
        while at < len(self.tokens):
            if excluded := self._says(_NOT, at):
                start = at + excluded.count(" ") + 1
                if (end := self._selected(start, excluding=True)) == start:
                    return False
                self._use(range(at, end))
            else:
                end = self._condition(at, excluding=False)
                if end < 0:
                    return False
            at = max(end, at + 1)
        return True

    def _selected(self, at: int, *, excluding: bool) -> int:
        """Cells and ranges joined by commas, "and" and "or"; where they end."""
        end = at
        while (after := self._condition(self._skip(end), excluding=excluding)) > self._skip(end):
            self._use(range(end, after))
            end = after
            if end < len(self.tokens) and self.tokens[end].lower() in ("and", "or", "nor"):
                following = self._skip(end + 1)
                if self._condition(following, excluding=excluding, dry=True) <= following:
                    break
                self.used[end] = True
                end += 1
        return end

    def _skip(self, at: int) -> int:
        """Past words that only lead to a cell: "the", "in", "the month of"."""
        naming = {one for name in self.columns if self.orders[name] != "number" for one in stems(name)}
        while at < len(self.tokens) and (
            self.tokens[at].lower() in ("the", "in", "of", "for", "with") or self.stems[at] in naming
        ):
            at += 1
        return at

    def _condition(self, at: int, *, excluding: bool, dry: bool = False) -> int:
        """Read one condition at a place: where it ends, the place itself if there is none, -1 if it is unclear."""
        if at >= len(self.tokens):
            return at
        for read in (self._range, self._bound, self._cell):
            end, condition = read(at)
            if end != at:
                if condition is not None and not dry:
                    self._keep(condition, excluding=excluding)
                    self._use(range(at, end))
                return end if condition is not None else -1
        return at

    def _keep(self, one: Condition, *, excluding: bool) -> None:
        if excluding:
            holds = one.holds
            told = one.told.replace(" is ", " is not ", 1) if " is " in one.told else f"not {one.told}"
            one = Condition(one.column, lambda cell: not holds(cell), told, "all")
        self.found.append(one)

    def _range(self, at: int) -> tuple[int, Condition | None]:
        """ "from A to B", "between A and B", "A to B"."""
        lead = self.tokens[at].lower()
        first = self._skip(at + 1) if lead in ("from", "between") else at
        joins = ("and",) if lead == "between" else _TO
        if not self._ordinal(first) or not (joined := self._says(joins, first + 1)):
            if lead == "from" and self._ordinal(first) and self._says(("on", "onward", "onwards"), first + 1):
                return self._made(first, first + 2, ">=", self._order(first, at, first + 2))
            return (at + 1, None) if lead == "between" else (at, None)
        last = self._skip(first + joined.count(" ") + 2)
        if not self._ordinal(last):
            return last + 1, None
        column = self._order(first, at, last + 1)
        low, high = self._rank(first, column), self._rank(last, column)
        if not column or low is None or high is None:
            return last + 1, None
        if low > high:
            return last + 1, None
        kind = self.orders[column]
        self.bounded = column if kind == "number" else self.bounded

        def within(cell: str) -> bool:
            value = rank(cell, kind)
            return value is not None and low <= value <= high

        end = last + 1 + self._named(column, last + 1)
        return end, Condition(column, within, f"{column} is from {self.tokens[first]} to {self.tokens[last]}")

    def _bound(self, at: int) -> tuple[int, Condition | None]:
        """ "more than 500 cars", "after 2019", "at least 3"."""
        word = self._says([form for form, _ in _BOUNDS], at)
        if not word:
            return at, None
        if at and self.tokens[at - 1].lower() == "or" and any(one.how == "all" for one in self.found):
            return at + 1, None
        value = self._skip(at + word.count(" ") + 1)
        if not self._ordinal(value):
            return at + 1, None
        column = self._order(value, at, value + 1, measured=word not in _TIMES)
        if not column and word not in _TIMES and self.tokens[value][0].isdigit():
            column = self._likely()
        return self._made(value, value + 1, dict(_BOUNDS)[word], column)

    def _made(self, value: int, end: int, sign: str, column: str) -> tuple[int, Condition | None]:
        bound = self._rank(value, column)
        if not column or bound is None:
            return end, None
        compare, told = _SIGNS[sign]
        kind = self.orders[column]
        limit = f"{bound:g}" if kind in ("number", "year") else self.tokens[value]
        if kind != "number":
            told = {">": "after", "<": "before", ">=": "since", "<=": "until"}[sign]

        def beyond(cell: str) -> bool:
            held = rank(cell, kind)
            return held is not None and compare(held, bound)

        if kind == "number":
            self.bounded = column
        end += self._named(column, end)
        return end, Condition(column, beyond, f"{column} is {told} {limit}", "all")

    def _cell(self, at: int) -> tuple[int, Condition | None]:
        """The longest cell that stands at a place, as the question writes it."""
        matches: dict[str, tuple[int, str]] = {}
        for column in self.columns:
            for cell in {row.get(column, "") for row in self.rows}:
                size = self._written(cell, at)
                named = self._named(column, at + size) or self._before(column, at)
                if size > matches.get(column, (0, ""))[0] and (self.orders[column] != "number" or named):
                    matches[column] = (size, cell)
        longest = max((size for size, _ in matches.values()), default=0)
        matches = {column: one for column, one in matches.items() if one[0] == longest}
        if len(matches) > 1:
            near = [column for column in matches if self._named(column, at + longest) or self._before(column, at)]
            matches = {column: matches[column] for column in near}
            if len(matches) != 1:
                return at + longest, None
        if not matches:
            return at, None
        column, (size, cell) = next(iter(matches.items()))
        wanted = cell.lower()
        return at + size, Condition(column, lambda held: held.lower() == wanted, f"{column} is {cell}")

    def _written(self, cell: str, at: int) -> int:
        """How many tokens write this cell at a place, 0 if it does not stand there. "BE" is not "be"."""
        own = _TOKEN.findall(cell)
        here = self.tokens[at : at + len(own)]
        if not own or len(here) < len(own) or any(self.used[at : at + len(own)]):
            return 0
        if len(cell) <= 3 and cell.isupper():
            return len(own) if here == own else 0
        return (
            len(own)
            if [one.replace(",", "").lower() for one in here] == [one.replace(",", "").lower() for one in own]
            else 0
        )

    def _ordinal(self, at: int) -> bool:
        """Whether a number, a month or a day of the week stands at a place."""
        if at >= len(self.tokens):
            return False
        token = self.tokens[at]
        return token[0].isdigit() or any(rank(token, kind) is not None for kind in ("month", "day"))

    def _rank(self, at: int, column: str) -> float | None:
        return rank(self.tokens[at].replace(",", ""), self.orders[column]) if column else None

    def _order(self, value: int, start: int, end: int, *, measured: bool = False) -> str:
        """The column that a value at a place is compared in: named beside it, or the only one of its kind.

        A year is looked for among years, unless it is `measured` ("more than 2000") or a column is named behind it.
        """
        token = self.tokens[value]
        kinds = [kind for kind in ("month", "day") if rank(token, kind) is not None] or ["number", "year"]
        fitting = [name for name in self.columns if self.orders[name] in kinds]
        most = max((self._named(name, end) for name in fitting), default=0)
        named = [name for name in fitting if most and self._named(name, end) == most]
        year = not measured and rank(token, "year") is not None and "year" in self.orders.values()
        if not named and not year:
            named = [name for name in fitting if self._before(name, start)]
        if not named:
            wanted = kinds[0] if kinds[0] != "number" else "year" if rank(token, "year") is not None else ""
            named = [name for name in fitting if self.orders[name] == wanted]
        return named[0] if len(named) == 1 else ""

    def _likely(self) -> str:
        """The one number column that the question names at all, else the only one there is."""
        numeric = [name for name in self.columns if self.orders[name] == "number"]
        named = [name for name in numeric if set(stems(name)) & set(self.stems)] or numeric
        return named[0] if len(named) == 1 else ""

    def _named(self, column: str, at: int) -> int:
        """How many of the tokens from a place on name the column."""
        own, size = set(stems(column)), 0
        for end in range(at, len(self.stems)):
            if self.stems[end] in own:
                size = end + 1 - at
            elif not size or self.tokens[end].lower() != "of":
                break
        return size

    def _before(self, column: str, at: int) -> bool:
        return any(one in stems(column) for one in self.stems[max(0, at - _NEAR) : at])

    def choose(self, asked: str) -> bool:
        """The column that is meant. False if two may be, or if there has to be one and there is none."""
        numeric = [name for name in self.columns if self.orders[name] == "number"]
        years = [name for name in self.columns if self.orders[name] == "year"]
        if asked in ("earliest", "latest"):
            self.column = years[0] if len(years) == 1 else ""
            return bool(self.column)
        if asked == "number" and self._counted():
            self._use_named(self.bounded)
            return True
        named = self._meant(numeric) or (self._meant(years) if asked in ("highest", "lowest") else [])
        if not named and asked in ("highest", "lowest"):
            named = self._sized(numeric)
        if not named and self.bounded:
            named = [self.bounded]
        if len(named) > 1:
            return False
        self.column = named[0] if named else ""
        self._use_named(self.column)
        return bool(self.column)

    def _use_named(self, column: str) -> None:
        """Use the words of a column's name wherever they stand."""
        for at, one in enumerate(self.stems):
            self.used[at] |= one in stems(column)

    def _meant(self, names: Sequence[str]) -> list[str]:
        """The columns whose names the unused words hold most of."""
        left = {one for at, one in enumerate(self.stems) if not self.used[at]}
        shares = {name: len(left & set(stems(name))) / len(set(stems(name))) for name in names if stems(name)}
        most = max(shares.values(), default=0.0)
        return [name for name, share in shares.items() if share == most] if most else []

    def _sized(self, numeric: Sequence[str]) -> list[str]:
        """The columns that hold what an adjective measures: the height for "tallest"."""
        words = set(self.question.lower().split())
        hints = {stem(hint) for forms, own in _SIZES if words & set(forms.split()) for hint in own.split()}
        return [name for name in numeric if hints & set(stems(name))]

    def _counted(self) -> str:
        """What is counted: a column of words, or "rows"; empty if it is neither."""
        match = re.search(r"\b(?:how many|number of)\s+(?:different\s+)?([^\W\d_]+)", self.question.lower())
        noun = stem(match[1]) if match else ""
        column = next((name for name in self.columns if self.orders[name] != "number" and noun in stems(name)), "")
        general = noun in {"row", "entry", "line", "record"} or (noun and noun in stems(self.about))
        return column or ("rows" if general else "")

    def understood(self, asked: str) -> bool:
        """Whether no word is left over. A figure "per" something is one a row already, or not to be had."""
        known = {*_FRAME, *stems(self.about), *({"different"} if asked == "number" else ())}
        known |= {one for name in self.columns if self.orders[name] != "number" for one in stems(name)}
        for at, (token, one) in enumerate(zip(self.tokens, self.stems, strict=True)):
            if token.lower() in ("per", "each", "every", "by"):
                single = [name for name in self.columns if self._named(name, at + 1) and self._unique(name)]
                if not single or asked not in ("average", "median", "highest", "lowest"):
                    return False
            elif not (self.used[at] or token.lower() in known or one in known):
                return False
        return True

    def _unique(self, column: str) -> bool:
        return len({row.get(column, "") for row in self.rows}) == len(self.rows)

    def kept(self) -> Rows:
        """The rows that meet all conditions; named cells and ranges of one column widen each other."""
        joined: dict[str, list[Condition]] = {}
        for one in self.found:
            if one.how == "join":
                joined.setdefault(one.column, []).append(one)
        every = [one for one in self.found if one.how == "all"]
        return [
            row
            for row in self.rows
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

    def told(self, asked: str) -> str:
        """The answer in one line, empty if no row is left."""
        kept, where, column = self.kept(), self.where(), self.column
        if not column:
            return self._count(kept, where)
        held = [(value, row) for row in kept if (value := number(row.get(column, ""))) is not None]
        if not held:
            return ""
        if asked in ("highest", "lowest", "earliest", "latest"):
            top = (max if asked in ("highest", "latest") else min)(value for value, _ in held)
            best = [row for value, row in held if value == top]
            about = "; ".join(
                ", ".join(f"{name} {cell}" for name, cell in row.items() if name != column and cell) for row in best
            )
            return f"{asked} {column}{where} = {top:.10g} ({about})"
        figure = aggregated(asked, [value for value, _ in held])
        if asked == "number" and len(held) == 1:
            return f"{column}{where} = {figure:.10g} (1 row)"
        return f"{'total' if asked == 'number' else asked} of {column}{where} = {figure:.10g} ({len(held)} rows)"

    def _count(self, kept: Rows, where: str) -> str:
        counted = self._counted()
        cells = {row.get(counted, "") for row in kept} - {""} if counted != "rows" else set()
        if counted != "rows" and len(cells) != len(kept):
            return f"number of different {counted}{where} = {len(cells)} (in {len(kept)} rows)"
        return f"number of rows{where} = {len(kept)} (of {len(self.rows)} rows)"


def aggregated(asked: str, values: list[float]) -> float:
    ordered, middle = sorted(values), len(values) // 2
    if asked == "average":
        return sum(values) / len(values)
    if asked == "median":
        return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return sum(values)
