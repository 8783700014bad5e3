"""What ended runs leave behind: nothing that only a collection of garbage would find, which holds up all others."""

import asyncio
import gc
import weakref
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from hira import Hira, Settings, tool
from hira.core.events import Event, Notice
from hira.runtime.run import Run
from hira.server.outside import Deltas, Hidden
from hira.server.runs import WatchedRun
from hira.testing import Endpoint, calling


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


async def lookup(query: str) -> str:
    """Look something up."""
    return f"For {query}, the answer is 42."


async def test_a_run_with_tools_and_a_journal_leaves_no_circle(tmp_path: Path, uncollected: None) -> None:
    with Endpoint([calling("lookup", query="first"), "The answer is 42."] * 2) as endpoint:
        where = {"base_url": endpoint.base_url, "api_key": "k", "journal": tmp_path / "journal.sqlite"}
        async with Hira(endpoint.model, workflow="react", tools=[tool(lookup)], **where) as hira:
            await hira.ask("What is it?")
            gc.collect()  # what the first question has loaded
            assert (await hira.ask("What is it?")).text == "The answer is 42."
            await asyncio.sleep(0)
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            gc.set_debug(0)
            kinds = {type(one) for one in gc.garbage}
            gc.garbage.clear()
    names = {f"{kind.__module__}.{kind.__name__}" for kind in kinds}
    assert not [name for name in names if name.startswith("hira.") and not name.startswith("hira.testing.")]


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
