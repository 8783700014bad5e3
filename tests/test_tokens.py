"""Tokens: estimated, the same on every machine."""

from hypothesis import given
from hypothesis import strategies as st

from hira.core.tokens import clip, count, fits


def test_a_text_has_about_as_many_tokens_as_a_modern_vocabulary_makes_of_it() -> None:
    assert count("The tower of Alta is 31 metres high.") == 9
    assert count("吾輩は猫である。") == 8


def test_a_text_is_clipped_by_the_tokens_that_are_counted() -> None:
    assert clip("a" * 100, 40, counted=len) == "a" * 40 + " […]"
    assert clip("a" * 40, 40, counted=len) == "a" * 40
    assert clip("a" * 50 + "b" * 50, 40, middle=True, counted=len).startswith("a" * 20 + "\n[… the middle")


@given(st.text(max_size=300), st.integers(0, 200))
def test_what_fits_is_what_the_count_says_also_where_it_is_not_counted(text: str, limit: int) -> None:
    assert fits(text, limit) == (count(text) <= limit)
    assert (clip(text, limit) == text) or not fits(text, limit)
