"""First fit decreasing: what the textbook promises of it, and that nothing is lost."""

import random
import time
from collections.abc import Sequence
from functools import cache
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hira.agents.calls import frame_source
from hira.agents.mars.system1 import shorten_document
from hira.agents.packing import JOINT, beginning, first_fit_decreasing, pack
from hira.core.tokens import count
from hira.evidence import Source

LENGTHS = st.lists(st.integers(1, 60), max_size=60)


def by_the_book(sizes: Sequence[int], capacity: int) -> list[list[int]]:
    """The definition, in quadratic time."""
    bins: list[list[int]] = []
    for at in sorted(range(len(sizes)), key=lambda one: -sizes[one]):
        fitting = (one for one in bins if sizes[at] + sum(sizes[other] for other in one) <= capacity)
        home = next(fitting, None)
        if home is None or sizes[at] > capacity:
            home = []
            bins.append(home)
        home.append(at)
    return [sorted(one) for one in bins]


def fewest(sizes: Sequence[int], capacity: int) -> int:
    """The least number of bins, by trying everything: for every set of sizes, bins and the room left in the last."""

    @cache
    def fill(left: tuple[int, ...], room: int) -> int:
        if not left:
            return 0
        found = []
        for at, size in enumerate(left):
            rest = left[:at] + left[at + 1 :]
            found.append(fill(rest, room - size) if size <= room else 1 + fill(rest, capacity - size))
        return min(found)

    return fill(tuple(sorted(sizes)), 0)


@given(LENGTHS, st.integers(1, 80))
def test_it_is_first_fit_decreasing_as_it_is_defined(sizes: list[int], capacity: int) -> None:
    assert first_fit_decreasing(sizes, capacity) == by_the_book(sizes, capacity)


@given(LENGTHS, st.integers(1, 80))
def test_every_text_is_in_one_bin_and_no_bin_is_too_full(sizes: list[int], capacity: int) -> None:
    bins = first_fit_decreasing(sizes, capacity)
    assert sorted(at for one in bins for at in one) == list(range(len(sizes)))
    assert all(sum(sizes[at] for at in one) <= capacity or len(one) == 1 for one in bins)


@given(st.lists(st.integers(1, 20), max_size=7), st.integers(20, 40))
def test_small_cases_against_the_optimum_by_brute_force(sizes: list[int], capacity: int) -> None:
    assert 9 * len(first_fit_decreasing(sizes, capacity)) <= 11 * fewest(sizes, capacity) + 9


@given(st.integers(1, 30), st.randoms(use_true_random=False))
def test_at_most_eleven_ninths_of_the_optimum_and_one_more(bins: int, source: random.Random) -> None:
    """Full bins are cut to pieces, so that the optimum is known however many there are."""
    capacity, pieces = 120, list[int]()
    for _ in range(bins):
        cuts = sorted(source.sample(range(1, capacity), source.randint(0, 6)))
        pieces += [after - before for before, after in zip([0, *cuts], [*cuts, capacity], strict=True)]
    source.shuffle(pieces)
    assert 9 * len(first_fit_decreasing(pieces, capacity)) <= 11 * bins + 9


def test_texts_are_counted_with_the_models_tokens_and_none_is_lost() -> None:
    texts = [f"{at} " + "word " * (7 * at % 90) for at in range(60)]
    bins = pack(texts, 120, beginning)
    assert sorted(text for one in bins for text in one) == sorted(texts)
    assert all(count("\n\n".join(one)) <= 120 for one in bins)
    assert len(bins) < len(texts) / 2
    assert bins == pack(texts, 120, beginning)


def test_texts_stand_in_their_bin_in_the_order_in_which_they_were_given() -> None:
    texts = [f"{at} " + "word " * (at % 5) for at in range(20)]
    for one in pack(texts, 60, beginning):
        assert one == sorted(one, key=texts.index)


def test_a_text_that_is_too_long_is_cut_and_alone() -> None:
    texts = ["short", "word " * 500, "also short"]
    bins = pack(texts, 100, beginning)
    assert [len(one) for one in bins] == [1, 2]
    assert bins[1] == ["short", "also short"]
    assert 80 <= count(bins[0][0]) + JOINT <= 100


@given(st.text(max_size=400), st.integers(0, 60))
def test_a_beginning_has_no_more_tokens_than_it_may(text: str, limit: int) -> None:
    short = beginning(text, limit)
    assert count(short) <= limit
    assert short == text or count(text) > limit
    assert text.startswith(short.removesuffix(" […]"))


@given(st.text(min_size=1, max_size=2000), st.integers(60, 200))
def test_a_document_that_is_cut_stays_in_its_frame(text: str, limit: int) -> None:
    document = frame_source(Source("https://a.example", "Title", text, id="s7"), text)
    short = shorten_document(document, limit, count)
    assert count(short) <= limit
    assert short.startswith("[s7] Title (https://a.example)\n")
    assert short.endswith("\n[/s7]")


@pytest.mark.parametrize("lengths", [(1, 1000), (501, 1000), (1, 60)])
def test_ten_thousand_take_a_small_multiple_of_the_time_to_sort_them(lengths: tuple[int, int]) -> None:
    """O(n log n): a small multiple of the sorting; to look through the bins one by one takes hundreds of times as long."""
    source = random.Random(7)
    sizes = [source.randint(*lengths) for _ in range(10_000)]
    packing, sorting = [], []
    for _ in range(5):
        began = time.thread_time()
        first_fit_decreasing(sizes, 1000)
        packed = time.thread_time()
        sorted(range(len(sizes)), key=lambda at: (-sizes[at], at))
        packing.append(packed - began)
        sorting.append(time.thread_time() - packed)
    assert median(packing) <= 40 * median(sorting)
