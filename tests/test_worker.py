"""Functions called in a child process: what comes back, what is bounded, and that the caller's own time is spared."""

import asyncio
import time
from contextlib import closing
from pathlib import Path

import pytest

from hira.core.child import Worker
from hira.core.concurrency import run_apart
from hira.core.errors import ToolError
from hira.core.tokens import count
from hira.evidence import LexicalVerifier, Source, Sources, verify_answer
from hira.evidence.verifiers import verify
from hira.tools.browse import open_page, read
from hira.tools.fetch import Fetched
from tests.tools.made_documents import read_file

SENTENCE = "A long and readable sentence about the harbour of Alta. "


def page(text: str) -> Fetched:
    return Fetched("https://example.org/page", 200, "text/html; charset=utf-8", text.encode())


def test_a_call_returns_what_the_function_returns_and_raises_what_it_raises(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Zoë\n\nOne.", encoding="utf-8")
    with closing(Worker()) as worker:
        assert worker.call(read_file, tmp_path / "a.md") == read_file(tmp_path / "a.md")
        with pytest.raises(ToolError, match="does not exist"):
            worker.call(read_file, tmp_path / "b.md")


async def test_a_large_page_takes_a_fraction_of_the_process_time_that_its_parsing_takes() -> None:
    large = page("<p <" * 2_000 + f"<p>{SENTENCE}</p>" * 10_000)
    await open_page(page(f"<p>{SENTENCE}</p>" * 2_000))  # the child has started
    began = time.process_time()
    apart = await open_page(large)
    middle = time.process_time()
    assert read(large) == apart
    assert middle - began < (time.process_time() - middle) / 4


async def test_claims_on_a_large_source_are_checked_beside_the_loop_with_the_same_verdict() -> None:
    sources = Sources()
    sources.add(Source("https://example.org/", "Alta", SENTENCE * 10_000 + "The tower is 31 metres high."))
    text = "The tower is 31 metres high [s1]. The tower is 99 metres high [s1]."
    await verify_answer(text, sources, "", LexicalVerifier(), seconds=600)
    began = time.process_time()
    citations, reasons = await verify_answer(text, sources, "", LexicalVerifier(), seconds=600)
    middle = time.process_time()
    assert (citations, reasons) == (verify(text, sources), [])
    assert [one.verdict for one in citations] == ["supported", "unsupported"]
    assert middle - began < (time.process_time() - middle) / 4


async def test_calls_that_wait_for_their_turn_take_no_thread_of_others() -> None:
    waiting = [asyncio.create_task(run_apart(10**6, count, SENTENCE * 30_000)) for _ in range(40)]
    await asyncio.sleep(0)
    assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 5) == "free"
    for one in waiting:
        one.cancel()


async def test_a_small_text_is_read_before_large_ones_that_wait() -> None:
    ended: list[str] = []

    async def read_page(name: str, size: int) -> None:
        await run_apart(size, count, SENTENCE * (size // len(SENTENCE)))
        ended.append(name)

    large = [asyncio.create_task(read_page(f"large {number}", 4_000_000)) for number in range(4)]
    await asyncio.sleep(0.01)
    await asyncio.gather(read_page("small", 60_000), *large)
    assert ended.index("small") <= 1
