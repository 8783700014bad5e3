"""Runs of the journal, as the server shows them: of every workflow, of other versions, deleted, and of programs."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import connect

from hira import Hira, tool
from hira.core.events import Event, Notice
from hira.journal import Journal
from hira.runtime.settings import Settings

QUESTION = "Where did the builder of the tower of Alta study?"


async def ran(client: httpx.AsyncClient, workflow: str = "hira") -> str:
    """Run the question to its end and return the name of the run."""
    run = (await client.post("/api/runs", json={"question": QUESTION, "workflow": workflow})).json()["id"]
    await client.get(f"/api/runs/{run}/events")
    return str(run)


async def told(client: httpx.AsyncClient, run: str) -> list[dict[str, Any]]:
    reply = await client.get(f"/api/runs/{run}/events")
    return [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: ")]


@pytest.mark.parametrize("workflow", ["mars", "matpo", "react"])
async def test_a_run_of_any_workflow_is_told_from_the_journal_as_it_was(settings: Settings, workflow: str) -> None:
    async with connect(settings) as client:
        run = await ran(client, workflow)
        live = (await client.get(f"/api/runs/{run}")).json()
    async with connect(settings) as client:
        later = (await client.get(f"/api/runs/{run}")).json()
    assert "Lund" in live["answer"]["answer"]
    assert later["answer"] == live["answer"]
    assert later["texts"] == live["texts"]


async def test_a_question_of_the_page_follows_an_earlier_run_also_from_the_journal(settings: Settings) -> None:
    async with connect(settings) as client:
        first = await ran(client)
    async with connect(settings) as client:
        body = {"question": "And where did she keep bees?", "workflow": "hira", "follows": first}
        begun = (await client.post("/api/runs", json=body)).json()
        assert (await told(client, begun["id"]))[-1]["follows"] == first
        missing = await client.post("/api/runs", json={**body, "follows": "20260101-000000-000000"})
        assert (missing.status_code, missing.json()["error"]["param"]) == (400, "follows")
    async with connect(settings) as client:
        assert (await client.get(f"/api/runs/{begun['id']}")).json()["follows"] == first


async def test_two_servers_of_one_journal_continue_and_list_each_others_runs(settings: Settings) -> None:
    async with connect(settings) as first, connect(settings) as second:
        run = await ran(first)
        response = await second.get(f"/v1/responses/resp_{run}")
        assert "Lund" in response.json()["output"][-1]["content"][0]["text"]
        body = {"model": "rag", "input": QUESTION, "previous_response_id": f"resp_{run}"}
        assert (await second.post("/v1/responses", json=body, timeout=60)).json()["status"] == "completed"
        assert len((await first.get("/api/runs")).json()["runs"]) == 2


async def test_the_page_learns_which_models_and_documents_answer_but_not_where_they_are(settings: Settings) -> None:
    async with connect(settings) as client:
        assert (await client.get("/api/setup")).json() == {"models": ["offline"], "documents": ["docs"]}


async def test_what_is_deleted_from_the_journal_is_told_no_more(settings: Settings) -> None:
    assert settings.journal is not None
    async with connect(settings) as client:
        kept, listed, opened = [await ran(client) for _ in range(3)]
        await client.get("/api/runs")
        journal = Journal(settings.journal)
        journal.delete([listed, opened])
        journal.close()
        for path in ("", "/events"):
            reply = await client.get(f"/api/runs/{opened}{path}")
            assert (reply.status_code, "may have been deleted" in reply.text) == (404, True)
        assert (await client.post(f"/api/runs/{opened}/resume", json={})).status_code == 404
        assert [one["id"] for one in (await client.get("/api/runs")).json()["runs"]] == [kept]
        assert (await client.get(f"/api/runs/{listed}")).status_code == 404
        assert (await client.get(f"/api/runs/{kept}")).json()["status"] == "answered"


@dataclass(frozen=True, slots=True)
class Dreamt(Event):
    """An event that this version does not have."""

    text: str


@dataclass(frozen=True, slots=True)
class Written(Event):
    """A piece of text as another version may record it, with an unknown field."""

    conversation: str
    text: str
    reasoning: bool
    colour: str = "red"


Written.__name__ = "TurnText"


async def test_what_another_version_recorded_does_not_end_the_stream(settings: Settings, tmp_path: Path) -> None:
    assert settings.journal is not None
    journal = Journal(settings.journal)
    log = journal.begin(
        "20260101-000000-000000", QUESTION, "hira", settings={"model": "offline"}, files=(), versions={}
    )
    cut = f"in {tmp_path}/docs/towers.txt"
    written = [Written("1", one, reasoning=False) for one in (cut[:8], cut[8:])]
    for event in (Dreamt("of bees"), *written, Notice("the end")):
        log.event(event)
    log.end("answered", "", "")
    journal.close()
    async with connect(settings) as client:
        first, *pieces, last, ended = await told(client, "20260101-000000-000000")
    assert (first["event"], first["text"]) == ("Dreamt", "of bees")
    assert {one["event"] for one in pieces} == {"TurnText"}
    assert "".join(one["text"] for one in pieces) == "in towers.txt"  # of the folder, cut in two, nothing is told
    assert (last["event"], ended["event"]) == ("Notice", "Ended")


@tool
def tide(harbour: str) -> str:
    """Today's tide in a harbour."""
    return harbour


async def test_a_run_that_a_program_made_with_tools_of_its_own_does_not_go_on_here(settings: Settings) -> None:
    async with Hira(settings=settings, tools=[tide]) as hira:
        run = hira.stream(QUESTION)
        async for _ in run:
            break
    async with connect(settings) as client:
        (line,) = (await client.get("/api/runs")).json()["runs"]
        assert (line["status"], line["resumable"]) == ("interrupted", False)
        reply = await client.post(f"/api/runs/{run.id}/resume", json={})
    assert (reply.status_code, "with its own tool 'tide'" in reply.text) == (409, True)


async def test_files_that_a_journal_of_a_folder_names_are_not_read_from_the_page(
    settings: Settings, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("The word is heron.", encoding="utf-8")
    async with Hira(settings=settings) as hira:
        run = hira.stream("What is the word?", files=secret)
        async for _ in run:
            break
    named = settings.with_values({"journal": settings.journal}, str(tmp_path / "hira.toml"))
    for given, status in ((named, 409), (settings, 201)):
        async with connect(given) as client:
            reply = await client.post(f"/api/runs/{run.id}/resume", json={})
            assert (reply.status_code, "hira resume" in reply.text) == (status, status == 409), reply.text
