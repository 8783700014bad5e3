"""An endpoint or a tool that goes silent: what is left before the reserve is all that a single call can take."""

import asyncio
import time
from pathlib import Path

import pytest

from hira import Hira, Settings
from hira.core.policy import Completion, Request
from hira.testing.endpoint import Endpoint

SECONDS = 4.0
QUESTION = "How high is the tower of Alta?"
ANSWERING = ("hira", "mars", "matpo", "direct", "rag", "search-o1", "react")


def reply(request: Request) -> Completion:
    """What answers any role."""
    del request
    return Completion(r"The tower of Alta is 31 metres high: \boxed{31 metres} <answer>31 metres</answer>")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "alta.txt").write_text("The tower of Alta is 31 metres high.\n", encoding="utf-8")
    return tmp_path / "docs"


async def ended(hira: Hira) -> tuple[str, str, float]:
    """Status, answer and seconds of a run. What it waits for is never answered."""
    await hira.open_session()
    run = hira.stream(QUESTION)
    began = time.monotonic()
    await run.work()
    return run.answer.status, run.answer.text, time.monotonic() - began


@pytest.mark.heavy
async def test_a_call_that_is_never_answered_leaves_each_workflow_the_time_for_its_answer(docs: Path) -> None:
    async def one(workflow: str) -> tuple[str, str, float, int]:
        with Endpoint(reply, faults=lambda number: "silent" if number == 1 else "") as endpoint:
            settings = Settings(model="m", base_url=endpoint.base_url, docs=(docs,), journal=None, max_time=SECONDS)
            async with Hira(workflow=workflow, settings=settings) as hira:
                return *await ended(hira), len(endpoint.calls)

    for workflow, (status, text, seconds, calls) in zip(
        ANSWERING, await asyncio.gather(*map(one, ANSWERING)), strict=True
    ):
        assert (status, calls) == ("partial", 2), workflow
        assert "31 metres" in text, workflow
        assert 0.8 * SECONDS < seconds < 5 * SECONDS, workflow


@pytest.mark.heavy
async def test_a_silent_model_leaves_half_of_the_time_to_the_one_behind_it(docs: Path) -> None:
    with Endpoint(reply, faults=lambda _: "silent") as silent, Endpoint(reply) as sound:
        model = f"m@{silent.base_url}, m@{sound.base_url}"
        settings = Settings(model=model, docs=(docs,), journal=None, max_time=SECONDS, workflow="direct")
        async with Hira(settings=settings) as hira:
            status, text, seconds = await ended(hira)
    assert (status, len(silent.calls), len(sound.calls)) == ("unverified", 1, 1)
    assert "31 metres" in text
    assert seconds < 5 * SECONDS
