"""Long tables of cases: a few rows that tell most always run, the others run with the heavy tests."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

SECONDS = 0.3
"""Of a row that runs with the heavy tests: each costs little, all of them together much."""


def telling(table: Mapping[str, Any], fast: Iterable[str]) -> list[Any]:
    """The rows of a table by their names, for `parametrize`: those named in `fast` are not heavy."""
    fast = set(fast)
    assert fast < set(table), fast - set(table)
    later = pytest.mark.heavy(seconds=SECONDS)
    return [
        pytest.param(*(row if isinstance(row, tuple) else (row,)), id=name, marks=() if name in fast else later)
        for name, row in table.items()
    ]
