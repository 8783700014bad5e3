"""`hira serve` from the command line: by which names it may be called."""

import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from command import Command

from hira.testing import Endpoint


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
            body = {"model": "hira", "messages": [{"role": "user", "content": "What is 2 + 2?"}]}
            assert httpx.post(f"{found[1]}/chat/completions", json=body, trust_env=False).status_code == 200
        finally:
            server.terminate()
        assert server.stderr.read().endswith("stopped\n")
    assert server.returncode == 0
    journals = (tmp_path / "home/.local/state/hira").iterdir()
    assert [path.name for path in journals] == ["journal.sqlite"]  # it was closed


@pytest.mark.heavy
@pytest.mark.parametrize("stream", [False, True])
def test_a_request_that_the_end_of_the_server_cuts_off_gets_an_error_of_the_api(
    tmp_path: Path, *, stream: bool
) -> None:
    body = {"model": "hira", "messages": [{"role": "user", "content": "Why?"}], "stream": stream}
    with Endpoint(["never sent"], delay=30) as endpoint:
        where = ("--model", endpoint.model, "--base-url", endpoint.base_url)
        with Command(tmp_path).start("serve", "--port", "0", *where) as server, ThreadPoolExecutor(1) as client:
            assert server.stderr is not None
            found = next(filter(None, (re.search(r"endpoint: (http://\S+/v1)", line) for line in server.stderr)))
            asked = client.submit(httpx.post, f"{found[1]}/chat/completions", json=body, timeout=60, trust_env=False)
            while not endpoint.calls:
                time.sleep(0.02)
            server.terminate()
            reply = asked.result()
            said = server.stderr.read()
    assert reply.status_code == (200 if stream else 503)
    assert "the server stops; ask again later" in reply.text
    assert "Traceback" not in said


def test_a_port_that_is_taken_is_told_with_what_to_do(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = Command(tmp_path)("serve", "--port", str(taken.getsockname()[1]), "--model", "offline")
    assert said.code == 2
    assert "cannot be used" in said.err
    assert "choose another with --port" in said.err
