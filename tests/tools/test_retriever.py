"""A retriever of the user's own: in every workflow, with citations, places and verdicts, and with its faults."""

import asyncio
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hira import Context, Hira
from hira.core.errors import NotTrusted, UsageError
from hira.core.events import Events
from hira.evidence import Source
from hira.journal import Journal
from hira.runtime.services import merge_searches
from hira.runtime.settings import load
from hira.runtime.trace.reading import read
from hira.testing import ScriptedPolicy, calling
from hira.tools.retriever import make_search_tool
from hira.workflows import WORKFLOWS

TOWERS = [
    Source("handbook#12", "The handbook of towers", "The tower of Brevik was built in 1742.", places=((0, "p. 12"),)),
    Source("handbook#13", "The handbook of towers", "The tower of Larvik has 90 steps."),
]
QUESTION = "When was the tower of Brevik built?"
ANSWER = "The tower of Brevik was built in 1742. [s1]"


async def retrieve(query: str) -> list[Source]:
    return [source for source in TOWERS if any(word in source.text for word in query.split())]


class Store:
    """A store that blocks, as a client of a database does."""

    def __call__(self, context: Context[dict[str, str]], query: str) -> list[Source]:
        return [Source(f"{context.deps['tenant']}/1", "Towers", f"The tower of {context.deps['tenant']} is old.")]


@pytest.mark.parametrize("workflow", [name for name in WORKFLOWS if name not in ("direct", "codeact", "multimodal")])
async def test_every_workflow_that_searches_searches_with_a_retriever(workflow: str) -> None:
    async with Hira("offline", search=retrieve, workflow=workflow) as hira:
        answer = await hira.ask(QUESTION)
    assert "1742" in answer.text
    assert "handbook#12" in [source.location for source in answer.sources]


async def test_its_passages_are_cited_with_their_places() -> None:
    policy = ScriptedPolicy([ANSWER])
    async with Hira(policies={"*": policy}, search=retrieve, workflow="rag") as hira:
        answer = await hira.ask(QUESTION)
    (citation,) = answer.citations
    assert (citation.source, citation.place, citation.verdict.value) == ("s1", "p. 12", "supported")
    assert answer.source("s1").location == "handbook#12"
    assert answer.status == "answered"


async def test_it_gets_the_context_of_the_run_and_may_block() -> None:
    policy = ScriptedPolicy([calling("search", query="tower"), "The tower of brevik is old. [s1]"])
    async with Hira(policies={"*": policy}, search=Store(), workflow="react", deps={"tenant": "brevik"}) as hira:
        answer = await hira.ask("How old is the tower?")
    assert [source.location for source in answer.sources] == ["brevik/1"]
    with pytest.raises(UsageError, match="needs deps"):
        await Hira("offline", search=Store()).ask("?")


