"""Does with a column of a table what a question asks. Sent whole to the sandbox, so it needs the standard library only.

`rows` are dictionaries of text, one a row, keyed by column.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

Rows = list[dict[str, str]]

OPERATIONS = (
    ("average", r"average|mean\b"),
    ("median", r"median"),
    ("total", r"total|\bsum\b|altogether|together|combined"),
    ("highest", r"max(?:imum)?\b|highest|largest|biggest|most\b|longest|tallest|greatest|latest|oldest|best"),
    ("lowest", r"min(?:imum)?\b|lowest|smallest|least|fewest|shortest|earliest|youngest|worst"),
    ("number", r"how many|number of|count"),
)
ABOVE = r"(?:above|over|more than|greater than|larger than|exceeding|after|>)\s*([\d.,]*\d)"
BELOW = r"(?:below|under|less than|fewer than|smaller than|before|<)\s*([\d.,]*\d)"


def operation(question: str) -> str:
    """What is asked of a column: "total", "average", …; empty if nothing is."""
    return next((name for name, form in OPERATIONS if re.search(form, question.lower())), "")


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
    """The rows in lines such as "City: Bern | Inhabitants: 134,000" or "| Bern | 134,000 |"; others are left out."""
    rows: Rows = []
    header: list[str] = []
    for line in (line.strip() for line in lines):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
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


def stems(text: str) -> set[str]:
    """Its words without plural endings, in lower case."""
    return {re.sub(r"ies$", "y", word).rstrip("s") for word in re.findall(r"[^\W_]+", text.lower())}


def answer(question: str, rows: Rows) -> str:
    """One line: the figure, the column, the rows it was taken from. Empty if no column fits the question."""
    asked, wanted = operation(question), stems(question)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    numeric = [name for name in columns if sum(number(row.get(name, "")) is not None for row in rows) * 2 > len(rows)]
    fitting = {name: len(stems(name) & wanted) / len(stems(name) or {""}) for name in numeric}
    column = max(fitting, key=lambda name: fitting[name], default="")
    if column and not fitting[column] and len(numeric) > 1:
        column = ""
    kept, where = filtered(re.sub(f"{ABOVE}|{BELOW}", "", question), rows, [name for name in columns if name != column])
    for form, sign, word in ((ABOVE, 1, "above"), (BELOW, -1, "below")):
        if column and (limit := re.search(form, question.lower())):
            bound = float(limit[1].replace(",", ""))
            kept = [row for row in kept if beyond(row.get(column, ""), bound, sign)]
            where.append(f"{column} is {word} {bound:g}")
    told = f" where {' and '.join(where)}" if where else ""
    if asked == "number" and not (column and fitting[column] and not where):
        return f"number of rows{told} = {len(kept)} (of {len(rows)} rows)"
    held = [(value, row) for row in kept if (value := number(row.get(column, ""))) is not None]
    if not asked or not held:
        return ""
    if asked in ("highest", "lowest"):
        value, row = (max if asked == "highest" else min)(held, key=lambda entry: entry[0])
        about = ", ".join(f"{name} {cell}" for name, cell in row.items() if name != column and cell)
        return f"{asked} {column}{told} = {value:.10g} ({about})"
    figure = aggregated("total" if asked == "number" else asked, [value for value, _ in held])
    return f"{'total' if asked == 'number' else asked} of {column}{told} = {figure:.10g} ({len(held)} rows)"


def beyond(cell: str, bound: float, sign: int) -> bool:
    """Whether the cell's number lies above the bound, or below it with sign -1."""
    value = number(cell)
    return value is not None and value * sign > bound * sign


def says(question: str, cell: str) -> bool:
    """Whether the question names the cell, as words of its own."""
    return bool(re.search(rf"(?<!\w){re.escape(cell)}(?!\w)", question, re.IGNORECASE))


def aggregated(asked: str, values: list[float]) -> float:
    ordered, middle = sorted(values), len(values) // 2
    if asked == "average":
        return sum(values) / len(values)
    if asked == "median":
        return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return sum(values)


def filtered(question: str, rows: Rows, columns: Sequence[str]) -> tuple[Rows, list[str]]:
    """The rows whose cells the question names, and the conditions in words."""
    where: list[str] = []
    for column in columns:
        cells = {row.get(column, "") for row in rows}
        named = sorted(cell for cell in cells if cell and says(question, cell))
        if named and len(named) < len(cells):
            rows = [row for row in rows if row.get(column, "") in named]
            where.append(f"{column} is {' or '.join(named)}")
    return rows, where
