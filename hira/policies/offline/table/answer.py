"""The figure that a question asks for over the rows of a table, told with how the question was read."""

from hira.policies.offline.table.cells import number
from hira.policies.offline.table.columns import counted
from hira.policies.offline.table.difference import difference
from hira.policies.offline.table.operations import aggregated, operation
from hira.policies.offline.table.question import Reading
from hira.policies.offline.table.reading import understanding
from hira.policies.offline.table.rows import Rows

_DECIMALS = 2
_SUMS = frozenset({"total", "sum", "subtotal", "grand total", "all", "average", "mean"})


def answer(question: str, rows: Rows, about: str = "") -> str:
    """One line: the figure, the column, the rows it was taken from. Empty if not all of the question is understood.

    `about` holds words that name the table itself.
    """
    rows = [row for row in rows if next(iter(row.values()), "").lower() not in _SUMS]
    asked = operation(question)
    if not asked or not rows:
        return ""
    if asked == "difference":
        return difference(question, rows, about)
    asking = understanding(question, rows, about, asked)
    return _told(asking, asked) if asking else ""


def _told(asking: Reading, asked: str) -> str:
    """The answer in one line, empty if no row is left."""
    kept, where, column = asking.kept(), asking.where(), asking.column
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
    name = "total" if asked == "number" else asked
    return f"{name} of {column}{where} = {figure:.10g} ({len(held)} rows{_rounded(figure)})"


def _count(asking: Reading, kept: Rows, where: str) -> str:
    thing = counted(asking)
    cells = {row.get(thing, "") for row in kept} - {""} if thing != "rows" else set()
    if thing != "rows" and len(cells) != len(kept):
        return f"number of different {thing}{where} = {len(cells)} (in {len(kept)} rows)"
    return f"number of rows{where} = {len(kept)} (of {len(asking.rows)} rows)"


def _rounded(figure: float) -> str:
    """A figure with many decimals as it is usually told."""
    return f"; rounded {figure:.2f}" if len(f"{figure:.10g}".partition(".")[2]) > _DECIMALS else ""
