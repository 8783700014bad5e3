"""A table whose columns go through years or months, told with one row for each of them."""

import re

from hira.policies.offline.table.cells import MONTHS
from hira.policies.offline.table.rows import Row, Rows

VALUE = "value"
"""What the figures of a table are called that names them nowhere but in its title."""
_IN_NAME = re.compile(rf"(?<![\w])(?:[12]\d{{3}}|{'|'.join(MONTHS)})(?![\w])", re.IGNORECASE)
_LEAST = 2


def lengthened(rows: Rows) -> Rows:
    """Each row once for every year or month that stands in the names of columns; empty if there are no such columns."""
    groups: dict[str, dict[str, str]] = {}
    for column in dict.fromkeys(key for row in rows for key in row):
        spoken = column.replace("_", " ")
        if len(found := _IN_NAME.findall(spoken)) == 1:
            rest = " ".join(_IN_NAME.sub(" ", spoken).split()).strip(" ()-,:") or VALUE
            groups.setdefault(rest, {})[found[0]] = column
    points = [list(group) for group in groups.values()]
    if not points or len(points[0]) < _LEAST or any(one != points[0] for one in points):
        return []
    kind = "year" if points[0][0][0].isdigit() else "month"
    gone = {column for group in groups.values() for column in group.values()}
    kept = [{name: cell for name, cell in row.items() if name not in gone} for row in rows]
    if any({kind, *groups} & set(row) for row in kept):
        return []
    return [_row_at(row, own, groups, kind, point) for row, own in zip(rows, kept, strict=True) for point in points[0]]


def _row_at(row: Row, own: Row, groups: dict[str, dict[str, str]], kind: str, point: str) -> Row:
    return own | {kind: point} | {rest: row.get(group[point], "") for rest, group in groups.items()}
