"""Replies whose end is the same over and over."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hira.policies.repetition import LONGEST, REPEATS, SHORTEST, find_repetition

YES, YES_NO = ("yes", "no"), random.Random(0)
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


@pytest.mark.parametrize("size", [1, 48, 500, LONGEST])
def test_pieces_of_any_length_are_noticed(size: int) -> None:
    chance = random.Random(size)
    piece = "".join(chance.choice("abcdefgh ") for _ in range(size))
    times = max(REPEATS, SHORTEST // size + 1)
    assert find_repetition("So: " + piece * times) is not None
    assert find_repetition("So: " + piece * (REPEATS - 1)) is None


@pytest.mark.parametrize("line", ["[{}] {}\n", "{}. The passage also mentions {}.\n\n", "- ({}) **{}**\n"])
def test_a_numbered_list_that_goes_on_with_the_same_items_is_kept_once(line: str) -> None:
    items = ["where it lies", "search", "browse", "open the page"]
    told = "So:\n" + "".join(line.format(at, items[1 + at % 3] if at else items[0]) for at in range(99))
    end = find_repetition(told + line.format(99, "sea").rstrip())
    assert end is not None
    assert [told[:end].count(item) for item in items] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "text",
    [
        "| name | year |\n|" + "-" * 200 + "|",
        "".join(f"{at}. The answer to question {at} is {at * 7}.\n" for at in range(400)),
        "x = [" + "0, " * 150 + "1]",
        "Paris. " * 300 + "And that is all.",
    ],
)
def test_what_does_not_end_in_a_repetition_is_left_alone(text: str) -> None:
    assert find_repetition(text) is None
