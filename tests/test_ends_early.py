"""A block that ends when it must: by an error from outside, or when its seconds are over."""

import asyncio

import pytest

from hira.core.concurrency import EndsEarly, count_down
from hira.core.errors import Stop


async def test_an_error_from_outside_ends_what_waits_and_is_raised_there() -> None:
    blocks: set[EndsEarly] = set()
    block = EndsEarly(blocks=blocks)
    asyncio.get_running_loop().call_soon(block.end, Stop("over"))
    with pytest.raises(Stop, match="over"):  # noqa: PT012 - the block is what is tested
        async with block:
            assert blocks == {block}
            await asyncio.Event().wait()
    assert not blocks
    task = asyncio.current_task()
    assert task
    assert task.cancelling() == 0, "nothing is left of the cancellation"


async def test_the_first_error_counts_and_a_block_that_has_ended_does_not_begin() -> None:
    block = EndsEarly()
    block.end(Stop("first"))
    block.end(Stop("second"))
    with pytest.raises(Stop, match="first"):
        async with block:
            raise AssertionError
    await asyncio.sleep(0)


async def test_what_needs_no_waiting_is_done_even_without_time() -> None:
    done = []
    with pytest.raises(TimeoutError):  # noqa: PT012 - the block is what is tested
        async with EndsEarly(count_down(0.0)):
            done.append("first")
            await asyncio.Event().wait()
    assert done == ["first"]


async def test_a_block_ends_when_its_seconds_are_over_and_not_before() -> None:
    began = asyncio.get_running_loop().time()
    block = EndsEarly(count_down(0.05), lambda: Stop("late"))
    with pytest.raises(Stop, match="late"):
        async with block:
            await asyncio.Event().wait()
    assert block.began is not None
    assert asyncio.get_running_loop().time() - began >= 0.05
    async with EndsEarly(lambda: None), EndsEarly(count_down(60.0)):
        await asyncio.sleep(0.01)


async def test_a_cancellation_from_elsewhere_stays_one() -> None:
    async def wait() -> None:
        async with EndsEarly(count_down(60.0)):
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_another_error_inside_is_raised_as_it_is() -> None:
    with pytest.raises(ValueError, match="own"):
        async with EndsEarly(count_down(60.0)):
            raise ValueError("own")


async def test_outer_and_inner_block_each_raise_their_own_error() -> None:
    outer, inner = EndsEarly(), EndsEarly()
    seen = []
    with pytest.raises(Stop, match="outer"):  # noqa: PT012 - the block is what is tested
        async with outer:
            try:
                async with inner:
                    inner.end(Stop("inner"))
                    await asyncio.Event().wait()
            except Stop as error:
                seen.append(error.what)
            outer.end(Stop("outer"))
            await asyncio.Event().wait()
    assert seen == ["inner"]
