"""First fit decreasing: what the textbook promises of it, and that nothing is lost."""

import random
import time
from collections.abc import Sequence
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hira.agents.calls import frame_source
from hira.agents.packing import JOINT, beginning, first_fit_decreasing, pack
from hira.core.tokens import count
from hira.evidence import Source
from hira.workflows.mars.system1 import shorten_document

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


@given(LENGTHS, st.integers(1, 80))
def test_it_is_first_fit_decreasing_as_it_is_defined(sizes: list[int], capacity: int) -> None:
    assert first_fit_decreasing(sizes, capacity) == by_the_book(sizes, capacity)


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
    assert short == text or count(text) > limit or not text.strip()
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
    """O(n log n): a small multiple of the sorting; to look through the bins one by one takes hundreds of times as
    long."""
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
