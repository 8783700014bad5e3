"""Faults that were found in the published code of HiRA and WebThinker, each shown not to be one here."""

import asyncio
import json
import threading
from itertools import pairwise
from typing import Any

import pytest

from hira.agents.expert import Task
from hira.agents.experts import DeepSearch, SimpleSearch
from hira.core.errors import EndpointError
from hira.evidence import Source
from hira.policies import open_policy
from hira.testing import Endpoint, ScriptedPolicy
from hira.testing.script import make_context
from hira.tools import Observation, Passage, Toolbox, tool
from hira.workflows import HiRA, rollout

SUBTASK = "I need it. <|begin_call_subtask|>Height of the tower<|end_call_subtask|> and it is 5 m high."
ANSWER = r"Good. \boxed{The tower is 31 m high [s1].}"
DISTILLED = json.dumps({"reasoning": "Looked.", "conclusion": "The tower is 31 m high [s1]."})


@tool
async def search(query: str) -> Observation:
    "Search."
    return Observation(
        passages=(Passage(Source("towers.md", "Towers", "The tower is 31 m high."), f"hit for {query}"),)
    )


BOX = Toolbox(search=search)


@pytest.mark.parametrize("stops", ["keep", "strip", "name"])
async def test_hira_needs_a_server_that_keeps_the_stop_string_here_any_server_will_do(stops: Any) -> None:
    lookups = ['{"queries": ["tower"]}', "31 m [s1]."]
    with Endpoint([SUBTASK, *lookups, DISTILLED, ANSWER], stops=stops) as endpoint:
        policy = open_policy(endpoint.model, base_url=endpoint.base_url, api_key="key")
        record = await rollout(
            HiRA(experts=(SimpleSearch(),), faithful=True), "How high?", make_context(policy, tools=BOX)
        )
        await policy.aclose()
        endpoint.assert_done()
    assert (record.status, record.answer) == ("answered", "The tower is 31 m high [s1].")
    assert record.findings[0].subtask.text == "Height of the tower"


async def test_hiras_explorer_never_sees_its_own_results_here_two_calls_do() -> None:
    policy = ScriptedPolicy(["<|begin_search_query|>tower<|end_search_query|>", r"\boxed{31 m [s1]}"])
    account = await DeepSearch().work(Task("1", "How high?"), make_context(policy, tools=BOX))
    assert "hit for tower" in policy.requests[1].messages[-1].text
    assert account.conclusion == "31 m [s1]"
    assert len(policy.requests) == 2


async def test_hira_loses_the_batch_by_one_malformed_memory_here_not_even_the_question() -> None:
    async def ask(distilled: str) -> str:
        policy = ScriptedPolicy(
            {
                "planner": [SUBTASK, ANSWER],
                "simple_search": ['{"queries": ["t"]}', "31 m [s1]"],
                "coordinator": lambda _: distilled,
            }
        )
        record = await rollout(
            HiRA(experts=(SimpleSearch(),), faithful=True), "How high?", make_context(policy, tools=BOX)
        )
        return record.status

    assert await asyncio.gather(*map(ask, (DISTILLED, '{"fact_memory": [', DISTILLED))) == ["answered"] * 3


async def test_hiras_searches_block_each_other_here_blocking_tools_run_side_by_side() -> None:
    together = threading.Barrier(24)

    @tool
    def slow(query: str) -> str:
        "Blocks until all 24 searches are under way."
        together.wait(timeout=20)
        return query

    async def ask() -> None:
        policy = ScriptedPolicy(['{"queries": ["a", "b", "c"]}', "done"])
        await SimpleSearch().work(Task("1", "x", faithful=True), make_context(policy, tools=Toolbox(search=slow)))

    await asyncio.gather(*(ask() for _ in range(8)))
    assert not together.broken


async def test_hira_fetches_each_page_many_times_here_a_run_reads_it_once() -> None:
    fetched: list[str] = []

    @tool(pure=True)
    async def browse(url: str, intent: str = "") -> Observation:
        "Read a page."
        fetched.append(url)
        await asyncio.sleep(0)
        return Observation(passages=(Passage(Source(url, "Page", f"text {intent}"), "text"),))

    @tool(name="search", pure=True)
    async def hits(query: str) -> Observation:
        "Search."
        pages = [Source(f"https://{at}.example", "Page", query, "hit") for at in range(3)]
        return Observation(passages=tuple(Passage(page, "snippet") for page in pages))

    policy = ScriptedPolicy({"simple_search": lambda request: '{"queries": ["q"]} done'})
    context = make_context(policy, tools=Toolbox(search=hits, browse=browse))
    await asyncio.gather(*(SimpleSearch().work(Task(str(at), "x"), context) for at in range(4)))
    assert sorted(fetched) == ["https://0.example", "https://1.example", "https://2.example"]


async def test_webthinker_ends_with_no_answer_on_a_repeated_query_here_it_is_told_and_goes_on() -> None:
    query = "<|begin_search_query|>tower<|end_search_query|>"
    policy = ScriptedPolicy([query, query, r"\boxed{31 m [s1]}"])
    account = await DeepSearch().work(Task("1", "How high?"), make_context(policy, tools=BOX))
    assert account.conclusion == "31 m [s1]"


async def test_webthinker_burns_its_budget_on_an_invalid_query_here_it_costs_no_search() -> None:
    policy = ScriptedPolicy(
        ["<|begin_search_query|> <|end_search_query|>", "<|begin_search_query|>tower<|end_search_query|>", "31 m [s1]"]
    )
    account = await DeepSearch().work(Task("1", "How high?"), make_context(policy, tools=BOX))
    assert "hit for tower" in account.reasoning
    assert "it is empty" in policy.requests[1].messages[-1].text


async def test_webthinkers_prompt_grows_quadratically_here_by_what_each_turn_brings() -> None:
    queries = [f"Step {at}. <|begin_search_query|>tower {at}<|end_search_query|>" for at in range(9)]
    policy = ScriptedPolicy([*queries, "31 m [s1]"])
    await DeepSearch().work(Task("1", "How high?"), make_context(policy, tools=BOX))
    sizes = [sum(len(message.text) for message in request.messages) for request in policy.requests]
    growth = [later - earlier for earlier, later in pairwise(sizes)]
    assert max(growth) == min(growth)


async def test_webthinker_accepts_an_endpoints_failure_as_an_empty_answer_here_it_is_a_failure() -> None:
    policy = ScriptedPolicy({"planner": [EndpointError("the endpoint is gone")]})
    record = await rollout(HiRA(faithful=True), "How high?", make_context(policy, tools=BOX))
    assert (record.status, record.answer) == ("failed", "")
    assert record.error == "the endpoint is gone"
