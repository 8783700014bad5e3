"""docs/papers.md tells the truth about itself: its count, its statuses, its files and its tests."""

import re
from pathlib import Path

import pytest

from benchmarks import papers

ROOT = Path(__file__).parents[2]
TEXT = papers.PAGE.read_text(encoding="utf-8")
ROWS = papers.read_rows(TEXT)

every_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.paper}: {row.what}")


def test_the_count_at_the_top_is_that_of_the_rows() -> None:
    assert papers.replace_count(TEXT) == TEXT, "run: python benchmarks/papers.py"


@every_row
def test_a_row_is_faithful_or_says_what_differs(row: papers.Row) -> None:
    assert row.status in papers.STATUSES
    assert row.status == "faithful" or row.note not in ("", "–")


@every_row
def test_what_is_built_names_a_file_and_a_test_that_exist(row: papers.Row) -> None:
    assert row.status == "missing" or (row.files and row.tests)
    for file in row.files:
        assert (ROOT / file).exists() or (ROOT / row.files[0]).with_name(file).exists(), file
    for test in row.tests:
        path, _, function = test.partition("::")
        written = (ROOT / path).read_text(encoding="utf-8")
        assert not function or re.search(rf"^(?:async )?def {function}\(", written, re.MULTILINE), test
