"""Replies whose end is the same over and over."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hira.policies.repetition import LONGEST, REPEATS, SHORTEST, Circling, find_repetition

WORDS = st.text("abc d.\n", min_size=1, max_size=60)


@given(st.text("xyz", max_size=40), WORDS)
def test_what_repeats_is_kept_once(begun: str, piece: str) -> None:
    times = max(REPEATS, SHORTEST // len(piece) + 1)
    text = begun + piece * (times + 1)
    end = find_repetition(text)
    assert end is not None
    kept = text[:end]
    assert len(begun) <= len(kept) <= len(begun) + 3 * len(piece), "nothing that was said only once is lost"
    period = next(
        size for size in range(1, len(piece) + 1) if piece * 2 == (piece[:size] * len(piece) * 2)[: 2 * len(piece)]
    )
    assert text == (kept + kept[-period:] * len(text))[: len(text)], "and no more is lost than repeats"


@pytest.mark.parametrize("size", [1, 47, 48, 49, 500, LONGEST])
def test_pieces_of_any_length_are_noticed(size: int) -> None:
    chance = random.Random(size)
    piece = "".join(chance.choice("abcdefgh ") for _ in range(size))
    times = max(REPEATS, SHORTEST // size + 1)
    assert find_repetition("So: " + piece * times) is not None
    assert find_repetition("So: " + piece * (REPEATS - 1)) is None


@pytest.mark.parametrize(
    "text",
    [
        "| name | year |\n|" + "-" * 200 + "|",
        "".join(f"{at}. The answer to question {at} is {at * 7}.\n" for at in range(400)),
        "x = [" + "0, " * 150 + "1]",
        "Paris. " * 300 + "And that is all.",
        "",
    ],
)
def test_what_does_not_end_in_a_repetition_is_left_alone(text: str) -> None:
    assert find_repetition(text) is None


@given(st.integers(1, 9), st.integers(0, 3))
def test_a_stream_is_noticed_soon_whatever_its_pieces(size: int, seed: int) -> None:
    chance = random.Random(seed)
    text = "".join(chance.choice("abcdefgh ") for _ in range(3000)) + "round and round, " * 200
    circling, read = Circling(), 0
    while read < len(text) and not circling.take(text[read : read + size]):
        read += size
    assert 3000 + SHORTEST <= read + size <= 3000 + SHORTEST + 300
