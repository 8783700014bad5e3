"""Models that never end, only think, are only slow, or do not do what they are asked: each run ends soon and says
why."""

import asyncio
import itertools
import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hira import Hira, Settings
from hira.core.budget import CLOSING, INTERRUPTED_TOKENS, RECORD, REPLY
from hira.core.events import Event, Notice
from hira.core.policy import Completion, Request, Usage
from hira.runtime.answer import Answer
from hira.testing import Endpoint, calling
from hira.testing.faults import Fault, delta
from hira.testing.server import Exchange

QUESTION = "When was ASEAN founded?"
FACT = "ASEAN was founded on 8 August 1967 [s1]."
READ = "- Passages read so far, without a conclusion yet:\n“ASEAN was founded on 8 August 1967 in Bangkok.” [s1]"
WORKFLOWS = ["rag", "react", "hira"]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "asean.txt").write_text("ASEAN was founded on 8 August 1967 in Bangkok.\n", encoding="utf-8")
    return tmp_path / "docs"


def writing(words: Iterable[str], field: str = "content") -> Fault:
    """A stream of words without end."""

    async def act(exchange: Exchange) -> None:
        await exchange.begin()
        for word in words:
            piece = delta(word) if field == "content" else delta(None, **{field: word})
            await exchange.chunk(b"data: " + json.dumps(piece).encode() + b"\n\n")
            await asyncio.sleep(0.005)

    return Fault(act)


def counting() -> Iterator[str]:
    return (f"{number} " for number in itertools.count())


def settings_of(endpoint: Endpoint, docs: Path, **more: Any) -> Settings:
    return Settings(model=endpoint.model, base_url=endpoint.base_url, docs=(docs,), cache=None, journal=None, **more)


async def ask(endpoint: Endpoint, docs: Path, *, stop_after: float = 0, **more: Any) -> tuple[Answer, list[str], float]:
    """The answer, the notices, and how long it took."""
    heard: list[str] = []

    def read(event: Event) -> None:
        if isinstance(event, Notice):
            heard.append(event.text)

    began = time.monotonic()
    async with Hira(settings=settings_of(endpoint, docs, **more)) as hira:
        run = hira.stream(QUESTION)
        if stop_after:
            asyncio.get_running_loop().call_later(stop_after, run.stop)
        await run.work(read, stream=True)
    return run.answer, heard, time.monotonic() - began


def lengths(endpoint: Endpoint) -> list[Any]:
    return [call.body.get("max_tokens") for call in endpoint.calls]


async def test_every_reply_is_bounded_and_short_turns_have_less(docs: Path) -> None:
    replies = [
        calling("subtask", task="look it up"),
        '{"expert": "simple_search"}',
        '{"queries": ["ASEAN founded"]}',
        "ASEAN was founded on 8 August 1967 [s1].",
        '{"reasoning": "", "conclusion": "It was founded on 8 August 1967 [s1].", "facts": [], "resources": []}',
        "ASEAN was founded on 8 August 1967 [s1].",
    ]
    with Endpoint(replies) as endpoint:
        answer, _, _ = await ask(endpoint, docs, workflow="hira", workflows={"hira": {"faithful": True}})
        assert (answer.status, set(lengths(endpoint))) == ("answered", {REPLY, RECORD})
        schemas = [call.body["max_tokens"] for call in endpoint.calls if "response_format" in call.body]
    assert set(schemas) == {RECORD}


async def test_an_answer_that_has_to_be_given_is_shorter(docs: Path) -> None:
    searches = [calling("search", query=f"ASEAN {at}") for at in range(10)]
    with Endpoint([*searches, "It was founded on 8 August 1967 [s1]."]) as endpoint:
        await ask(endpoint, docs, workflow="react", workflows={"react": {"calls": 10}})
        assert lengths(endpoint) == [*[REPLY] * 10, CLOSING]


async def test_the_answer_of_a_model_that_thinks_has_room_for_its_thoughts(docs: Path) -> None:
    def think(request: Request) -> Completion:
        search, said = calling("search", query="ASEAN"), "It was founded on 8 August 1967 [s1]."
        return Completion(search if request.tools else said, reasoning="Hm.", usage=Usage(1, 50, 20))

    with Endpoint(think) as endpoint:
        await ask(endpoint, docs, workflow="react", workflows={"react": {"calls": 1}})
        assert set(lengths(endpoint)) == {REPLY}


