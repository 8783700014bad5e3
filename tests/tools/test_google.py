"""Google's parameters and boxes (MATPO, appendix A), over real HTTP in the format of serper.dev."""

from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest

from hira.core.errors import ToolError
from hira.core.tool import Tool
from hira.policies.dialects import NATIVE
from hira.testing import FakeWeb, Served, calling, make_context
from hira.tools import Toolbox
from hira.tools.addresses import canonicalise_url
from hira.tools.fetch import identification
from hira.tools.search import open_backend, open_client, search_tool
from hira.tools.search.google import google_tool
from hira.workflows.matpo import MATPO, SERVER, tools_of
from hira.workflows.workflow import rollout

TOLD = {
    "searchParameters": {"q": "kama river", "gl": "us", "hl": "en", "type": "search"},
    "knowledgeGraph": {
        "title": "Kama",
        "type": "River in Russia",
        "description": "The Kama is a tributary of the Volga.",
        "descriptionLink": "https://en.example/wiki/Kama",
        "attributes": {"Length": "1,805 km", "Mouth": "Volga"},
    },
    "organic": [
        {"title": "The Kama", "link": "https://a.example/kama", "snippet": "A long river.", "date": "2024-05-06"},
        {"title": "Another Kama", "link": "https://b.example/kama", "snippet": "A weapon."},
    ],
    "peopleAlsoAsk": [
        {
            "question": "Where does the Kama end?",
            "snippet": "In the Volga.",
            "title": "Mouth",
            "link": "https://c.example/",
        },
        {"question": "Who asks without an address?"},
    ],
    "relatedSearches": [{"query": "kama river length"}],
}


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(identification("ann@example.org")) as opened:
        yield opened


def google(web: FakeWeb, client: httpx.AsyncClient, seen: set[str] | None = None) -> Tool:
    return google_tool(open_backend("serper_google", client, base_url=web.url, key="KEY"), seen=seen)


def read_bodies(web: FakeWeb) -> list[dict[str, object]]:
    return [visit.body for visit in web.visits]


async def test_results_come_with_knowledge_graph_questions_and_related_searches(client: httpx.AsyncClient) -> None:
    with FakeWeb({"/search": Served(TOLD, "application/json")}) as web:
        seen: set[str] = set()
        found = await google(web, client, seen).call({"q": " kama   river "})
    shown = {passage.source.title: (passage.source.location, passage.text) for passage in found.passages}
    assert shown == {
        "Knowledge graph: Kama": (
            "https://en.example/wiki/Kama",
            "River in Russia. The Kama is a tributary of the Volga. Length: 1,805 km; Mouth: Volga",
        ),
        "The Kama": ("https://a.example/kama", "2024-05-06: A long river."),
        "Another Kama": ("https://b.example/kama", "A weapon."),
        "People also ask: Where does the Kama end?": ("https://c.example/", "Where does the Kama end? In the Volga."),
        "Related search": ("https://www.google.com/search?q=kama+river+length", "kama river length"),
    }
    assert canonicalise_url("https://c.example/") in seen
    expected = {"q": "kama river", "gl": "us", "hl": "en", "num": 10, "page": 1, "autocorrect": True}
    assert read_bodies(web) == [expected]


async def test_every_parameter_is_sent(client: httpx.AsyncClient) -> None:
    given = {"q": "Kama", "gl": "fr", "hl": "de", "location": "Lyon", "num": 20, "tbs": "qdr:w", "page": 2}
    with FakeWeb({"/search": Served({"organic": []}, "application/json")}) as web:
        found = await google(web, client).call({**given, "autocorrect": False})
        assert (found.text, found.passages) == ("nothing found; try other words", ())
        assert read_bodies(web) == [{**given, "autocorrect": False}]
        for wrong in (
            {"q": " "},
            {"q": "x" * 401},
            {"q": "x", "num": 0},
            {"q": "x", "page": 0},
            {"q": "x", "num": 101},
        ):
            with pytest.raises(ToolError):
                await google(web, client).call(wrong)
        assert len(web.visits) == 1


async def test_the_same_service_answers_a_plain_search(client: httpx.AsyncClient) -> None:
    with FakeWeb({"/search": Served(TOLD, "application/json")}) as web:
        plain = search_tool([open_backend("serper_google", client, base_url=web.url, key="KEY")])
        assert len((await plain.call({"query": "Kama"})).passages) == 5
        assert read_bodies(web) == [{"q": "Kama", "num": 10}]


async def test_a_knowledge_graph_without_an_address_leads_to_its_search(client: httpx.AsyncClient) -> None:
    told = {"knowledgeGraph": {"title": "Kama", "website": None}, "organic": []}
    with FakeWeb({"/search": Served(told, "application/json")}) as web:
        (passage,) = (await google(web, client).call({"q": "Kama"})).passages
    assert passage.source.location == "https://www.google.com/search?q=Kama"


async def test_matpos_worker_has_the_papers_search_in_place_of_the_plain_one(client: httpx.AsyncClient) -> None:
    replies = [calling("google_search", q="Kama", gl="ru"), "\\boxed{The Volga [s1].}"]
    with FakeWeb({"/search": Served(TOLD, "application/json")}) as web:
        plain = search_tool([open_backend("serper", client, base_url=web.url, key="KEY")])
        own = replace(plain, name="archive")
        context = make_context(replies, dialect=NATIVE, tools=Toolbox(search=plain, extra=(google(web, client), own)))
        tool, *others = tools_of(context, ("c.example",))
        assert others == [own], "the worker also has the user's own tools"
        assert [one.name for one in tools_of(context, only_search=True)] == ["google_search"]
        assert (tool.name, tool.server, tool.blocked) == ("google_search", SERVER, ("c.example",))
        record = await rollout(MATPO(planner=False, summary=False, blocked_hosts="c.example"), "Where?", context)
        assert read_bodies(web)[0]["gl"] == "ru"
    assert "Volga" in record.answer
    shown = str(record.trajectories["1/worker"].turns[-1].request.messages)
    assert "Knowledge graph: Kama" in shown
    assert "c.example" not in shown
