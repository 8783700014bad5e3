"""A session in a private folder, and the host around it."""

import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from python_host import SECRET, Host

from hira.tools.python import PythonSandbox, refusal


@pytest.fixture
def able() -> None:
    if line := refusal():
        pytest.skip(line)


@pytest.fixture
async def sandbox(tmp_path: Path, able: None) -> AsyncIterator[PythonSandbox]:
    async with PythonSandbox(tmp_path / "work" / "here", label="t") as made:
        yield made


@contextmanager
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    home, outside = tmp_path / "home", tmp_path / "outside"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_rsa").write_text(SECRET)
    outside.mkdir()
    (outside / ".env").write_text(f"KEY={SECRET}")
    (outside / "keep.txt").write_text("keep")
    (outside / "keep.txt").chmod(0o644)
    os.utime(outside / "keep.txt", (1e9, 1e9))
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("HOME", str(home))
    tcp, udp = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    named, abstract = (socket.socket(socket.AF_UNIX) for _ in range(2))
    mail = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    monkeypatch.chdir(tmp_path)  # a socket's path may not be long
    named.bind("named.sock")
    mail.bind("mail.sock")
    abstract.bind(f"\0hira-test-{os.getpid()}")
    for one in (named, abstract):
        one.listen()
    leak = os.open(outside / ".env", os.O_RDONLY)
    os.set_inheritable(leak, True)
    made = Host(home, outside, listeners=[tcp, udp, named, abstract, mail])
    made.names = {
        "HOST": os.getpid(),
        "HOME": str(home),
        "OUT": str(outside),
        "TCP": tcp.getsockname()[1],
        "UDP": udp.getsockname()[1],
        "NAMED": str(tmp_path / "named.sock"),
        "MAIL": str(tmp_path / "mail.sock"),
        "ABSTRACT": f"\0hira-test-{os.getpid()}",
        "LEAK": leak,
    }
    yield made
    os.close(leak)
    for one in made.listeners:
        one.close()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with pytest.MonkeyPatch.context() as monkeypatch, planted(tmp_path_factory.mktemp("host"), monkeypatch) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def captive(host: Host) -> AsyncIterator[PythonSandbox]:
    """One session for many attempts, in the folder beside what it must not touch."""
    if line := refusal():
        pytest.skip(line)
    async with PythonSandbox(host.home.parent / "work" / "here") as made:
        yield made