async def test_a_model_that_only_thinks_ends_the_run_with_what_to_do(docs: Path) -> None:
    def think(request: Request) -> Completion:
        most = request.sampling.max_tokens or 0
        return Completion("", reasoning="Hm. Well. ", finish="length", usage=Usage(1, 50, most))

    with Endpoint(think) as endpoint:
        answer, _, _ = await ask(endpoint, docs, workflow="react")
        assert lengths(endpoint) == [REPLY, 2 * REPLY]
        assert (answer.status, answer.text) == ("failed", "")
        assert "the model thought and gave no answer within 12,288 tokens" in answer.error
        assert "--max-reply-tokens" in answer.error
        await ask(endpoint, docs, workflow="react", max_reply_tokens=500)
        assert lengths(endpoint)[2:] == [500], "nothing exceeds what somebody set"


async def test_no_run_is_longer_than_its_time_whatever_the_model_writes(docs: Path) -> None:
    with Endpoint(faults=lambda _: writing(counting())) as endpoint:
        answer, _, took = await ask(endpoint, docs, workflow="react", max_time=1)
    assert took < 10  # the model would write for ever
    assert answer.status == "partial"
    assert answer.text.startswith("0 1 2 3"), "what had come of the last reply is the answer"
    assert answer.rollout.usage.completion_tokens > 20, "and all of it is counted"


async def test_what_has_streamed_in_is_the_answer_when_the_time_after_an_interrupt_is_over(docs: Path) -> None:
    with Endpoint(faults=lambda _: writing(counting())) as endpoint:
        answer, _, took = await ask(endpoint, docs, workflow="rag", stop_after=0.3, max_time=1.5)
        assert lengths(endpoint) == [REPLY, INTERRUPTED_TOKENS]
    assert took < 10
    assert answer.status == "interrupted"
    assert answer.text.startswith("0 1 2 3")


@pytest.mark.parametrize("workflow", WORKFLOWS)
async def test_a_model_that_echoes_its_prompt_gives_no_answer(workflow: str, docs: Path) -> None:
    def echo(request: Request) -> str:
        return "\n\n".join(message.text for message in request.messages)

    with Endpoint(echo) as endpoint:
        answer, heard, _ = await ask(endpoint, docs, workflow=workflow)
    assert answer.status == "failed"
    assert "the model wrote no answer" in answer.error
    assert answer.text == (READ if workflow == "rag" else ""), "nothing of the prompt is an answer"
    assert len(endpoint.calls) <= 4
    assert any("repeats its prompt" in text for text in heard)


async def test_what_a_model_says_after_an_echo_is_its_answer(docs: Path) -> None:
    with Endpoint(lambda request: f"{request.messages[-1].text}\n{FACT}") as endpoint:
        answer, _, _ = await ask(endpoint, docs, workflow="rag")
    assert (answer.text, answer.status, len(endpoint.calls)) == (FACT, "answered", 1)


@pytest.mark.parametrize("workflow", ["rag", "react"])
async def test_json_where_prose_is_asked_for_is_the_answer_as_it_is(workflow: str, docs: Path) -> None:
    with Endpoint(lambda _: f'{{"answer": "{FACT}"}}') as endpoint:
        answer, _, _ = await ask(endpoint, docs, workflow=workflow)
    assert answer.text.replace(" [s1]", "") == '{"answer": "ASEAN was founded on 8 August 1967."}'
    assert len(endpoint.calls) <= 4


@pytest.mark.parametrize("mark", ["[s1]", "[1]", r"\boxed{s1}"])
async def test_the_id_of_a_source_is_no_answer(mark: str, docs: Path) -> None:
    with Endpoint(lambda _: mark) as endpoint:
        answer, _, _ = await ask(endpoint, docs, workflow="rag")
    assert (answer.status, answer.text) == ("failed", "")
    assert "the model wrote no answer" in answer.error


@pytest.mark.parametrize("workflow", WORKFLOWS)
async def test_a_window_of_two_thousand_tokens_is_kept_to(workflow: str, docs: Path) -> None:
    for at in range(30):
        text = " ".join(f"ASEAN was founded in the year {year} as note {at} says." for year in range(300))
        (docs / f"note{at}.txt").write_text(text, encoding="utf-8")
    asked: list[Request] = []

    def reply(request: Request) -> str:
        asked.append(request)
        return FACT

    entry = {"id": "scripted", "object": "model", "max_model_len": 2048}
    pages = {"/v1/models": {"object": "list", "data": [entry]}}
    with Endpoint(reply, pages=pages) as endpoint:
        answer, _, _ = await ask(endpoint, docs, workflow=workflow)
    assert len(endpoint.calls) <= 10
    assert answer.status in ("answered", "insufficient_evidence", "unverified")
    sizes = [sum(len(message.text) for message in request.messages) for request in asked]
    assert max(sizes) < 2048 * 4.5
    assert all((request.sampling.max_tokens or 0) <= 2048 for request in asked)
