"""Figures over the rows of a table: what a question asks of a column, of which rows, and how it was read.

The modules are sent to the sandbox as one program, so they need the standard library only, besides each other, and no
name of the top level stands in two of them.
"""

import ast
from functools import cache
from pathlib import Path

from hira.policies.offline.table.answer import answer, rows_for
from hira.policies.offline.table.operations import EXTREMES, operation
from hira.policies.offline.table.rows import from_file, from_lines, located

_MODULES = (
    "cells", "rows", "wide", "sheet", "operations", "question", "naming", "conditions", "columns", "reading",
    "difference", "answer",
)  # fmt: skip


@cache
def source() -> str:
    """All of it as one program, without the imports of one module by another."""
    return "\n\n".join(_alone(Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")) for name in _MODULES)


def _alone(text: str) -> str:
    lines: list[str | None] = list(text.splitlines())
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(__name__):
            lines[node.lineno - 1 : node.end_lineno] = [None] * ((node.end_lineno or node.lineno) - node.lineno + 1)
    return "\n".join(line for line in lines if line is not None)


__all__ = ["EXTREMES", "answer", "from_file", "from_lines", "located", "operation", "rows_for", "source"]
