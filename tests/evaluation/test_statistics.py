"""Figures with their values worked by hand."""

import math
from statistics import fmean

import pytest

from hira.evaluation.statistics import (
    Interval,
    bootstrap,
    cohens_d,
    majority,
    mcnemar,
    pass_at,
    permutation_p_value,
    wilson,
)


def test_pass_at_k_is_the_share_of_draws_that_hold_a_right_one() -> None:
    assert pass_at(0, 4, 2) == 0
    assert pass_at(4, 4, 1) == 1
    assert pass_at(1, 4, 1) == pytest.approx(0.25)
    assert pass_at(1, 4, 2) == pytest.approx(1 - 3 / 6)  # of six pairs, three leave the right one out
    assert pass_at(2, 4, 2) == pytest.approx(1 - 1 / 6)
    with pytest.raises(ValueError, match="needs at least 5"):
        pass_at(1, 4, 5)


def test_mcnemar_is_the_exact_binomial_test_of_the_flips() -> None:
    assert mcnemar(0, 0) == 1
    assert mcnemar(5, 0) == pytest.approx(2 / 32)
    assert mcnemar(1, 5) == pytest.approx(2 * 7 / 64)
    assert mcnemar(3, 3) == 1
    assert mcnemar(700, 500) == pytest.approx(9e-9, rel=0.2)


def test_wilsons_interval_stays_within_0_and_1() -> None:
    assert wilson(0, 10).low == 0
    assert wilson(0, 10).high == pytest.approx(0.2775, abs=1e-3)
    assert wilson(8, 10).value == 0.8
    assert (wilson(8, 10).low, wilson(8, 10).high) == pytest.approx((0.4902, 0.9433), abs=1e-3)
    assert wilson(0, 0) == Interval(0, 0, 1)


def test_the_bootstrap_is_the_same_for_the_same_seed_and_holds_the_mean() -> None:
    values = [0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    first = bootstrap(values)
    assert first == bootstrap(values)
    assert first.low < first.value == fmean(values) < first.high
    assert bootstrap([1.0, 1.0]) == bootstrap([1.0, 1.0], seed=3)


def test_the_bootstraps_bounds_leave_out_a_fortieth_of_the_draws_on_each_side() -> None:
    figures = iter(range(41))
    assert bootstrap([1.0], lambda _: next(figures), draws=40) == Interval(40, 1, 39)
    assert bootstrap([1.0], draws=1) == Interval(1, 1, 1)


def test_the_majority_is_the_most_frequent_answer_of_equals_the_first() -> None:
    assert majority(["b", "a", "", "b", "a", "", ""]) == "b"
    assert majority(["a", "b", "b"]) == "b"
    assert majority(["", ""]) == majority([]) == ""


def test_cohens_d_is_the_mean_over_its_standard_deviation() -> None:
    assert cohens_d([1.0, 2.0, 4.5]) == pytest.approx(2.5 / math.sqrt((1.5**2 + 0.5**2 + 2**2) / 2))
    assert cohens_d([1.0]) == cohens_d([0.1 + 0.2, 0.3]) == math.inf, "no spread"
    assert cohens_d([-1.0, -1.0]) == -math.inf
    assert cohens_d([0.0]) == cohens_d([0.0, 0.0]) == 0


def test_the_permutation_test_counts_the_signs_that_reach_the_difference() -> None:
    assert permutation_p_value([]) == permutation_p_value([0.0, 0.0]) == permutation_p_value([1.0, -1.0]) == 1
    assert permutation_p_value([1.0, 1.0, 1.0]) == pytest.approx(2 / 8, abs=0.02)
    assert permutation_p_value([1.0, 2.0, -1.0]) == pytest.approx(6 / 8, abs=0.02)
    assert permutation_p_value([1.0] * 40) == 1 / 10_001, "never 0"
