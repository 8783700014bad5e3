"""Documents that one question names, on a `Hira` that serves several tenants."""

import asyncio
import gc
from pathlib import Path

import pytest

from hira import Hira
from hira.core.errors import UsageError
from hira.runtime import toolset
from hira.runtime.batch import Question

QUESTION = "How many steps has the tower?"


@pytest.fixture
def tenants(tmp_path: Path) -> Path:
    for number in range(40):
        (tmp_path / f"tenant{number}").mkdir()
        (tmp_path / f"tenant{number}" / "tower.md").write_text(
            f"The tower of tenant {number} has {number + 100} steps."
        )
    return tmp_path


def count_open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def open_hira(tenants: Path, **arguments: object) -> Hira:
    return Hira("offline", workflow="rag", docs=tenants / "tenant0", **arguments)  # type: ignore[arg-type]


async def test_a_question_searches_the_documents_that_it_names(tenants: Path) -> None:
    async with open_hira(tenants) as hira:
        mine, others = await asyncio.gather(hira.ask(QUESTION), hira.ask(QUESTION, docs=tenants / "tenant7"))
        with pytest.raises(UsageError, match="needs a search"):
            await hira.ask(QUESTION, docs=[])
    assert "100 steps" in mine.text
    assert "107 steps" in others.text


async def test_questions_of_many_tenants_do_not_mix(tenants: Path) -> None:
    folders = [tenants / f"tenant{number}" for number in range(40)] * 2
    async with open_hira(tenants) as hira:
        answers = await asyncio.gather(*(hira.ask(QUESTION, docs=folder) for folder in folders))
    for number, answer in enumerate(answers):
        assert f"The tower of tenant {number % 40} has" in answer.text
        assert len(answer.sources) == 1


async def test_an_index_is_opened_once_and_the_oldest_are_closed(tenants: Path) -> None:
    async with open_hira(tenants) as hira:
        tools = (await hira.open_session()).toolset
        first = await tools.with_docs((tenants / "tenant1",))
        await hira.ask(QUESTION, docs=tenants / "tenant1")
        assert await tools.with_docs((tenants / "tenant1",)) is first
        before = count_open_files()
        for number in range(40):
            await hira.ask(QUESTION, docs=tenants / f"tenant{number}")
        gc.collect()
        assert count_open_files() - before <= 4 * toolset.KEPT
        assert "101 steps" in (await hira.ask(QUESTION, docs=tenants / "tenant1")).text


async def test_a_chat_and_a_batch_take_documents_too(tenants: Path) -> None:
    async with open_hira(tenants) as hira:
        chat = hira.chat(docs=tenants / "tenant3")
        assert "103 steps" in (await chat.ask(QUESTION)).text
        questions = [Question(QUESTION, docs=tenants / name) for name in ("missing", "tenant4", "tenant5")]
        answers = [answer async for answer in hira.batch([QUESTION, *questions], concurrency=1)]
    assert [answer.status for answer in answers][1] == "failed"
    assert ["100 steps" in answers[0].text, "104 steps" in answers[2].text, "105 steps" in answers[3].text] == [
        True
    ] * 3


async def test_documents_that_are_missing_are_named(tenants: Path) -> None:
    async with open_hira(tenants) as hira:
        with pytest.raises(UsageError, match="missing"):
            await hira.ask(QUESTION, docs=tenants / "missing")
        with pytest.raises(UsageError, match="must be a path"):
            await hira.ask(QUESTION, docs=5)  # type: ignore[arg-type]


async def test_a_run_is_resumed_with_the_documents_of_its_question(tenants: Path) -> None:
    async with open_hira(tenants, journal=tenants / "runs.sqlite") as hira:
        run = hira.stream(QUESTION, docs=tenants / "tenant9")
        await run.finish()
        with pytest.raises(UsageError, match=r"tenant9"):
            await hira.resume(run.id)
        answer = await (await hira.resume(run.id, docs=tenants / "tenant9")).finish()
    assert "109 steps" in answer.text
