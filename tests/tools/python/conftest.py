"""A session in a private folder, and the host around it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import pytest_asyncio
from python_host import Host

from hira.tools.python import PythonSandbox, refusal


@pytest.fixture
def able() -> None:
    if line := refusal():
        pytest.skip(line)


@pytest.fixture
async def sandbox(tmp_path: Path, able: None) -> AsyncIterator[PythonSandbox]:
    async with PythonSandbox(tmp_path / "work" / "here", label="t") as made:
        yield made


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with pytest.MonkeyPatch.context() as patched, closing(Host(tmp_path_factory.mktemp("host"), patched)) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def captive(host: Host) -> AsyncIterator[PythonSandbox]:
    """One session for many attempts, in the folder beside what it must not touch."""
    if line := refusal():
        pytest.skip(line)
    async with PythonSandbox(host.home.parent / "work" / "here") as made:
        yield made
