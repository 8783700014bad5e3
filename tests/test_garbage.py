"""What ended runs leave behind: nothing that only a collection of garbage would find, which holds up all others."""

import asyncio
import gc
import weakref
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from hira import Hira, Settings
from hira.core.events import Event, Notice
from hira.runtime.run import Run
from hira.server.outside import Deltas, Hidden
from hira.server.runs import WatchedRun


def note(run: Run, heard: list[tuple[Run, Event]], event: Event) -> None:
    heard.append((run, event))


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def test_a_run_that_its_own_reader_holds_goes_when_both_are_let_go(tmp_path: Path, uncollected: None) -> None:
    (tmp_path / "kama.txt").write_text("The river Kama is 1805 km long.", encoding="utf-8")
    async with Hira(settings=Settings(model="offline", docs=(tmp_path,))) as hira:
        run = hira.stream("How long is the river Kama?")
        held = weakref.ref(run)

        heard: list[tuple[Run, Event]] = []
        await run.work(partial(note, run, heard))
        assert "1805" in run.answer.text
        del run, heard
        await asyncio.sleep(0)
        assert held() is None


async def test_a_stream_of_events_that_ends_leaves_no_circle(uncollected: None) -> None:
    async with Hira(settings=Settings(model="offline")) as hira:
        told = [Notice("one"), Notice("two")]
        watched = WatchedRun(hira.stream("?"), "rag", Deltas(Hidden((), ())), [*told])
        watched.task = asyncio.create_task(asyncio.sleep(0))
        await watched.task
        assert [event async for news in watched.follow() for event in news] == told
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        gc.set_debug(0)
        left = [one for one in gc.garbage if isinstance(one, StopAsyncIteration)]
        gc.garbage.clear()
        assert not left
