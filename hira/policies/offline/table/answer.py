"""The figure that a question asks for over the rows of a table, told with how the question was read."""

import re

from hira.policies.offline.table.cells import number, stems
from hira.policies.offline.table.columns import counted
from hira.policies.offline.table.difference import difference
from hira.policies.offline.table.naming import end_of
from hira.policies.offline.table.operations import EXTREMES, OPERATIONS, aggregated, explicit, operation
from hira.policies.offline.table.question import Reading
from hira.policies.offline.table.reading import understanding, wanted_noun
from hira.policies.offline.table.rows import Row, Rows
from hira.policies.offline.table.sheet import Sheet
from hira.policies.offline.table.wide import lengthened

_DECIMALS = 2
_SUMS = frozenset({"total", "sum", "subtotal", "grand total", "all", "average", "mean"})
_NOT_ADDED = frozenset(
    stems(
        "minute hour second duration time price fare fee rate age height length depth width altitude elevation distance"
        " speed temperature degree percent percentage pct share ratio density average mean median floor platform level"
        " rank ranking place position grade size salary wage score"
    )
)
"""Of several such figures there is no sum unless one is asked for."""
_HIGH = frozenset({"highest", "latest"})
_FIGURED = frozenset(stems("average mean median total sum"))
_ORDINAL = frozenset(stems("rank ranking place position pos standing"))
_JOINT = re.compile(r"\b(?:combined|together)\b", re.IGNORECASE)
_TIME_SPENT = frozenset(stems("minute hour second"))
_SPENT = re.compile(r"\b(?:work(?:ed)?|spen[dt]|lost|needed)\b", re.IGNORECASE)
_LISTS = re.compile(r"[,;/&\n]|\d")


def answer(question: str, rows: Rows, about: str = "") -> str:
    """One line: the figure, the column, the rows it was taken from. Empty if not all of the question is understood.

    `about` holds words that name the table itself. A table whose columns go through years is read row by row first.
    """
    rows = [row for row in rows if next(iter(row.values()), "").lower() not in _SUMS]
    asked = operation(question)
    if not asked or not rows:
        return ""
    return _over(question, Sheet(rows, about), asked) or _over(question, Sheet(lengthened(rows), about), asked)


def _over(question: str, sheet: Sheet, asked: str) -> str:
    if not sheet.rows:
        return ""
    if asked == "difference":
        return difference(question, sheet)
    asking = understanding(question, sheet, asked)
    return _told(asking, asked) if asking else ""


def rows_for(question: str, rows: Rows, about: str = "", *, several: bool = False) -> Rows:
    """The one row in which the answer stands; all that are asked for, where `several` are.

    Empty if it may be another, or not all of the question is understood.
    """
    asked = operation(question)
    if not asked and any(re.search(form, question.lower()) for _, form in OPERATIONS):
        return []
    for sheet in (Sheet(rows, about), Sheet(lengthened(rows), about)):
        asking = understanding(question, sheet, asked or "value") if sheet.rows else None
        found = _single(asking, asked, several=several) if asking else []
        if found:
            at = [at for at, row in enumerate(sheet.rows) if any(row is one for one in found)]
            return [rows[place * len(rows) // len(sheet.rows)] for place in (at if several else at[:1])]
    return []


def _single(asking: Reading, asked: str, *, several: bool) -> Rows:
    """The row that answers, if it is the only one or all say the same; the rows, if `several` may."""
    kept, column = asking.kept(), asking.column
    if several and not asked:
        return kept if asking.found else []
    held = [(figure, row) for row in kept if (figure := number(row.get(column, ""))) is not None]
    if asked in EXTREMES:
        line = bool(held) and _extreme(asking, asked, held)
        top = (max if asked in _HIGH else min)(figure for figure, _ in held) if line else None
        best = [row for figure, row in held if figure == top]
        return best if len(best) == 1 else []
    if asked:
        return [held[0][1]] if asked == "number" and column and len(held) == 1 == len(kept) else []
    told = {row.get(column, "") for row in kept} if column else set()
    return kept if asking.found and kept and (len(kept) == 1 or len(told) == 1) else []


def _told(asking: Reading, asked: str) -> str:
    """The answer in one line, empty if no row is left or the figures make none."""
    kept, where, column = asking.kept(), asking.where(), asking.column
    if any(asking.sheet.unread(name) for name in (column, asking.bounded) if name):
        return ""
    if not column:
        return _count(asking, kept, where)
    held = [(value, row) for row in kept if (value := number(row.get(column, ""))) is not None]
    if held and asked in EXTREMES:
        return _extreme(asking, asked, held)
    if not held or not _one_figure(asking, asked, len(held)):
        return ""
    figure = aggregated(asked, [value for value, _ in held])
    if asked == "number" and len(held) == 1:
        return f"{column}{where} = {figure:.10g} (1 row)"
    name = "total" if asked == "number" else asked
    return f"{name} of {column}{where} = {figure:.10g} ({len(held)} rows{_rounded(figure)})"


def _one_figure(asking: Reading, asked: str, rows: int) -> bool:
    """Whether figures of so many rows make one: no average of averages, nothing of one row "together"."""
    if rows == 1:
        return not _JOINT.search(asking.question)
    return _added(asking) if asked == "number" else not _FIGURED & set(stems(asking.column))


def _added(asking: Reading) -> bool:
    """Whether several figures of the column make a sum: asked for in a word, or of a kind that adds up."""
    own = _NOT_ADDED & set(stems(asking.column))
    return explicit(asking.question) or not own or (own <= _TIME_SPENT and bool(_SPENT.search(asking.question)))


def _extreme(asking: Reading, asked: str, held: list[tuple[float, Row]]) -> str:
    """The highest or lowest figure and its rows. Empty if what is asked for has several rows each, or figures count
    backwards."""
    column, noun = asking.column, wanted_noun(asking)
    if _ORDINAL & set(stems(column)) and asked in ("highest", "lowest"):
        return ""
    for name in (one for one in asking.columns if noun in stems(one) and one != column):
        if len({row.get(name, "") for _, row in held}) < len(held):
            return ""
    top = (max if asked in _HIGH else min)(value for value, _ in held)
    best = [row for value, row in held if value == top]
    about = "; ".join(
        ", ".join(f"{name} {cell}" for name, cell in row.items() if name != column and cell) for row in best
    )
    return f"{asked} {column}{asking.where()} = {top:.10g} ({about})"


def _names(sheet: Sheet, column: str) -> bool:
    """Whether each cell of a column names another row, and not where its way begins or ends."""
    return not sheet.orders[column] and sheet.unique(column) and not end_of(column)


def _count(asking: Reading, kept: Rows, where: str) -> str:
    """How many rows there are, or different cells. Rows that are named one by one are not counted."""
    thing, sheet = counted(asking), asking.sheet
    if any(one.how == "join" and _names(sheet, one.column) for one in asking.found):
        return ""
    cells = {row.get(thing, "") for row in kept} - {""} if thing != "rows" else set()
    if thing != "rows" and not sheet.naming(thing) and 2 * sum(bool(_LISTS.search(one)) for one in cells) > len(cells):
        return ""
    if thing != "rows" and len(cells) != len(kept):
        return f"number of different {thing}{where} = {len(cells)} (in {len(kept)} rows)"
    return f"number of rows{where} = {len(kept)} (of {len(sheet.rows)} rows)"


def _rounded(figure: float) -> str:
    """A figure with many decimals as it is usually told."""
    return f"; rounded {figure:.2f}" if len(f"{figure:.10g}".partition(".")[2]) > _DECIMALS else ""
