"""Counts the rows of docs/papers.md by paper and status, and writes the count at the top of the page.

    python benchmarks/papers.py          # rewrite the count
    python benchmarks/papers.py --check  # exit with 1 if the count is not that of the rows

A row has five cells: what the paper has, its status, the file, the test, and a note. The status is `faithful`,
`deviates` (the note says how, and why) or `missing` (the note says why).
"""

import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "papers.md"
STATUSES = ("faithful", "deviates", "missing")
HEAD = "| in the paper | status | file | test | what differs and why, or a note |"
BEGIN, END = "<!-- count: python benchmarks/papers.py -->\n", "<!-- end of the count -->\n"
NAMED = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Row:
    paper: str
    what: str
    status: str
    files: tuple[str, ...]
    tests: tuple[str, ...]
    note: str


def read_rows(text: str) -> list[Row]:
    """The rows of all tables below a heading of a paper."""
    rows = []
    for section in text.split("\n## ")[1:]:
        paper, _, body = section.partition("\n")
        for line in body.splitlines():
            if line.startswith("| ") and line != HEAD:
                what, status, file, test, note = line.strip("| ").split(" | ")
                rows.append(Row(paper, what, status, tuple(NAMED.findall(file)), tuple(NAMED.findall(test)), note))
    return rows


def format_count(rows: Sequence[Row]) -> str:
    papers = dict.fromkeys(row.paper for row in rows)
    lines = ["| | rows | " + " | ".join(STATUSES) + " |", "|---|---|" + "---|" * len(STATUSES)]
    for name, chosen in [*((paper, [row for row in rows if row.paper == paper]) for paper in papers), ("all", rows)]:
        counts = Counter(row.status for row in chosen)
        lines.append(f"| {name} | {len(chosen)} | " + " | ".join(str(counts[status]) for status in STATUSES) + " |")
    return "\n".join(lines) + "\n"


def replace_count(text: str) -> str:
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{format_count(read_rows(text))}\n{END}{after}"


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    counted = replace_count(text)
    if "--check" in sys.argv:
        return int(text != counted)
    PAGE.write_text(counted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
