"""`hira serve` with OpenAI's own client: plain, streamed, cancelled, with a wrong key, and with nonsense."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from pydantic import BaseModel
from serving import Served, get, post, served

from hira.agents.trajectory import Rollout
from hira.evidence import Source, verify
from hira.runtime.answer import answer_of
from hira.runtime.settings import KeySettings, Settings
from hira.server import chat, responses
from hira.testing import Endpoint, ScriptedPolicy
from hira.workflows import WORKFLOWS

TOWERS = {"Alta": 31, "Brava": 42}
QUESTION = "How high is the tower of Alta?"


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    for name, metres in TOWERS.items():
        (folder / f"{name}.txt").write_text(f"The tower of {name} is {metres} metres high.\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def open_server(docs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    journal = tmp_path_factory.mktemp("state") / "journal.sqlite"
    with served(Settings(model="offline", docs=(docs,), journal=journal)) as server:
        yield server


OPENED: list[openai.OpenAI] = []


@pytest.fixture(autouse=True)
def _closing_clients() -> Iterator[None]:
    """Close the clients after each test: an open one would be collected, with a warning, during another test."""
    yield
    while OPENED:
        OPENED.pop().close()


def client_of(server: Served, key: str = "any", **more: Any) -> openai.OpenAI:
    OPENED.append(openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0, **more))
    return OPENED[-1]


def asked(client: openai.OpenAI, question: str = QUESTION, model: str = "hira", **more: Any) -> Any:
    return client.chat.completions.create(model=model, messages=[{"role": "user", "content": question}], **more)


def test_there_is_a_model_for_each_workflow(open_server: Served) -> None:
    client = client_of(open_server)
    first, *others = [model.id for model in client.models.list()]
    assert first == Settings().workflow
    assert sorted([first, *others]) == sorted(WORKFLOWS)
    assert client.models.retrieve("mars").id == "mars"


def test_an_answer_comes_with_its_citations_reasoning_and_what_all_roles_took(open_server: Served) -> None:
    reply = asked(client_of(open_server))
    (choice,) = reply.choices
    assert choice.message.content == "The tower of Alta is 31 metres high. [s1]"
    assert choice.finish_reason == "stop"
    (annotation,) = choice.message.annotations
    cited = annotation.url_citation
    assert choice.message.content[cited.start_index : cited.end_index] == "[s1]"
    assert "Alta" in cited.url
    assert "Subtask 1" in choice.message.reasoning_content
    told = reply.model_extra["hira"]
    assert (told["status"], told["workflow"]) == ("answered", "hira")
    assert told["calls"] > 3
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens > 100


def test_a_stream_tells_the_work_as_reasoning_then_the_answer_then_what_it_took(open_server: Served) -> None:
    chunks = list(asked(client_of(open_server), model="mars", stream=True, stream_options={"include_usage": True}))
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    reasoning = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
    content = "".join(delta.content or "" for delta in deltas)
    assert "search(" in reasoning
    assert content == "The tower of Alta is 31 metres high. [s1]"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage.total_tokens > 0
    assert not chunks[-1].choices


@pytest.mark.parametrize(
    ("stop", "text", "marks"),
    [
        (" metres", "The tower of Alta is 31", 0),
        (["Brava", "[s1]", " [s1]"], "The tower of Alta is 31 metres high.", 0),
        (["Brava"], "The tower of Alta is 31 metres high. [s1]", 1),
        ([], "The tower of Alta is 31 metres high. [s1]", 1),
    ],
)
def test_a_text_ends_before_the_first_stop_string_streamed_or_not(
    open_server: Served, stop: str | list[str], text: str, marks: int
) -> None:
    client = client_of(open_server)
    (choice,) = asked(client, model="rag", stop=stop).choices
    assert (choice.message.content, choice.finish_reason) == (text, "stop")
    cited = [mark.url_citation for mark in choice.message.annotations]
    assert [
        choice.message.content[mark.start_index : mark.end_index] for mark in cited if mark.end_index > len(text)
    ] == []
    assert sum(text[mark.start_index : mark.end_index] == "[s1]" for mark in cited) == marks
    deltas = [chunk.choices[0].delta for chunk in asked(client, model="rag", stop=stop, stream=True) if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == text


def test_a_body_of_100_mb_is_refused_and_the_server_stays_up(open_server: Served) -> None:
    def body() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 2**20

    with httpx.Client() as client:
        try:
            reply = client.post(
                f"{open_server.url}/v1/chat/completions", content=body(), headers={"content-type": "application/json"}
            )
            assert reply.status_code == 413
        except httpx.WriteError:
            pass  # the server need not read what it has refused
    assert asked(client_of(open_server)).choices[0].message.content


def test_the_conversation_so_far_is_told_with_the_question(docs: Path) -> None:
    with Endpoint(["It is 31 metres high."]) as endpoint:
        settings = Settings(model="m", base_url=endpoint.base_url, docs=(docs,), api_key="k")
        with served(settings) as server:
            turns = [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Which towers are there?"},
                {"role": "assistant", "content": "Alta and Brava."},
                {"role": "user", "content": "How high is the first?"},
            ]
            client_of(server).chat.completions.create(model="direct", messages=turns)  # type: ignore[arg-type]
        told = json.dumps(endpoint.requests[-1].body)
    assert all(part in told for part in ("How high is the first?", "Alta and Brava."))
    assert "Follow these instructions as well:\\nBe brief." in told


KEYS = {
    "ada": KeySettings.model_validate({"key": "key-of-ada-1", "concurrency": 2}),
    "bob": KeySettings.model_validate({"key": "key-of-bob-2", "max_tokens": 3000}),
}


@pytest.fixture(scope="module")
def keyed_server(docs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    journal = tmp_path_factory.mktemp("keyed") / "journal.sqlite"
    with served(Settings(model="offline", docs=(docs,), journal=journal, keys=KEYS)) as server:
        yield server


def test_a_wrong_key_is_refused_everywhere(keyed_server: Served) -> None:
    for key in ("wrong", "key-of-ada-", "key-of-ada-11"):
        with pytest.raises(openai.AuthenticationError):
            asked(client_of(keyed_server, key))
        for path in ("/v1/models", "/api/runs", "/api/runs/any"):
            assert get(keyed_server.url + path, headers={"authorization": f"Bearer {key}"}).status_code == 401


def test_nobody_sees_or_changes_what_another_key_has_asked(keyed_server: Served) -> None:
    run = asked(client_of(keyed_server, "key-of-ada-1")).model_extra["hira"]["run_id"]

    def seen(key: str, path: str) -> httpx.Response:
        return get(keyed_server.url + path, headers={"authorization": f"Bearer {key}"})

    assert run in [one["id"] for one in seen("key-of-ada-1", "/api/runs").json()["runs"]]
    assert run not in [one["id"] for one in seen("key-of-bob-2", "/api/runs").json()["runs"]]
    assert seen("key-of-ada-1", f"/api/runs/{run}").json()["answer"]["status"] == "answered"
    for path in (f"/api/runs/{run}", f"/api/runs/{run}/events"):
        assert seen("key-of-bob-2", path).status_code == 404
    for path, sent in (("approve", {"decisions": [{"id": "1"}]}), ("stop", {}), ("resume", {})):
        headers = {"authorization": "Bearer key-of-bob-2"}
        assert post(f"{keyed_server.url}/api/runs/{run}/{path}", json=sent, headers=headers).status_code == 404
    assert "key-of" not in run


def test_a_key_that_has_spent_its_budget_is_told_so(keyed_server: Served) -> None:
    bob = client_of(keyed_server, "key-of-bob-2")
    spent = []
    with suppress(openai.RateLimitError):
        while sum(spent) < 3000:
            spent.append(asked(bob).usage.total_tokens)
    assert 0 < sum(spent) <= 3000
    assert all(spent), "a run that nothing was left for was begun"
    with pytest.raises(openai.RateLimitError, match="budget of the key 'bob' is used up"):
        asked(bob)
    streamed = asked(bob, stream=True)
    with pytest.raises(openai.APIError, match="budget of the key"):
        list(streamed)
    assert asked(client_of(keyed_server, "key-of-ada-1")).choices


def test_an_endpoint_that_refuses_its_key_is_no_fault_of_the_client(docs: Path) -> None:
    with Endpoint(faults=lambda _: "401") as endpoint:
        settings = Settings(model="m", base_url=endpoint.base_url, docs=(docs,), api_key="secret-of-the-server")
        with served(settings) as server, pytest.raises(openai.APIStatusError) as failed:
            asked(client_of(server))
    assert failed.value.status_code == 502
    assert "secret-of-the-server" not in str(failed.value)
    assert endpoint.base_url not in str(failed.value)


ANSWER = r"\boxed{The tower of Alta is 31 metres high [s1].}"


class Tower(BaseModel):
    height: int


def structured(docs: Path) -> Settings:
    return Settings(docs=(docs / "Alta.txt",), verify="lexical", journal=None)


def test_the_official_client_parses_a_model_whole_and_streamed(docs: Path) -> None:
    speaks = ScriptedPolicy([ANSWER, '{"height": 31}'] * 2)
    asked: dict[str, Any] = {"messages": [{"role": "user", "content": QUESTION}], "response_format": Tower}
    with served(structured(docs), {"*": speaks}) as server:
        completions = client_of(server).chat.completions
        whole = completions.parse(model="rag", **asked)
        with completions.stream(model="rag", **asked) as stream:
            streamed = stream.get_final_completion()
    assert [one.choices[0].message.parsed for one in (whole, streamed)] == [Tower(height=31)] * 2
    assert whole.model_extra
    assert whole.model_extra["hira"]["output_sources"] == {"height": ["s1"]}


def test_without_a_value_the_text_is_a_refusal(docs: Path) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "tower", "schema": Tower.model_json_schema()}}
    asked = {"model": "rag", "messages": [{"role": "user", "content": "How high?"}], "response_format": form}
    with served(structured(docs), {"*": ScriptedPolicy([ANSWER, "tall", "very tall"])}) as server:
        message = post(f"{server.url}/v1/chat/completions", json=asked).json()["choices"][0]["message"]
    assert message["content"] is None
    assert "31 metres" in message["refusal"]


def test_annotations_name_the_page_of_a_document() -> None:
    read = Source(
        "report.pdf", "Report", "It is 31 metres high.\n\nIt is red.", "file", "s1", ((0, "p. 3"), (23, "p. 4"))
    )
    record = Rollout("r", "How high?", "rag", answer="It is 31 metres high [s1]. It is red [s1].")
    record.sources.add(read)
    record.citations = verify(record.answer, record.sources)
    answer = answer_of(record, "scripted")
    marks = [one["url_citation"] for one in chat.annotations(answer, answer.text)]
    assert [(one["url"], one["title"]) for one in marks] == [
        ("file:report.pdf#page=3", "Report, p. 3"),
        ("file:report.pdf#page=4", "Report, p. 4"),
    ]
    assert [one["place"] for one in responses.annotations(answer, answer.text)] == ["p. 3", "p. 4"]