async def test_documents_and_a_retriever_answer_together(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Brevik\n\nThe tower of Brevik is made of oak.")
    policy = ScriptedPolicy([ANSWER])
    async with Hira(policies={"*": policy}, search=retrieve, docs=tmp_path, workflow="rag") as hira:
        answer = await hira.ask(QUESTION)
    assert [source.location for source in answer.sources] == ["a.md", "handbook#12", "handbook#13"]


def fail(query: str) -> list[Source]:
    raise ConnectionError("the store is away")


async def test_a_store_that_is_away_is_a_failed_call() -> None:
    policy = ScriptedPolicy([calling("search", query="tower"), "I do not know."])
    async with Hira(policies={"*": policy}, search=fail, workflow="react") as hira:
        await hira.ask(QUESTION)
    assert "the store is away" in policy.requests[-1].messages[-1].text


async def test_a_store_that_is_away_leaves_the_documents(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.md").write_text("The tower of Brevik was built in 1742.")
    async with Hira("offline", search=fail, docs=tmp_path) as hira:
        answer = await hira.ask(QUESTION)
    assert (answer.status, [source.location for source in answer.sources]) == ("answered", ["a.md"])
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert ["search failed: a fault in the tool, ConnectionError: the store is away" in line for line in warned] == [
        True
    ]


async def test_a_search_that_hangs_leaves_the_passages_of_the_others() -> None:
    async def wait(query: str) -> list[Source]:
        await asyncio.sleep(3_600)
        return TOWERS

    hanging = replace(make_search_tool(wait), seconds=0.01)
    found = await merge_searches([make_search_tool(retrieve), hanging], Events()).call({"query": "Brevik"})
    assert [passage.source.location for passage in found.passages] == ["handbook#12"]
    assert "search did not finish within 0.01 seconds" in found.text


@pytest.mark.parametrize(
    ("returned", "message"),
    [("text", "returned 'text'"), (None, "returned None"), ([{"text": "x"}], "among its passages"),
     ([Source("", "t", "x")], "among its passages"), ([Source("a", "t", "x", date=2024)], "among its passages")],
)  # fmt: skip
async def test_what_is_no_list_of_sources_is_named(returned: Any, message: str) -> None:
    def wrong(query: str) -> Any:
        return returned

    async with Hira("offline", search=wrong, workflow="rag") as hira:
        with pytest.raises(UsageError, match=message) as raised:
            await hira.ask(QUESTION)
    assert "docs/retriever.md" in str(raised.value)


@pytest.mark.parametrize("workflow", [name for name in WORKFLOWS if name not in ("direct", "codeact", "multimodal")])
async def test_what_is_no_list_of_sources_ends_the_run_of_every_workflow(workflow: str, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("The tower of Brevik is made of oak.")
    async with Hira("offline", search=lambda query: [{"text": query}], docs=tmp_path, workflow=workflow) as hira:
        with pytest.raises(UsageError, match="among its passages"):
            await hira.ask(QUESTION)


async def test_a_slow_retriever_ends_as_a_failed_call_with_the_time_of_the_question() -> None:
    async def wait(query: str) -> list[Source]:
        await asyncio.sleep(3_600)
        return TOWERS

    async with Hira("offline", search=wait, workflow="rag", max_time=0.2) as hira:
        answer = await hira.ask(QUESTION)
    assert answer.status != "answered"


async def test_too_many_and_too_long_passages_are_cut() -> None:
    def flood(query: str) -> Any:
        return (Source(f"n/{number}", "Flood", "The tower stands. " * 100_000) for number in range(10**9))

    policy = ScriptedPolicy([calling("search", query="tower"), "The tower stands. [s1]"])
    async with Hira(policies={"*": policy}, search=flood, workflow="react") as hira:
        answer = await hira.ask(QUESTION)
    assert len(answer.sources) == 20
    assert max(len(source.text) for source in answer.sources) == 20_000


@pytest.mark.parametrize(
    ("given", "message", "fix"),
    [
        (7, "a string or a function of a query, got 7", "async def retrieve"),
        (lambda: (), "a query alone", "async def retrieve"),
        (re.compile(""), "a string or a function of a query, got re.compile", "search=store.search"),
        (Store, "got the class Store", "async def retrieve"),
    ],
)
def test_what_is_no_retriever_is_refused_at_once(given: Any, message: str, fix: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        Hira("offline", search=given)
    assert fix in raised.value.fix


async def test_settings_name_one_and_a_file_of_the_folder_needs_consent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_store.py").write_text(
        "from hira.evidence import Source\n\nasync def retrieve(query: str):\n"
        "    return [Source('n/1', 'Towers', 'The tower of Brevik was built in 1742.')]\n"
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hira.toml").write_text('model = "offline"\nworkflow = "rag"\nsearch = "my_store:retrieve"\n')
    with pytest.raises(NotTrusted, match="runs my_store:retrieve with your rights") as raised:
        load({}, {}, tmp_path, tmp_path)
    raised.value.allow()
    try:
        async with Hira("offline", search="my_store:retrieve", workflow="rag") as hira:
            answer = await hira.ask(QUESTION)
        async with Hira(settings=load({}, {}, tmp_path, tmp_path)) as hira:
            again = await hira.ask(QUESTION)
    finally:
        sys.modules.pop("my_store", None)
    assert [source.location for source in (*answer.sources, *again.sources)] == ["n/1", "n/1"]


async def test_what_is_none_counts_as_left_out() -> None:
    hira = Hira(None, base_url=None, api_key=None, docs=None, search=None, roles=None, workflow=None, tools=None,
                experts=None, policies={"*": ScriptedPolicy([ANSWER])}, hooks=None, instructions=None, verify=None)  # fmt: skip
    async with hira:
        assert (await hira.ask(QUESTION)).text


async def test_the_answer_says_that_a_search_failed(tmp_path: Path) -> None:
    def refuse(query: str) -> list[Source]:
        raise ConnectionError("the store is down")

    async with Hira("offline", search=refuse, workflow="rag", journal=tmp_path / "runs") as hira:
        answer = await hira.ask(QUESTION)
        (notice,) = answer.notices
    assert "the store is down" in notice
    assert answer.json()["notices"] == [notice]
    assert read(Journal(tmp_path / "runs"), answer.rollout.run).answer.notices == (notice,)
