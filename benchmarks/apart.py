"""A server in a process of its own, so that what it computes is not counted as hira's."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hira.testing import Endpoint


@contextmanager
def apart(*command: str) -> Iterator[str]:
    """The base URL of what `python COMMAND` serves. It ends with the context, and with this process."""
    started = [sys.executable, *command]
    with subprocess.Popen(started, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()


def serve(endpoint: Endpoint) -> None:
    """The other side of it: tell where the endpoint is, and answer until the process that wants it is gone."""
    with endpoint:
        print(endpoint.base_url, flush=True)
        sys.stdin.read()
