"""The sliding window: so many at a time, no barrier, in the least time. The clock is virtual."""

import asyncio
import heapq
import re
from collections.abc import Iterator, Sequence
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hira.core.concurrency import SingleFlight, count_down
from hira.core.errors import UsageError
from hira.core.window import check_concurrency, map_concurrently


class Clock:
    """Time that passes only while everybody waits, so that it can be told exactly."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, asyncio.Future[None]]] = []
        self._slept = 0

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.get_running_loop().create_future()
        self._slept += 1
        heapq.heappush(self._due, (self.now + seconds, self._slept, woken))
        await woken

    async def run(self) -> None:
        """Wake the next sleeper whenever nobody has anything left to do."""
        while True:
            for _ in range(20):
                await asyncio.sleep(0)
            if self._due:
                self.now, _, woken = heapq.heappop(self._due)
                if not woken.done():
                    woken.set_result(None)


class Works:
    """Works of given lengths, and what was seen of them."""

    def __init__(self, lengths: Sequence[float]) -> None:
        self.lengths = lengths
        self.clock = Clock()
        self.under_way: set[int] = set()
        self.most = 0
        self.begun: dict[int, float] = {}

    async def do(self, at: int) -> int:
        self.under_way.add(at)
        self.most = max(self.most, len(self.under_way))
        self.begun[at] = self.clock.now
        await self.clock.sleep(self.lengths[at])
        self.under_way.discard(at)
        return at

    async def all(self, most: int, micro: int = 1) -> list[int]:
        ticking = asyncio.ensure_future(self.clock.run())
        found = [at async for at in map_concurrently(range(len(self.lengths)), most, self.do, micro=micro)]
        ticking.cancel()
        return found


def least(lengths: Sequence[float], most: int) -> tuple[float, dict[int, float]]:
    """When the last work ends and when each begins, if each is begun in order as soon as a place is free."""
    free = [0.0] * most
    begun = {}
    for at, length in enumerate(lengths):
        begun[at] = heapq.heappop(free)
        heapq.heappush(free, begun[at] + length)
    return max(free), begun


@given(
    st.lists(st.integers(1, 9), max_size=30),
    st.integers(1, 6),
    st.integers(1, 7),
)
async def test_each_item_begins_as_soon_as_there_is_room_whatever_the_micro_batches(
    lengths: list[int], most: int, micro: int
) -> None:
    works = Works(lengths)
    found = await works.all(most, micro)
    ends, begun = least(lengths, most)
    assert sorted(found) == list(range(len(lengths)))
    assert works.most == min(most, len(lengths))
    assert (works.clock.now, works.begun) == (ends, begun)


async def test_items_are_taken_a_micro_batch_at_a_time_and_only_when_there_is_room() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for at in range(100):
            taken.append(at)
            yield at

    async def do(at: int) -> int:
        return at

    async with aclosing(map_concurrently(items(), 4, do, micro=6)) as results:
        assert [await anext(results) for _ in range(2)] == [0, 1]
    assert len(taken) == 6
    taken.clear()
    async with aclosing(map_concurrently(items(), 1, do)) as results:
        assert await anext(results) == 0
    assert len(taken) == 1, "one at a time without micro-batches"


async def test_results_that_nobody_took_keep_their_place() -> None:
    begun: list[int] = []

    async def do(at: int) -> int:
        begun.append(at)
        return at

    async with aclosing(map_concurrently(range(100), 5, do)) as results:
        await anext(results)
        await asyncio.sleep(0.01)
    assert len(begun) == 5


async def test_leaving_early_and_a_work_that_raises_leave_nothing_under_way() -> None:
    ended: list[int] = []

    async def do(at: int) -> int:
        try:
            if at == 1:
                raise ValueError("no such item")
            await asyncio.sleep(0 if at == 0 else 60)
        finally:
            ended.append(at)
        return at

    async with aclosing(map_concurrently([0, 2, 3], 3, do)) as results:
        assert await anext(results) == 0
    assert sorted(ended) == [0, 2, 3]
    ended.clear()
    with pytest.raises(ValueError, match="no such item"):
        [at async for at in map_concurrently([2, 1, 3], 3, do)]
    assert sorted(ended) == [1, 2, 3]


@pytest.mark.parametrize("most", [0, -1, 1.5, "4", None])
def test_a_concurrency_is_a_whole_number_of_at_least_one(most: object) -> None:
    check_concurrency(1)
    with pytest.raises(UsageError, match=re.escape(f"at least 1, got {most!r}")):
        check_concurrency(most)


def test_a_countdown_ends_at_no_seconds() -> None:
    assert count_down(0.0)() == 0.0


async def test_calls_under_one_key_are_made_once_and_a_failure_is_not_kept() -> None:
    once, made = SingleFlight(), 0

    async def call() -> int:
        nonlocal made
        made += 1
        await asyncio.sleep(0)
        if made == 1:
            raise ValueError("once")
        return made

    with pytest.raises(ValueError, match="once"):
        await once("k", call)
    assert await asyncio.gather(once("k", call), once("k", call), once("", call)) == [3, 3, 3]
    assert await once("k", call) == 3


async def test_a_result_that_is_not_good_is_not_kept() -> None:
    once, results = SingleFlight(), iter((1, 2, 3))

    async def call() -> int:
        return next(results)

    assert [await once("k", call, lambda result: result > 1) for _ in range(3)] == [1, 2, 2]


async def test_who_gives_up_leaves_a_shared_call_to_those_who_wait_for_it() -> None:
    once, begun, going = SingleFlight(), [], asyncio.Event()

    async def call() -> str:
        begun.append(len(begun))
        await going.wait()
        return "result"

    first, second = (asyncio.create_task(once("k", call)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    third = asyncio.create_task(once("k", call))
    await asyncio.sleep(0)
    going.set()
    assert await asyncio.gather(second, third) == ["result", "result"]
    assert begun == [0]


async def test_a_shared_call_ends_when_the_last_who_waits_for_it_gives_up() -> None:
    once, ended = SingleFlight(), asyncio.Event()

    async def call() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    waiting = [asyncio.create_task(once("k", call)) for _ in range(2)]
    await asyncio.sleep(0.01)
    waiting[0].cancel()
    await asyncio.sleep(0.01)
    assert not ended.is_set()
    waiting[1].cancel()
    await asyncio.wait(waiting)
    await asyncio.sleep(0.01)
    assert ended.is_set()
