"""What the tests of the server share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, browser

from hira.runtime.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a server that has documents on the tower of Alta and its builder, and a journal."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "alta.txt").write_text("The tower of Alta is 31 metres high.\n", encoding="utf-8")
    builder = "The builder of the tower of Alta was Edda Brand.\n\nEdda Brand studied in Lund.\n"
    (docs / "builder.txt").write_text(builder, encoding="utf-8")
    return Settings(model="offline", docs=(docs,), journal=tmp_path / "journal.sqlite")


@pytest.fixture
def driven(tmp_path: Path) -> Iterator[Browser]:
    with browser(tmp_path / "profile") as one:
        yield one
