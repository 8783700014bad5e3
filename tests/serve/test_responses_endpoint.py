"""`/v1/responses` with OpenAI's own client: whole, streamed, parsed, continued, and refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from pydantic import BaseModel
from serving import Served, get, served

from hira.journal import Journal
from hira.runtime.replay import replay
from hira.runtime.settings import KeySettings, Settings
from hira.testing import ScriptedPolicy

ASKED, THEN = "How high is the tower of Alta?", "And the one of Brava?"
ALTA, BRAVA = "The tower of Alta is 31 metres high [s1].", "The tower of Brava is 42 metres high [s2]."


class Tower(BaseModel):
    height: int


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "alta.txt").write_text("The tower of Alta is 31 metres high.\n", encoding="utf-8")
    (docs / "brava.txt").write_text("The one of Brava is 42 metres high: its tower.\n", encoding="utf-8")
    return Settings(model="offline", docs=(docs,), verify="lexical", journal=tmp_path / "journal.sqlite")


@pytest.fixture
def server(settings: Settings) -> Iterator[Served]:
    with served(settings) as one:
        yield one


def client_of(server: Served, key: str = "any", **more: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0, **more)


def test_a_response_has_its_course_its_text_and_its_citations_whole_and_streamed(server: Served) -> None:
    with client_of(server) as client:
        whole = client.responses.create(model="hira", input=ASKED, metadata={"case": "7"})
        with client.responses.stream(model="hira", input=ASKED) as stream:
            events = list(stream)
            streamed = stream.get_final_response()
    for one in (whole, streamed):
        assert one.status == "completed"
        assert one.output_text == "The tower of Alta is 31 metres high. [s1]"
        reasoning, message = one.output
        assert reasoning.type == "reasoning"
        assert "Subtask 1" in reasoning.summary[0].text
        assert message.type == "message"
        (cited,) = [mark.to_dict() for mark in message.content[0].annotations]  # type: ignore[union-attr]
        at = len(one.output_text)
        assert cited == {"type": "file_citation", "file_id": "s1", "filename": "alta.txt", "index": at}
        assert one.usage
        assert one.usage.total_tokens == one.usage.input_tokens + one.usage.output_tokens > 100
    assert whole.metadata == {"case": "7"}
    assert [one.sequence_number for one in events if hasattr(one, "sequence_number")] == sorted(
        {one.sequence_number for one in events if hasattr(one, "sequence_number")}
    )
    assert "response.output_text.annotation.added" in [one.type for one in events]
    assert "".join(one.delta for one in events if one.type == "response.output_text.delta") == whole.output_text


def test_a_model_is_parsed_whole_and_streamed(settings: Settings) -> None:
    speaks = ScriptedPolicy([rf"\boxed{{{ALTA}}}", '{"height": 31}'] * 2)
    with served(settings, {"*": speaks}) as server, client_of(server) as client:
        whole = client.responses.parse(model="rag", input=ASKED, text_format=Tower)
        with client.responses.stream(model="rag", input=ASKED, text_format=Tower) as stream:
            streamed = stream.get_final_response()
    assert [one.output_parsed for one in (whole, streamed)] == [Tower(height=31)] * 2


async def test_a_response_continues_another_with_its_sources_and_searches_for_its_own_question(
    settings: Settings,
) -> None:
    speaks = ScriptedPolicy([ALTA, BRAVA, "It is 11 metres higher [s2]."])
    with served(settings, {"*": speaks}) as server, client_of(server) as client:
        first = client.responses.create(model="rag", input=ASKED)
        second = client.responses.create(
            model="rag", input=THEN, previous_response_id=first.id, instructions="Be brief."
        )
    with served(settings, {"*": speaks}) as server, client_of(server) as client:  # from the journal
        client.responses.create(model="rag", input="By how much?", previous_response_id=second.id)
    assert sources_of(second) == ["s2"]
    told = "\n".join(message.text for message in speaks.requests[1].messages)
    assert f'{{"role": "user", "text": "{ASKED}"}}\n{{"role": "assistant", "text": "{ALTA}"}}' in told
    assert "Follow these instructions as well:\nBe brief." in told
    last = "\n".join(message.text for message in speaks.requests[2].messages)
    assert [text in last for text in (ASKED, ALTA, THEN, BRAVA, "Be brief.")] == [True] * 4 + [False]
    journal = Journal(settings.journal or Path())
    try:
        recorded = [entry.id for entry in journal.runs()]
        questions = [entry.question for entry in journal.runs()]
        assert questions == ["By how much?", THEN, ASKED]
        assert all([(await replay(journal, one)).same for one in recorded])
    finally:
        journal.close()


def sources_of(response: Any) -> list[str]:
    return [one.file_id for one in response.output[-1].content[0].annotations]


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_messages_that_are_sent_again_find_the_sources_of_their_answer(settings: Settings, api: str) -> None:
    speaks = ScriptedPolicy([ALTA, BRAVA])
    said: list[Any] = [{"role": "user", "content": ASKED}]
    with served(settings, {"*": speaks}) as server, client_of(server) as client:
        texts = []
        for more in (THEN, ""):
            if api == "chat":
                reply = client.chat.completions.create(model="rag", messages=said)
                texts.append(reply.choices[0].message.content)
                cited = [one["id"] for one in reply.model_extra["hira"]["citations"]]  # type: ignore[index]
            else:
                response = client.responses.create(model="rag", input=said)
                texts.append(response.output_text)
                cited = sources_of(response)
            said += [{"role": "assistant", "content": texts[-1]}, {"role": "user", "content": more}]
    assert (texts, cited) == ([ALTA, BRAVA], ["s2"])
    journal = Journal(settings.journal or Path())
    try:
        latest = journal.runs()[0]
        assert latest.question == THEN
        assert (await replay(journal, latest.id)).same
    finally:
        journal.close()


def test_a_run_that_is_not_to_be_stored_is_nowhere(settings: Settings, server: Served) -> None:
    with client_of(server) as client:
        left = client.responses.create(model="direct", input=ASKED, store=False)
        with pytest.raises(openai.BadRequestError, match="there is no response") as refused:
            client.responses.create(model="direct", input=THEN, previous_response_id=left.id)
    assert refused.value.code == "previous_response_not_found"
    assert get(f"{server.url}/api/runs").json()["runs"] == []
    journal = Journal(settings.journal or Path())
    try:
        assert not journal.runs()
    finally:
        journal.close()


def test_a_response_is_read_again_and_deleted_also_from_the_journal(settings: Settings) -> None:
    with served(settings) as server, client_of(server) as client:
        first = client.responses.create(model="rag", input=ASKED)
        second = client.responses.create(model="rag", input=ASKED, previous_response_id=first.id)
        assert client.responses.retrieve(second.id).output_text == second.output_text
    with served(settings) as server, client_of(server) as client:
        again = client.responses.retrieve(second.id)
        assert (again.output_text, again.previous_response_id) == (second.output_text, first.id)
        assert again.output[-1] == second.output[-1]
        client.responses.delete(first.id)
        for gone in (first.id, "resp_20260101-000000-000000"):
            for ask in (client.responses.retrieve, client.responses.delete):
                with pytest.raises(openai.NotFoundError, match="there is no run"):
                    ask(gone)
        assert [run["id"] for run in get(f"{server.url}/api/runs").json()["runs"]] == [second.id.removeprefix("resp_")]


def test_another_key_cannot_read_or_delete_a_response(settings: Settings) -> None:
    keys = {"keys": {name: {"key": f"key-of-{name}-1"} for name in ("ada", "bob")}}
    with (
        served(settings.with_values(keys, "test")) as server,
        client_of(server, "key-of-ada-1") as ada,
        client_of(server, "key-of-bob-1") as bob,
    ):
        mine = ada.responses.create(model="rag", input=ASKED)
        for ask in (bob.responses.retrieve, bob.responses.delete):
            with pytest.raises(openai.NotFoundError, match="there is no run"):
                ask(mine.id)
        assert ada.responses.retrieve(mine.id).id == mine.id


def test_another_key_cannot_continue_a_response(settings: Settings) -> None:
    keys = {name: KeySettings.model_validate({"key": f"key-of-{name}-1"}) for name in ("ada", "bob")}
    with (
        served(settings.with_values({"keys": keys}, "test")) as server,
        client_of(server, "key-of-ada-1") as ada,
        client_of(server, "key-of-bob-1") as bob,
    ):
        first = ada.responses.create(model="direct", input=ASKED)
        with pytest.raises(openai.BadRequestError, match="there is no response"):
            bob.responses.create(model="direct", input=THEN, previous_response_id=first.id)


TOOL = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False}


def test_what_hira_does_not_do_is_refused_with_what_to_do(server: Served) -> None:
    for more, says in (
        ({"tools": [TOOL]}, "its own tools; remove them"),
        ({"background": True}, "set stream to see the progress"),
        ({"top_logprobs": 3}, "hira has no log-probabilities"),
        ({"include": ["message.output_text.logprobs"]}, "include: 'message.output_text.logprobs': hira has no"),
        ({"text": {"format": {"type": "yaml"}}}, "use 'text', 'json_schema' or 'json_object'"),
        ({"tools": [TOOL, TOOL], "tool_choice": "required"}, "or require one that takes the answer"),
        ({"text": {"format": {"type": "json_schema", "name": "t"}}}, r"text.format.schema: the schema is missing"),
        ({"previous_response_id": "resp_none"}, "send the earlier messages as input instead"),
        ({"input": []}, "a user message with text is missing"),
        ({"instructions": "Be brief. " * 50_000}, "are more than 400,000"),
        ({"input": [{"type": "computer_call", "call_id": "1"}]}, "'computer_call'"),
    ):
        with client_of(server) as client, pytest.raises(openai.BadRequestError, match=says):
            client.responses.create(**{"model": "direct", "input": ASKED, **more})


def test_a_response_whose_model_fails_ends_its_stream_as_failed(settings: Settings) -> None:
    with served(settings, {"*": ScriptedPolicy([])}) as server, client_of(server) as client:
        *_, last = client.responses.create(model="direct", input=ASKED, stream=True)
    assert last.type == "response.failed"
    assert last.response.error
    assert last.response.error.message
