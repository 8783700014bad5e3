"""The web search of a model's vendor: the model finds pages, hira reads them, and only their own text is evidence."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hira import Hira, Settings
from hira.core.budget import Budget
from hira.core.errors import ToolDown, ToolError, UsageError
from hira.core.prices import Price
from hira.journal import Journal
from hira.runtime.replay import replay
from hira.runtime.settings import RoleSettings
from hira.testing import ScriptedPolicy
from hira.testing.server import Exchange, HttpServer, Received
from hira.testing.web import FakeWeb
from hira.tools.search import Cache, VendorSearch, open_client, search_tool

LONG = "The Kama is 1,805 kilometres long"
LINK = "([a.example](https://a.example/kama?utm_source=openai))"
TEXT = f"Two pages:\n- {LONG}. {LINK}\n- It joins the Volga."
SEARCHED = {
    "type": "web_search_call",
    "action": {"type": "search", "sources": [{"type": "url", "url": f"https://{name}.example/"} for name in "ab"]},
}
USED = {"input_tokens": 900, "output_tokens": 100, "input_tokens_details": {"cached_tokens": 0}}


def cite(text: str, url: str, title: str = "The Kama") -> dict[str, Any]:
    end = text.index(")") + 2
    note = {"type": "url_citation", "url": url, "title": title, "start_index": text.index("(["), "end_index": end}
    return {"type": "output_text", "text": text, "annotations": [note]}


def respond(*parts: dict[str, Any], searched: bool = True) -> dict[str, Any]:
    message = {"type": "message", "role": "assistant", "content": list(parts)}
    return {"output": [*([SEARCHED] if searched else []), message], "usage": USED}


@contextmanager
def serve(*answers: Any) -> Iterator[tuple[str, list[Received]]]:
    """A Responses API with these answers, the last again and again: a body, a status with one, or None for never."""
    asked: list[Received] = []

    async def answer(received: Received, exchange: Exchange) -> None:
        asked.append(received)
        made = answers[min(len(asked), len(answers)) - 1]
        if made is None:
            await asyncio.sleep(600)
        await exchange.json(*(made if isinstance(made, tuple) else (200, made)))

    server = HttpServer(answer)
    server.start()
    try:
        yield f"http://127.0.0.1:{server.port}/v1", asked
    finally:
        server.close()


@pytest.fixture
async def client():
    async with open_client({}) as opened:
        yield opened


async def test_the_cited_pages_come_first_with_what_the_model_says_and_then_those_it_only_found(client) -> None:
    with serve(respond(cite(TEXT, "https://a.example/kama?utm_source=openai"))) as (url, asked):
        hits = await VendorSearch(client, "gpt-5-mini", url, "KEY").search("length of the Kama", 3)
    assert [hit.url for hit in hits] == ["https://a.example/kama", "https://a.example/", "https://b.example/"]
    assert (hits[0].title, hits[0].snippet) == ("The Kama", f"{LONG}.")
    (sent,) = asked
    assert (sent.path, sent.headers["authorization"]) == ("/v1/responses", "Bearer KEY")
    assert sent.body["tools"] == [{"type": "web_search"}]
    assert sent.body["include"] == ["web_search_call.action.sources"]
    assert (sent.body["model"], "length of the Kama" in sent.body["input"]) == ("gpt-5-mini", True)


async def test_what_the_model_says_is_shown_and_is_no_evidence(client, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "searches.sqlite")
    with serve(respond(cite(TEXT, "https://a.example/kama"))) as (url, asked):
        search = VendorSearch(client, "m", url, cache=cache)
        for _ in range(2):  # the second answer comes from the cache
            tool = search_tool([search.for_run(Budget())])
            first, *_ = (await tool.call({"query": "length of the Kama"})).passages
            assert (first.text, first.source.evidence) == (f"{LONG}.", "The Kama")
    assert len(asked) == 1
    cache.close()


REFUSED = {"type": "refusal", "refusal": "I cannot help with that."}
FAILED = {"error": {"code": "server_error", "message": "out of order"}, "output": []}
UNKNOWN = (400, {"error": {"message": "Hosted tool 'web_search' is not supported with m, SECRET."}})


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (respond(REFUSED, searched=False), "openai refused the query: 'I cannot help with that.'"),
        (respond(searched=False), r"the model 'm' did not search the web; name one that can in \[roles.search\]"),
        (FAILED, "openai failed: out of order"),
        (UNKNOWN, r"status 400: .*'web_search' is not supported with m, …\."),
        ((401, {}), r"check OPENAI_API_KEY, or `api_key` of \[roles.search\]"),
        ((500, "no"), "openai answered with an error, status 500"),
        ({"output": 3}, "openai answered in a format that hira cannot read"),
    ],
)
async def test_each_failure_says_why_and_shows_no_key(client, answer: Any, why: str) -> None:
    with serve(answer) as (url, _), pytest.raises(ToolError, match=why) as raised:
        await VendorSearch(client, "m", url, "SECRET").search("Kama", 5)
    assert "SECRET" not in str(raised.value)


async def test_a_vendor_that_does_not_answer_is_not_waited_for(client) -> None:
    with serve(None) as (url, _), pytest.raises(ToolDown, match=r"openai did not answer within 0\.2 seconds"):
        await VendorSearch(client, "m", url, seconds=0.2).search("Kama", 5)


async def test_a_search_that_found_nothing_is_an_answer_without_hits(client) -> None:
    empty = {"output": [{"type": "web_search_call", "action": {"type": "search"}}]}
    with serve(empty) as (url, _):
        assert await VendorSearch(client, "m", url).search("Kama", 5) == []


async def test_the_tokens_of_a_search_count_in_the_budget_and_a_used_up_budget_asks_nothing(client) -> None:
    budget = Budget(tokens=10_000)
    with serve(respond(cite(TEXT, "https://a.example/kama"))) as (url, asked):
        search = VendorSearch(client, "m", url, price=Price(1.0, 10.0)).for_run(budget)
        await search.search("Kama", 5)
        assert (budget.spent.tokens, budget.spent.calls, budget.spent.cost) == (1_000, 1, pytest.approx(0.0019))
        with pytest.raises(ToolDown, match="openai is not asked: the budget of 10,000 tokens"):
            await search.search("Volga", 5)
    assert len(asked) == 1


async def test_a_verdict_rests_on_the_page_that_hira_opened(tmp_path: Path) -> None:
    pages = {"/kama": "<title>The Kama</title><p>The river Kama is 1,805 kilometres long and joins the Volga.</p>"}
    right, wrong = "The river Kama is 1,805 kilometres long [s1].", "The Kama is 2,000 kilometres long [s1]."
    for said, answer, status in ((right, right, "answered"), (wrong, wrong, "unverified")):
        with FakeWeb(pages) as web:
            text = f"{said.removesuffix(' [s1].')}. ([the Kama]({web.url}/kama))"
            with serve({"output": [respond(cite(text, f"{web.url}/kama"))["output"][1]]}) as (url, asked):
                host = web.url.removeprefix("http://")
                settings = Settings(
                    model="offline",
                    workflow="rag",
                    search="openai",
                    allowed_hosts=(host,),
                    journal=tmp_path / f"{status}.sqlite",
                    roles={"search": RoleSettings(model="gpt-5-mini", base_url=url)},
                    verify="lexical",
                )
                policy = ScriptedPolicy({"reasoner": [answer]})
                async with Hira(policies={"*": policy}, settings=settings) as hira:
                    made = await hira.ask("How long is the river Kama?")
            assert (made.status, made.sources[0].kind, len(asked)) == (status, "page", 1)
            assert made.sources[0].evidence.count("1,805") == 1
        journal = Journal(tmp_path / f"{status}.sqlite")
        assert (await replay(journal, made.rollout.run)).same  # the service is gone: its answer is in the journal
        journal.close()


async def test_a_model_without_the_api_is_refused_before_the_run() -> None:
    settings = Settings(model="offline", search="openai")
    with pytest.raises(UsageError, match=r"'openai' cannot ask 'offline'.*\n.*roles.search"):
        async with Hira(settings=settings) as hira:
            await hira.ask("How long is the Kama?")
