import httpx
import pytest

from hira.testing.script import make_context
from hira.testing.web import FakeWeb, Served
from hira.tools import Toolbox
from hira.tools.browse import browse_tool
from hira.tools.fetch import Fetcher
from hira.tools.search import open_backend, open_client, search_tool

PAGES = {
    "/kama": "<p>The Kama joins the <a href='/volga'>Volga</a>.</p>" + "<p>Long it is.</p>" * 40,
    "/volga": "<p>The Volga ends in the Caspian Sea.</p>",
}


def opened(url: str) -> str:
    return httpx.get(url, timeout=10, trust_env=False).raise_for_status().text


def test_it_serves_pages_by_path_and_query_and_keeps_the_requests():
    with FakeWeb({"/a": "plain", "/a?x=1": Served({"n": 1}, "application/json"), "/b": b"\x00"}) as web:
        assert opened(f"{web.url}/a") == "plain"
        assert opened(f"{web.url}/a?x=1") == '{"n": 1}'
        assert opened(f"{web.url}/a?x=2") == "plain"
        assert [(visit.path, dict(visit.query)) for visit in web.visits] == [
            ("/a", {}),
            ("/a", {"x": "1"}),
            ("/a", {"x": "2"}),
        ]
        with pytest.raises(httpx.HTTPStatusError, match="404"):
            opened(f"{web.url}/none")


def test_failures_come_one_a_search_and_never_for_pages():
    with FakeWeb(PAGES, failures=[503]) as web:
        opened(f"{web.url}/kama")
        with pytest.raises(httpx.HTTPStatusError, match="503"):
            opened(f"{web.url}/search?q=kama&format=json")
        assert "Kama joins" in opened(f"{web.url}/search?q=kama&format=json")
        assert web.searches == ["kama", "kama"]


async def test_an_agent_searches_opens_what_it_found_and_follows_its_links():
    seen: set[str] = set()
    with FakeWeb(PAGES, hits={"kama": ["/kama"]}) as web:
        async with open_client({}) as client:
            search = search_tool([open_backend("searxng", client, base_url=web.url)], seen=seen)
            browse = browse_tool(Fetcher(allow=[web.host]), seen=seen)
            context = make_context({"reader": []}, tools=Toolbox(search=search, browse=browse))
            found = await search.call({"query": "Where does the Kama end?"})
            first = await browse.call({"url": found.passages[0].source.location})
            link = first.passages[0].text.rpartition(" ")[2]
            second = await browse.call({"url": link})
            sources = [context.read(one.passages[0].source) for one in (found, first, second)]
        assert [source.id for source in sources] == ["s1", "s1", "s2"]
        assert [source.kind for source in sources] == ["hit", "page", "page"]
        assert "Caspian Sea" in sources[2].text
