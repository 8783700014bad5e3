"""Models that do not do what they are asked: each run ends soon, by itself, and says what was wrong."""

from pathlib import Path
from typing import Any

import pytest

from hira import Hira, Settings
from hira.core.events import Event, Notice
from hira.core.policy import Request
from hira.runtime.answer import Answer
from hira.testing import Endpoint
from hira.testing.script import Replies

QUESTION = "When was ASEAN founded?"
FACT = "ASEAN was founded on 8 August 1967 [s1]."
READ = "- Passages read so far, without a conclusion yet:\n“ASEAN was founded on 8 August 1967 in Bangkok.” [s1]"
WORKFLOWS = ["rag", "react", "hira"]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "asean.txt").write_text("ASEAN was founded on 8 August 1967 in Bangkok.\n", encoding="utf-8")
    return tmp_path / "docs"


async def ask(reply: Replies, docs: Path, workflow: str, **more: Any) -> tuple[Answer, list[str], int]:
    """The answer, the notices, and how many calls it took."""
    heard: list[str] = []

    def read(event: Event) -> None:
        if isinstance(event, Notice):
            heard.append(event.text)

    with Endpoint(reply, **more) as endpoint:
        settings = Settings(model=endpoint.model, base_url=endpoint.base_url, docs=(docs,), cache=None, journal=None,
                            workflow=workflow, max_time=60)  # fmt: skip
        async with Hira(settings=settings) as hira:
            run = hira.stream(QUESTION)
            await run.work(read, stream=True)
        return run.answer, heard, len(endpoint.calls)


@pytest.mark.parametrize("workflow", WORKFLOWS)
async def test_a_model_that_echoes_its_prompt_gives_no_answer(workflow: str, docs: Path) -> None:
    def echo(request: Request) -> str:
        return "\n\n".join(message.text for message in request.messages)

    answer, heard, calls = await ask(echo, docs, workflow)
    assert answer.status == "failed"
    assert "the model wrote no answer" in answer.error
    assert answer.text == (READ if workflow == "rag" else ""), "nothing of the prompt is an answer"
    assert calls <= 4
    assert any("repeats its prompt" in text for text in heard)


async def test_what_a_model_says_after_an_echo_is_its_answer(docs: Path) -> None:
    answer, _, calls = await ask(lambda request: f"{request.messages[-1].text}\n{FACT}", docs, "rag")
    assert (answer.text, answer.status, calls) == (FACT, "answered", 1)


@pytest.mark.parametrize("workflow", ["rag", "react"])
async def test_json_where_prose_is_asked_for_is_the_answer_as_it_is(workflow: str, docs: Path) -> None:
    answer, _, calls = await ask(lambda _: f'{{"answer": "{FACT}"}}', docs, workflow)
    assert answer.text.replace(" [s1]", "") == '{"answer": "ASEAN was founded on 8 August 1967."}'
    assert calls <= 4


@pytest.mark.parametrize("mark", ["[s1]", "[1]", r"\boxed{s1}"])
async def test_the_id_of_a_source_is_no_answer(mark: str, docs: Path) -> None:
    answer, _, _ = await ask(lambda _: mark, docs, "rag")
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
    answer, _, calls = await ask(reply, docs, workflow, pages=pages)
    assert calls <= 10
    assert answer.status in ("answered", "insufficient_evidence", "unverified")
    sizes = [sum(len(message.text) for message in request.messages) for request in asked]
    assert max(sizes) < 2048 * 4.5
    assert all((request.sampling.max_tokens or 0) <= 2048 for request in asked)
