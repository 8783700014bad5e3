"""What tests of training share: a folder as a user has it, made once for all processes of a run."""

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from terminal import Terminal

if TYPE_CHECKING:
    from small_place import Place


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


@pytest.fixture(scope="session")
def first_place(tmp_path_factory: pytest.TempPathFactory) -> "Place":
    pytest.importorskip("torch")
    pytest.importorskip("trl")
    from filelock import FileLock
    from small_place import Place, made

    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    folder = shared / "small"
    with FileLock(shared / "small.lock"):  # each worker waits for the first, and none makes it again
        if not (folder / "ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            made(folder / "place")
            (folder / "ready").touch()
    return Place(folder / "place")


@pytest.fixture(scope="session")
def first_run(first_place: "Place", tmp_path_factory: pytest.TempPathFactory) -> "Place":
    """The folder after `hira-train grpo run.toml`."""
    place = first_place.copy(tmp_path_factory.mktemp("trained"))
    assert place.train("grpo", "run.toml") == 0, place.err
    return place


@pytest.fixture
def place(first_place: "Place", tmp_path: Path) -> "Place":
    """A copy of the folder, for one test."""
    return first_place.copy(tmp_path)
