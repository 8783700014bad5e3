"""A verdict is one word, and only that word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hira.core.policy import Completion
from hira.policies.dialects.answer import read_verdict

ACCEPTING = [
    "At first I wrote:\nVerdict: incorrect\nLooking again, that was a slip.\nVerdict: correct",
    "verdict: CORRECT.",
    "**Verdict:** correct",
    "# Verdict: `correct`",
    "Verdict: \\boxed{\\text{correct}}",
    "Verdict：correct",
    "<think>Verdict: incorrect?</think>Verdict: correct",
]
REJECTING = [
    "Verdict: incorrect",
    "Verdict: Incorrect.",
    "**Verdict: incorrect**",
    "Verdict: correct\nOn second thought, step 3 is wrong.\nVerdict: incorrect",
    "The correct sum is 4, the solution has 5.\nVerdict: incorrect",
]
UNREADABLE = [
    "",
    "The solution is correct.",
    "Verdict: not correct",
    "Verdict: correct, but step 2 is not shown",
    "Verdict: correct or incorrect",
    "My verdict: correct",
]


@pytest.mark.parametrize("text", ACCEPTING)
def test_the_word_accepts_however_it_is_dressed(text: str) -> None:
    assert read_verdict(Completion(text)) is True


@pytest.mark.parametrize("text", REJECTING)
def test_incorrect_is_not_correct(text: str) -> None:
    """The published code of MarsRL looks for "correct" in the text, and finds it in "incorrect"."""
    assert read_verdict(Completion(text)) is False


@pytest.mark.parametrize("text", UNREADABLE)
def test_anything_else_is_no_verdict(text: str) -> None:
    assert read_verdict(Completion(text)) is None


def test_a_reply_that_was_cut_off_has_no_verdict() -> None:
    assert read_verdict(Completion("Verdict: correct", finish="length")) is None


@given(st.text(alphabet="corectin NT:.*\n", max_size=30))
def test_only_the_word_itself_accepts(word: str) -> None:
    letters = "".join(character for character in word.lower() if character.isalpha())
    if read_verdict(Completion(f"Verdict: {word}")) is True:
        assert letters == "correct"
