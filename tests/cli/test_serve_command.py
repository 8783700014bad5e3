"""`hira serve` from the command line: by which names it may be called."""

import re
import socket
from pathlib import Path

import httpx
import pytest
from command import Command


@pytest.mark.heavy
@pytest.mark.parametrize("host", ["127.0.0.2", "::1"])
def test_the_address_that_it_tells_is_one_by_which_it_answers(tmp_path: Path, host: str) -> None:
    with Command(tmp_path).start("serve", "--host", host, "--port", "0", "--model", "offline") as server:
        try:
            assert server.stderr is not None
            told = (re.search(r"endpoint: (http://\S+/v1)", line) for line in server.stderr)
            found = next(filter(None, told))
            assert httpx.get(f"{found[1]}/models", trust_env=False).status_code == 200
            elsewhere = httpx.get(f"{found[1]}/models", headers={"host": "example.org"}, trust_env=False)
            assert elsewhere.status_code == 403
        finally:
            server.terminate()
        assert server.stderr.read().endswith("stopped\n")
    assert server.returncode == 0
    assert [path.name for path in (tmp_path / "home/.local/state/hira").iterdir()] == [
        "journal.sqlite"
    ]  # it was closed


def test_a_port_that_is_taken_is_told_with_what_to_do(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = Command(tmp_path)("serve", "--port", str(taken.getsockname()[1]), "--model", "offline")
    assert said.code == 2
    assert "cannot be used" in said.err
    assert "choose another with --port" in said.err
