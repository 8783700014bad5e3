"""Queries that a model adds to a search: what they find, what the journal keeps, and what happens without them."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from hira import Answer, Hira
from hira.core.errors import EndpointError
from hira.core.policy import Request
from hira.journal import Journal
from hira.runtime.replay import replay
from hira.runtime.settings import Settings
from hira.testing import ScriptedPolicy, calling

QUESTION = "Who treats sick whales?"
ANSWER = "Sick whales are treated by Ida Vey [s1]."


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "whales.md").write_text("# Whales\n\nSick whales are brought to the veterinarian of Ahle.\n")
    (folder / "vey.md").write_text("# Ida Vey\n\nIda Vey is veterinarian in the harbour of Ahle.\n")
    return folder


async def ask(docs: Path, policy: ScriptedPolicy, **more: object) -> Answer:
    settings = Settings(docs=(str(docs),), verify="lexical", rewrite=True, **more)
    async with Hira(settings=settings, policies={"*": policy}) as hira:
        return await hira.ask(QUESTION)


def plan(*queries: str) -> str:
    return json.dumps({"queries": queries})


def read_locations(answer: Answer) -> list[str]:
    return [source.location for source in answer.sources]


@pytest.mark.parametrize("workflow", ["rag", "react"])
async def test_what_the_first_search_found_leads_to_queries_that_find_more(docs: Path, workflow: str) -> None:
    search = [calling("search", query=QUESTION)] if workflow == "react" else []
    policy = ScriptedPolicy({"reasoner": [*search, plan("veterinarian Ahle", QUESTION, "veterinarian name"), ANSWER]})
    answer = await ask(docs, policy, workflow=workflow, instructions="Answer in Latin.")
    assert read_locations(answer) == ["whales.md", "vey.md"], "the question's own hit stays first"
    writing = next(request for request in policy.requests if request.conversation.startswith("search-"))
    assert "brought to the veterinarian of Ahle" in writing.messages[-1].text
    assert "Latin" not in writing.messages[-1].text


async def test_the_record_of_rewritten_queries_replays_without_a_model(docs: Path, tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    policy = ScriptedPolicy({"reasoner": [plan("veterinarian Ahle"), ANSWER]})
    answer = await ask(docs, policy, workflow="rag", journal=path)
    with closing(Journal(path)) as journal:
        again = await replay(journal, answer.rollout.run)
    assert again.same
    assert read_locations(again.answer) == read_locations(answer) == ["whales.md", "vey.md"]


@pytest.mark.parametrize("reply", ["no plan", plan(), EndpointError("the endpoint is gone")])
async def test_without_other_queries_the_first_search_counts(docs: Path, reply: str | EndpointError) -> None:
    def write(request: Request) -> str:
        if request.conversation.startswith("search-"):
            if isinstance(reply, EndpointError):
                raise reply
            return reply
        return ANSWER

    answer = await ask(docs, ScriptedPolicy({"reasoner": write}), workflow="rag")
    assert read_locations(answer) == ["whales.md"]
