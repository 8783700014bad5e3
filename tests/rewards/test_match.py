"""Metrics by hand: articles, numbers, Chinese, LaTeX."""

import pytest

from hira.evaluation.rewards.match import contains, equal, exact, extract_answer, f1


@pytest.mark.parametrize(
    ("answer", "gold", "same"),
    [
        ("The Beatles", "beatles", True),
        ("1,045", "1045", True),
        ("1,04", "104", False),
        ("São Paulo", "sao paulo", True),
        ("青海湖。", "青海湖", True),
        ("-3", "3", False),
        ("1990-2000", "1990–2000", True),
    ],
)
def test_exact_match_folds_what_does_not_matter(answer: str, gold: str, same: bool) -> None:
    assert exact(answer, gold) is same


@pytest.mark.parametrize(
    ("answer", "gold", "score"),
    [
        ("the cat sat", "cat sat down", 2 * 2 / (2 + 3)),
        ("yes yes no", "yes", 2 * 1 / (3 + 1)),
        ("湖水很深", "湖很深", 2 * 3 / (4 + 3)),
        ("", "", 1.0),
        ("", "a word", 0.0),
    ],
)
def test_f1_counts_each_word_as_often_as_it_stands_there(answer: str, gold: str, score: float) -> None:
    assert f1(answer, gold) == pytest.approx(score)


@pytest.mark.parametrize(
    ("answer", "gold", "held"),
    [
        ("It was built by Edda Thornquist in 1889.", "Edda Thornquist", True),
        ("There are 44 of them", "4", False),
        ("Thornquist, Edda", "Edda Thornquist", False),
        ("面积是4625平方公里", "4625平方公里", True),
        ("It was -5 degrees", "5", False),
    ],
)
def test_an_answer_holds_the_known_one_word_for_word(answer: str, gold: str, held: bool) -> None:
    assert contains(answer, gold) is held


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("0.5", "\\frac{1}{2}"),
        ("\\dfrac12", "50%"),
        ("So the answer is 42.", "42"),
        ("2\\sqrt{3}", "\\sqrt{12}"),
        ("10^{3}", "1000"),
        ("2 \\times 10^{3}", "2000"),
        ("12 \\text{ cm}", "12"),
        ("\\text{(B)}", "(B)"),
    ],
)
def test_the_same_value_in_another_spelling_is_equal(answer: str, gold: str) -> None:
    assert equal(answer, gold)


@pytest.mark.parametrize(
    ("answer", "gold"),
    [("-3", "3"), ("42 and 43", "42"), ("1/0", "3"), ("", ""), ("x+1", "x-1"), ("4.2", "42"), ("none", "0")],
)
def test_another_value_is_not(answer: str, gold: str) -> None:
    assert not equal(answer, gold)


def test_the_final_answer_is_scored_without_citations() -> None:
    assert extract_answer("I looked it up. \\boxed{Lund} [s1]") == "Lund"
    assert extract_answer("It is 47 metres high. [s1, s2]") == "It is 47 metres high."
