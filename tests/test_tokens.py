"""Tokens are counted without the network."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
def refuse(event, arguments):
    if event.startswith(("socket.connect", "socket.getaddrinfo")):
        sys.stderr.write(f"{event} {arguments}")
        sys.stderr.flush()
        import os; os._exit(3)
sys.addaudithook(refuse)
from hira.tokens import count, counter, estimate
text = "The tower of Alta is 31 metres high."
assert count(text) == counter("gpt-5")(text) == counter("qwen3-32b")(text) == estimate(text) > 5
"""


def test_a_vocabulary_that_is_not_there_is_never_fetched(tmp_path: Path) -> None:
    environ = {**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environ, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
