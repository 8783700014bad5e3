"""Tokens: counted without the network, by the vocabulary that a model's name tells where there is one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hira.core.tokens import clip, count, fits, vocabulary_of

PROGRAM = """
import sys
def refuse(event, arguments):
    if event.startswith(("socket.connect", "socket.getaddrinfo")):
        sys.stderr.write(f"{event} {arguments}")
        sys.stderr.flush()
        import os; os._exit(3)
sys.addaudithook(refuse)
from hira.core.tokens import count, counter, estimate
text = "The tower of Alta is 31 metres high."
assert count(text) == counter("gpt-5")(text) == counter("qwen3-32b")(text) == estimate(text) > 5
"""


def test_a_vocabulary_that_is_not_there_is_never_fetched(tmp_path: Path) -> None:
    environ = {**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environ, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr


@pytest.mark.parametrize(
    ("model", "vocabulary"),
    [
        ("litellm/azure/gpt-4o-2024-08-06", "o200k_base"),
        ("gpt-4, gpt-5", "cl100k_base"),
        ("openai/gpt-oss-20b", "o200k_harmony"),
        ("Qwen/Qwen3-32B", ""),
    ],
)
def test_openais_models_are_counted_by_their_own_vocabulary(model: str, vocabulary: str) -> None:
    assert vocabulary_of(model) == vocabulary


def test_a_text_is_clipped_by_the_tokens_that_are_counted() -> None:
    assert clip("a" * 100, 40, counted=len) == "a" * 40 + " […]"
    assert clip("a" * 40, 40, counted=len) == "a" * 40


@given(st.text(max_size=300), st.integers(0, 200))
def test_what_fits_is_what_the_count_says_also_where_it_is_not_counted(text: str, limit: int) -> None:
    assert fits(text, limit) == (count(text) <= limit)
    assert (clip(text, limit) == text) or not fits(text, limit)
