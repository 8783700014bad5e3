"""The figure that a question asks for over the rows of a table, and how the question was read.

Every word of a question has to be understood: as the operation, a column, a condition, or a word that asks for nothing.
With one word left over there is no answer, since a figure over other rows than those meant looks just as computed.
"""

import re

from hira.policies.offline.table.cells import DAYS, MONTHS, number, stems
from hira.policies.offline.table.columns import choose, counted
from hira.policies.offline.table.conditions import conditions
from hira.policies.offline.table.operations import OPERATIONS, aggregated, operation
from hira.policies.offline.table.question import Condition, Reading
from hira.policies.offline.table.rows import Rows

_POINT = rf"(\d{{4}}|{'|'.join(MONTHS + DAYS)})"
_DASH = re.compile(rf"(?<![\d-]){_POINT}\s*[-–—]\s*{_POINT}(?!-)", re.IGNORECASE)
_FRAME = frozenset(
    "what which who how many much number is are was were be been the a an of in for to on at or and with do does did"
    " has have had come came there give tell show find compute calculate please me us value figure column row rows"
    " table file data sheet spreadsheet csv tsv xlsx from according list listed recorded entry entries line all"
    " whole entire overall it s sold bought made produced caught"
    " picked taken visited arrived counted measured registered".split()
)
_SUMS = frozenset({"total", "sum", "subtotal", "grand total", "all", "average", "mean"})


def answer(question: str, rows: Rows, about: str = "") -> str:
    """One line: the figure, the column, the rows it was taken from. Empty if not all of the question is understood.

    `about` holds words that name the table itself.
    """
    rows = [row for row in rows if next(iter(row.values()), "").lower() not in _SUMS]
    asked = operation(question)
    if not asked or not rows:
        return ""
    asking = Reading(_DASH.sub(r"\1 to \2", question), rows, about)
    if not (operate(asking, asked) and conditions(asking) and choose(asking, asked) and understood(asking, asked)):
        return ""
    return _told(asking, asked)


def operate(asking: Reading, asked: str) -> bool:
    """Use the words of the operation, where they are not those of a column's whole name."""
    for name, form in OPERATIONS:
        for match in re.finditer(form, asking.question.lower()) if name in (asked, "number", "total") else ():
            asking.use(asking.span(match.start(), match.end()))
    return True


def understood(asking: Reading, asked: str) -> bool:
    """Whether no word is left over. A figure "per" something is one a row already, or not to be had."""
    known = {*_FRAME, *stems(asking.about), *({"different"} if asked == "number" else ())}
    known |= {one for name in asking.columns if asking.orders[name] != "number" for one in stems(name)}
    for at, (token, one) in enumerate(zip(asking.tokens, asking.stems, strict=True)):
        if token.lower() in ("per", "each", "every", "by"):
            single = [name for name in asking.columns if asking.named(name, at + 1) and asking.unique(name)]
            if not single or asked not in ("average", "median", "highest", "lowest"):
                return False
        elif not (asking.used[at] or token.lower() in known or one in known):
            return False
    return True


def _kept(asking: Reading) -> Rows:
    """The rows that meet all conditions; named cells and ranges of one column widen each other."""
    joined: dict[str, list[Condition]] = {}
    for one in asking.found:
        if one.how == "join":
            joined.setdefault(one.column, []).append(one)
    every = [one for one in asking.found if one.how == "all"]
    return [
        row
        for row in asking.rows
        if all(one.holds(row.get(one.column, "")) for one in every)
        and all(any(one.holds(row.get(name, "")) for one in group) for name, group in joined.items())
    ]


def _where(asking: Reading) -> str:
    joined: dict[str, list[str]] = {}
    for one in asking.found:
        joined.setdefault(f"{one.column} is {one.how}", []).append(one.told)
    told = []
    for name, group in joined.items():
        column = name.rpartition(" is ")[0]
        joint = " or " if name.endswith("join") else " and "
        rest = [one.removeprefix(f"{column} is ") for one in group[1:]]
        told.append(joint.join([group[0], *rest]))
    return f" where {' and '.join(told)}" if told else ""


def _told(asking: Reading, asked: str) -> str:
    """The answer in one line, empty if no row is left."""
    kept, where, column = _kept(asking), _where(asking), asking.column
    if not column:
        return _count(asking, kept, where)
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


def _count(asking: Reading, kept: Rows, where: str) -> str:
    thing = counted(asking)
    cells = {row.get(thing, "") for row in kept} - {""} if thing != "rows" else set()
    if thing != "rows" and len(cells) != len(kept):
        return f"number of different {thing}{where} = {len(cells)} (in {len(kept)} rows)"
    return f"number of rows{where} = {len(kept)} (of {len(asking.rows)} rows)"
