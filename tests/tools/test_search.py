import asyncio
import gzip
import json
import sqlite3
import sys
import tracemalloc
import zlib
from contextlib import closing, suppress
from importlib import import_module
from importlib.util import find_spec

import pytest

from hira.core.concurrency import SingleFlight
from hira.core.errors import ToolDown, ToolError, UsageError
from hira.core.events import Notice
from hira.core.sources import Sources
from hira.evidence import verify
from hira.testing.web import FakeWeb, Served
from hira.tools.addresses import canonicalise_url
from hira.tools.browse import browse_tool
from hira.tools.fetch import Fetcher, identification
from hira.tools.search import (
    BACKENDS,
    CITATIONS,
    SCHOLARLY,
    Cache,
    Hit,
    Unusable,
    cache_search,
    citations_tool,
    open_backend,
    open_client,
    scholar_tool,
    search_tool,
    share_search,
)

PAGES = {
    "/kama": "<title>The Kama</title><p>The river Kama is 1,805 kilometres long and joins the Volga.</p>",
    "/volga": "<title>The Volga</title><p>The Volga flows into the Caspian Sea.</p>",
}


@pytest.fixture
async def client():
    async with open_client(identification("ann@example.org")) as opened:
        yield opened


class Fixed:
    """A service that is not over HTTP: it answers with these hits or failures, the last of them again and again."""

    name = "one"

    def __init__(self, *answers: list[Hit] | ToolError) -> None:
        self.answers, self.asked = answers, 0

    async def search(self, query: str, n: int) -> list[Hit]:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        await asyncio.sleep(0)
        if isinstance(answer, ToolError):
            raise answer
        return answer


KAMA = [Hit("Kama", "https://a.example/kama", "a “long” river", "2024")]


async def test_a_search_shows_its_hits_as_sources_and_lets_them_be_opened(client):
    with FakeWeb(PAGES) as web:
        seen: set[str] = set()
        search = search_tool([open_backend("searxng", client, base_url=web.url)], seen=seen)
        first, *_ = (await search.call({"query": "length of the river Kama"})).passages
        assert (first.source.location, first.source.title, first.source.kind) == (f"{web.url}/kama", "The Kama", "hit")
        assert first.text == first.source.text == "The river Kama is 1,805 kilometres long and joins the Volga."
        assert canonicalise_url(f"{web.url}/kama") in seen
        assert "contact: ann@example.org" in web.visits[0].headers["user-agent"]


ONE = {"title": "The <b>Kama</b>", "url": "https://a.example/kama", "link": "https://a.example/kama"}
LONG, DAY = "A <strong>long</strong> river.", "2024-05-06"
ATOM = """<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><entry><id>https://a.example/kama</id>
<title>The
  Kama</title><summary>A long river.</summary><published>2024-05-06T00:00:00Z</published></entry></feed>"""
WORK = {
    "id": "https://openalex.org/W1",
    "display_name": "The Kama",
    "publication_date": DAY,
    "abstract_inverted_index": {"river.": [2], "A": [0], "long": [1]},
    "primary_location": {"landing_page_url": "https://a.example/kama"},
}
PAPER = ONE | {"abstract": LONG, "publicationDate": None, "year": 2024, "openAccessPdf": None}
ITEM = {"title": ["The Kama"], "URL": ONE["url"], "abstract": LONG, "issued": {"date-parts": [[2024, 5]]}}
PMC = {
    "source": "MED",
    "id": "20011",
    "title": "The Kama",
    "abstractText": LONG,
    "firstPublicationDate": DAY,
    "pubTypeList": {"pubType": ["Journal Article"]},
    "fullTextUrlList": {
        "fullTextUrl": [
            {"availabilityCode": "S", "documentStyle": "pdf", "url": "https://paid.example/kama.pdf"},
            {"availabilityCode": "OA", "documentStyle": "html", "url": ONE["url"]},
        ]
    },
}
SHAPES = {  # service: path, where its results are, one of them, and what the request must hold
    "searxng": ("/search", "results", ONE | {"content": LONG, "publishedDate": DAY}, "format=json"),
    "serper": ("/search", "organic", ONE | {"snippet": LONG, "date": DAY}, "x-api-key: KEY"),
    "tavily": ("/search", "results", ONE | {"content": LONG, "published_date": DAY}, "Bearer KEY"),
    "brave": (
        "/res/v1/web/search",
        "web.results",
        ONE | {"description": LONG, "page_age": DAY},
        "x-subscription-token: KEY",
    ),
    "exa": ("/search", "results", ONE | {"highlights": [LONG], "publishedDate": DAY}, "x-api-key: KEY"),
    "serpapi": ("/search.json", "organic_results", ONE | {"snippet": LONG, "date": DAY}, "api_key=KEY"),
    "jina": ("/", "data", ONE | {"description": LONG, "date": DAY}, "Bearer KEY"),
    "serper_google": ("/search", "organic", ONE | {"snippet": LONG, "date": DAY}, "x-api-key: KEY"),
    "serper_scholar": ("/scholar", "organic", ONE | {"snippet": LONG, "year": 2024}, "x-api-key: KEY"),
    "serpapi_scholar": (
        "/search.json",
        "organic_results",
        ONE | {"snippet": LONG, "publication_info": {"summary": "A Author, 2024"}},
        "engine=google_scholar",
    ),
    "openalex": ("/works", "results", WORK, "api_key=KEY"),
    "mediawiki": (
        "/w/api.php",
        "query.search",
        {"title": "The Kama", "snippet": LONG, "timestamp": DAY},
        "srsearch=the river Kama",
    ),
    "semantic_scholar": ("/graph/v1/paper/search", "data", PAPER, "x-api-key: KEY"),
    "europepmc": ("/europepmc/webservices/rest/search", "resultList.result", PMC, "email=ann@example.org"),
    "arxiv": ("/api/query", "", ATOM, 'search_query=all:"river" AND all:"Kama"'),
    "crossref": ("/works", "message.items", ITEM, "mailto=ann@example.org"),
}


@pytest.mark.parametrize("name", SHAPES)
async def test_each_service_is_asked_and_read_in_its_own_form(client, name):
    path, place, one, sent = SHAPES[name]
    answer = one if isinstance(one, str) else [{"title": "no address"}, 5, one]
    for key in reversed(place.split(".") if place else []):
        answer = {key: answer}
    with FakeWeb({path: Served(answer, "application/json")}) as web:
        backend = open_backend(name, client, base_url=web.url + "/", key="KEY", contact="ann@example.org")
        *_, hit = await backend.search("the river Kama", 5)
        url = f"{web.url}/wiki/The_Kama" if name == "mediawiki" else "https://a.example/kama"
        assert (hit.title, hit.url, backend.name) == ("The Kama", url, name)
        assert hit.snippet.startswith("A long river.")
        assert hit.date.startswith("2024") or name == "serpapi_scholar"
        visit = web.visits[0]
        wire = [*(f"{a}: {b}" for a, b in visit.headers.items()), *(f"{a}={b}" for a, b in visit.query.items())]
        assert any(sent in line for line in wire)


async def ask(client, name: str, answer: object) -> list[Hit]:
    """The hits of a service of this form that gives this answer."""
    page = answer if isinstance(answer, Served) else Served(answer, "application/json")
    with FakeWeb({SHAPES[name][0]: page}) as web:
        return await open_backend(name, client, base_url=web.url, key="KEY").search("Kama", 5)


async def test_results_without_an_address_on_the_web_are_left_out(client):
    for name, answer in (
        ("serper", {"organic": [{"title": "More", "link": "/search?q=more"}, {"title": "Kama"}]}),
        ("searxng", {"results": [{"title": "A file", "url": "magnet:?xt=1"}]}),
        ("mediawiki", {"query": {"search": [{"title": "A/../../w/api.php?x", "snippet": "out of the wiki"}]}}),
    ):
        assert await ask(client, name, answer) == []


async def test_an_answer_in_another_form_is_an_error_in_words_and_so_is_a_dead_server(client):
    for answer in ({"results": 3}, {"message": "out of order"}, "{", {"results": [{"url": 5}]}):
        for name in SHAPES:
            with suppress(ToolError):  # some leave the list out where nothing was found
                assert await ask(client, name, answer) == []
                assert name in {"brave", "serpapi", "serpapi_scholar", "semantic_scholar"}
    with FakeWeb({}) as web:
        gone = web.url
    with pytest.raises(ToolError, match=r"searxng cannot be reached at 127\.0\.0\.1"):
        await open_backend("searxng", client, base_url=gone).search("Kama", 5)


async def test_a_refusal_says_what_to_do_and_shows_no_key(client):
    for name, status, error, why in (
        ("serper", 401, Unusable, "check SERPER_API_KEY"),
        ("searxng", 403, Unusable, r"add `json` to `search.formats` in its settings.yml"),
        ("serper", 500, ToolError, "status 500"),
        ("searxng", 302, ToolDown, "sends its requests elsewhere, status 302; check its address"),
    ):
        with FakeWeb({"/search": Served("no", status=status, headers={"Location": "/elsewhere"})}) as web:
            with pytest.raises(error, match=why) as raised:
                await open_backend(name, client, base_url=web.url, key="SECRET").search("Kama", 5)
            assert "SECRET" not in str(raised.value)
            assert len(web.visits) == 1


ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><feed>&b;</feed>'
ENGINES = [["google", "Suspended: CAPTCHA"], ["bing", "timeout"]]


async def test_an_answer_that_is_no_list_of_results_says_what_came_and_what_to_check(client):
    for name, answer, why in (
        ("serper", "<!doctype html><HTML><title>Log in", r"a web page instead of .*; check its address \(127.+its key"),
        ("searxng", "bad KEY", r"'bad …' instead of search results; check its address \(127\.0\.0\.1\)$"),
        ("arxiv", "", "nothing instead of search results"),
        ("arxiv", ENTITIES, r"arxiv answered with '.*DOCTYPE"),
        ("searxng", {"results": [], "unresponsive_engines": ENGINES}, "engines do not answer: google, bing"),
    ):
        with pytest.raises(ToolDown, match=why):
            await ask(client, name, Served(answer) if isinstance(answer, str) else answer)


async def test_an_endless_answer_is_not_read_to_its_end(client):
    with pytest.raises(ToolError, match="more than 5 MB"):
        await ask(client, "searxng", b"[" + b"0," * 3_000_000)


async def test_a_packed_answer_is_bounded_while_it_is_unpacked(client):
    packing = zlib.compressobj(9, wbits=31)
    packed = b"".join(packing.compress(b" " * 1_000_000) for _ in range(200)) + packing.flush()
    tracemalloc.start()
    try:
        with pytest.raises(ToolError, match="more than 5 MB"):
            await ask(client, "searxng", Served(packed, "application/json", headers={"Content-Encoding": "gzip"}))
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()
    small = gzip.compress(b'{"results": []}')
    assert await ask(client, "searxng", Served(small, "application/json", headers={"Content-Encoding": "gzip"})) == []
    for encoding, body, why in (("zstd", b"(", "compression that hira does not read"), ("gzip", b"no", "broken")):
        with pytest.raises(ToolDown, match=why):
            await ask(client, "searxng", Served(body, headers={"Content-Encoding": encoding}))


async def test_a_passing_failure_is_tried_once_more_and_a_long_one_not_again(client):
    with FakeWeb(PAGES, failures=[Served(status=429, headers={"Retry-After": "0"})]) as web:
        assert await open_backend("searxng", client, base_url=web.url).search("Kama", 5)
        assert len(web.visits) == 2
    with FakeWeb(PAGES, failures=[503, 503]) as web, pytest.raises(ToolError):
        await open_backend("searxng", client, base_url=web.url).search("Kama", 5)
    with FakeWeb(PAGES, failures=[Served(status=429, headers={"Retry-After": "3600"})]) as web:
        search = search_tool([open_backend("searxng", client, base_url=web.url)])
        for _ in range(2):
            with pytest.raises(ToolError, match="try again in 3600 seconds"):
                await search.call({"query": "Kama"})
        assert len(web.visits) == 1


async def test_halves_of_characters_and_endless_references_of_a_service_cannot_be_sent(client):
    one = {"title": f"Alta&#{'9' * 5_000};", "url": "https://a.example/caf\ud800", "content": "a\ud83db &#0065;"}
    (hit,) = await ask(client, "searxng", json.dumps({"results": [one]}))
    assert (hit.title, hit.url, hit.snippet) == ("Alta\ufffd", "https://a.example/caf\ufffd", "a\ufffdb A")


async def test_the_next_service_answers_where_one_fails_and_that_is_told(client):
    told: list[Notice] = []
    with FakeWeb(PAGES, failures=[401]) as web:
        backends = [
            open_backend("serper", client, base_url=web.url, key="wrong"),
            open_backend("searxng", client, base_url=web.url),
        ]
        search = search_tool(backends, on_notice=told.append)
        for _ in range(2):
            assert (await search.call({"query": "Kama"})).passages
        (notice,) = told
        assert notice.text.startswith("search: serper refused the request: its key was not accepted")
        assert notice.text.endswith("; searxng is used instead")
        assert [visit.method for visit in web.visits] == ["POST", "GET", "GET"]


def test_a_service_may_be_used_from_one_event_loop_after_another():
    async def asked() -> None:
        await asyncio.gather(*(backend.search(f"Kama {n}", 3) for n in range(9)))
        await client._transport.aclose()  # its connections belong to the loop that ends here

    with FakeWeb(PAGES) as web:
        client = open_client({})
        backend = open_backend("mediawiki", client, base_url=web.url)
        for _ in range(2):
            asyncio.run(asked())
        assert len(web.searches) == 18
        assert web.most_at_once <= 3


async def test_one_place_is_one_hit_with_the_longer_snippet():
    places = [
        Hit("A", "https://a.example/x", "short"),
        Hit("B", "https://b.example/", "b"),
        Hit("A!", "http://a.example/x/", "longer text"),
    ]
    passages = (await search_tool([Fixed(places)]).call({"query": "x"})).passages
    assert [(one.source.title, one.source.location, one.text) for one in passages] == [
        ("A", "https://a.example/x", "longer text"),
        ("B", "https://b.example/", "b"),
    ]
    nothing = await search_tool([Fixed([])]).call({"query": "zebras"})
    assert (nothing.text, nothing.passages) == ("nothing found; try other words for 'zebras'", ())


async def test_an_empty_query_or_a_whole_document_is_not_sent():
    backend = Fixed([])
    for query, why in (("  ", "empty"), ("word " * 100, "at most 400")):
        with pytest.raises(ToolError, match=why):
            await search_tool([backend]).call({"query": query})
    assert backend.asked == 0


async def test_an_unknown_service_and_a_missing_setting_say_what_to_do(client):
    with pytest.raises(UsageError, match="did you mean 'serper'"):
        open_backend("serpper", client)
    with pytest.raises(UsageError, match="'serper' needs an API key"):
        open_backend("serper", client, key="")
    with pytest.raises(UsageError, match="'searxng' needs the address"):
        open_backend("searxng", client, key="x")


async def test_scholarly_works_have_a_tool_of_their_own_and_what_it_finds_may_be_opened():
    seen: set[str] = set()
    scholar = scholar_tool([Fixed(KAMA)], seen=seen)
    (passage,) = (await scholar.call({"query": "sand"})).passages
    assert (scholar.name, passage.source.location) == ("scholar", KAMA[0].url)
    assert canonicalise_url(KAMA[0].url) in seen
    assert {"openalex", "arxiv", "serper_scholar"} <= SCHOLARLY <= set(BACKENDS)


async def test_a_scholarly_hit_leads_to_the_free_full_text_if_there_is_any(client):
    work = WORK | {"open_access": {"is_oa": True, "oa_url": "https://free.example/kama.pdf"}}
    closed = WORK | {"open_access": {"is_oa": False, "oa_url": None}}
    both = [
        {"availabilityCode": "OA", "documentStyle": kind, "url": f"https://e.example/{kind}"}
        for kind in ("pdf", "html")
    ]
    for name, answer, url in (
        ("openalex", {"results": [work]}, "https://free.example/kama.pdf"),
        ("openalex", {"results": [closed]}, ONE["url"]),
        (
            "europepmc",
            {"resultList": {"result": [PMC | {"fullTextUrlList": {"fullTextUrl": both}}]}},
            "https://e.example/pdf",
        ),
        (
            "europepmc",
            {"resultList": {"result": [PMC | {"fullTextUrlList": None}]}},
            "https://pubmed.ncbi.nlm.nih.gov/20011/",
        ),
        (
            "europepmc",
            {"resultList": {"result": [{"source": "PPR", "id": "PPR1", "title": "The Kama"}]}},
            "https://europepmc.org/article/PPR/PPR1",
        ),
    ):
        (hit,) = await ask(client, name, answer)
        assert hit.url == url


RETRACTIONS = {
    "openalex": {"results": [WORK | {"is_retracted": True}]},
    "europepmc": {"resultList": {"result": [PMC | {"pubTypeList": {"pubType": ["Retracted Publication"]}}]}},
    "crossref": {"message": {"items": [ITEM | {"updated-by": [{"type": "retraction", "DOI": "10.1/x"}]}]}},
}


@pytest.mark.parametrize("name", RETRACTIONS)
async def test_a_retracted_work_says_so_in_the_title_of_its_hit(client, name):
    (hit,) = await ask(client, name, RETRACTIONS[name])
    assert hit.title == "RETRACTED: The Kama"
    marked = json.loads(json.dumps(RETRACTIONS[name]).replace('"The Kama"', '"[Retracted] The Kama"'))
    assert [hit.title for hit in await ask(client, name, marked)] == ["[Retracted] The Kama"]


async def test_a_work_that_was_corrected_is_not_a_retracted_one(client):
    corrected = {"message": {"items": [ITEM | {"updated-by": [{"type": "correction", "DOI": "10.1/x"}]}]}}
    assert [hit.title for hit in await ask(client, "crossref", corrected)] == ["The Kama"]


async def test_the_citation_of_an_opened_work_names_its_retraction_also_behind_a_redirect(client):
    moved = Served(status=302, headers={"Location": "/publisher"})
    with FakeWeb({"/doi": moved, "/publisher": PAGES["/kama"]}) as web:
        work = WORK | {"is_retracted": True, "primary_location": {"landing_page_url": f"{web.url}/doi"}}
        seen: set[str] = set()
        retracted: set[str] = set()
        web.pages["/works"] = Served({"results": [work]}, "application/json")
        scholar = scholar_tool([open_backend("openalex", client, base_url=web.url)], seen=seen, retracted=retracted)
        await scholar.call({"query": "Kama"})
        browse = browse_tool(Fetcher([web.host]), seen=seen, retracted=retracted)
        sources = Sources()
        for passage in (await browse.call({"url": f"{web.url}/doi"})).passages:
            sources.add(passage.source)
        (citation,) = verify("The river Kama is 1,805 kilometres long and joins the Volga [s1].", sources)
        assert (sources.read[citation.source].title, citation.verdict) == ("RETRACTED: The Kama", "supported")


CITING = {"paperId": "c1", "url": "https://a.example/volga", "title": "The Volga", "abstract": LONG, "year": 2025}
MATCH = {"data": [{"paperId": "b" * 40, "title": "The Kama", "matchScore": 90.1}]}


@pytest.fixture
async def citations(client):
    """The tool over a service that knows a work, and the visits that it had."""
    base = "/graph/v1/paper"
    pages = {
        f"{base}/search/match?query=The Kama&fields=title": MATCH,
        f"{base}/{'b' * 40}/citations": {"offset": 0, "data": [{"citingPaper": CITING}, {"citingPaper": None}, 5]},
        f"{base}/DOI:10.1000/ka(ma)/references": {"data": [{"citedPaper": CITING | {"url": None}}]},
        f"{base}/ARXIV:2101.00001/references": {"data": None},
    }
    with FakeWeb({path: Served(page, "application/json") for path, page in pages.items()}) as web:
        seen: set[str] = set()
        opened = {
            name.rpartition("_")[2]: open_backend(name, client, base_url=web.url, key="KEY") for name in CITATIONS
        }
        yield citations_tool(opened, seen=seen), web, seen


async def test_the_works_that_cite_a_work_are_listed_by_its_title_and_may_be_opened(citations):
    tool, web, seen = citations
    result = await tool.call({"work": "RETRACTED: The Kama", "direction": "citations"})
    assert result.text == "citations of 'The Kama'"
    (passage,) = result.passages
    assert (passage.source.title, passage.source.location) == ("The Volga", CITING["url"])
    assert canonicalise_url(CITING["url"]) in seen
    assert [visit.headers["x-api-key"] for visit in web.visits] == ["KEY", "KEY"]


@pytest.mark.parametrize(
    ("work", "sent"),
    [
        ("https://doi.org/10.1000/ka(ma).", "DOI:10.1000/ka(ma)"),
        ("arXiv:2101.00001v2", "ARXIV:2101.00001"),
        ("https://arxiv.org/pdf/2101.00001", "ARXIV:2101.00001"),
    ],
)
async def test_a_doi_or_an_arxiv_id_needs_no_look_up(citations, work, sent):
    tool, web, _ = citations
    assert (await tool.call({"work": work})).text == f"{work!r} has no known references"
    assert [visit.path for visit in web.visits] == [f"/graph/v1/paper/{sent}/references"]


@pytest.mark.parametrize(
    ("work", "why"),
    [
        ("10.1000/unknown", "does not know this work; check its DOI"),
        ("Zebras of the Kama", "knows no work of this title; give its DOI"),
        ("10.1000/../../author", "knows no work of this title"),
        (" ", "named by its DOI, its arXiv id or its title"),
        ("word " * 100, "at most 400 characters"),
    ],
)
async def test_a_work_that_nobody_knows_is_an_error_that_says_what_to_give(citations, work, why):
    tool, web, _ = citations
    with pytest.raises(ToolError, match=why):
        await tool.call({"work": work})
    assert all(visit.path.startswith("/graph/v1/paper/") for visit in web.visits)


async def test_services_at_one_host_share_its_pace(client):
    paces: dict = {}
    for name in ("semantic_scholar", *CITATIONS, "arxiv"):
        open_backend(name, client, paces=paces)
    assert {host: pace.every for host, pace in paces.items()} == {
        "api.semanticscholar.org": 1.0,
        "export.arxiv.org": 3.0,
    }


async def test_what_several_runs_ask_at_once_is_sent_once():
    backend, once = Fixed(KAMA), SingleFlight()
    asked = ("The Kama", " the  kama ", "THE KAMA")
    assert await asyncio.gather(*(share_search(backend, once).search(query, 5) for query in asked)) == [KAMA] * 3
    assert backend.asked == 1
    await share_search(backend, once).search("The Kama", 6)
    assert backend.asked == 2


async def test_a_query_is_answered_from_disk_also_by_a_later_process_until_its_answer_is_too_old(tmp_path):
    path, now, backend, other = tmp_path / "deep" / "searches.sqlite", [1000.0], Fixed(KAMA), Fixed([])
    for after, query, n, asked in (
        (0, "The Kama", 5, 1),
        (0, " the  kama ", 5, 1),
        (0, "The Kama", 6, 2),
        (59, "The Kama", 5, 2),
        (2, "The Kama", 5, 3),
    ):
        now[0] += after
        cache = Cache(path, seconds=60, clock=lambda: now[0])
        assert await cache_search(backend, cache).search(query, n) == KAMA
        assert await cache_search(other, cache, "http://two.example").search(query, n) == []
        assert backend.asked == asked
        cache.close()
    assert other.asked == 5  # answers without hits are not kept
    with closing(sqlite3.connect(path)) as db, db:  # an earlier version kept more about each hit
        db.execute("UPDATE answers SET hits = replace(hits, '}', ', \"rank\": 1}')")
    cache = Cache(path, seconds=60, clock=lambda: now[0])
    assert await cache_search(backend, cache).search("The Kama", 5) == KAMA
    assert backend.asked == 3
    cache.close()
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_damaged_cache_is_replaced_and_where_the_disk_fails_the_service_is_asked(tmp_path):
    path, backend = tmp_path / "searches.sqlite", Fixed(ToolError("down"), KAMA)
    path.write_bytes(b"no database at all " * 500)
    cache = Cache(path)
    with pytest.raises(ToolError):
        await cache_search(backend, cache).search("x", 5)
    for _ in range(2):
        assert await cache_search(backend, cache).search("x", 5) == KAMA
    assert backend.asked == 2
    cache.close()
    assert await cache_search(backend, cache).search("x", 5) == KAMA
    assert backend.asked == 3
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    with pytest.raises(ToolError, match="cannot be kept"):
        Cache(tmp_path / "file" / "searches.sqlite")


@pytest.mark.parametrize(("name", "library"), [("litellm:tavily", "litellm"), ("ddgs", "ddgs")])
async def test_without_its_library_a_service_says_what_to_install(client, name, library):
    if find_spec(library):
        pytest.skip(f"{library} is installed")
    with pytest.raises(UsageError) as raised:
        open_backend(name, client)
    assert "pip install" in raised.value.fix


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
async def test_a_provider_of_litellm_answers_like_any_other_service(client):
    pytest.importorskip("litellm")
    with FakeWeb(PAGES) as web:
        (hit,) = await open_backend("litellm:searxng", client, base_url=web.url).search("Kama", 1)
    assert (hit.title, hit.url) == ("The Kama", f"{web.url}/kama")
    with FakeWeb(PAGES, failures=[500] * 9) as web, pytest.raises(ToolError, match="litellm:searxng failed") as raised:
        await open_backend("litellm:searxng", client, base_url=web.url, key="SECRET").search("Kama", 5)
    assert "SECRET" not in str(raised.value)


LIBRARIES = {
    "litellm.py": """
from types import SimpleNamespace

asked, told = [], []


async def asearch(query, provider, **given):
    asked.append((query, provider, given["max_results"], given["api_key"], given["api_base"]))
    if isinstance(told[0], Exception):
        raise told[0]
    return SimpleNamespace(results=[SimpleNamespace(**result, date=None) for result in told])
""",
    "litellm-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: litellm\nVersion: 1.0\n",
    "ddgs/__init__.py": """
told = []


class DDGS:
    def __init__(self, timeout):
        pass

    def text(self, query, max_results, backend):
        if isinstance(told[0], Exception):
            raise told[0]
        return told
""",
    "ddgs/exceptions.py": "class DDGSException(Exception):\n    pass\n",
}
"""Stand-ins for libraries that ask services of the web, written into a folder."""


@pytest.fixture
def libraries(tmp_path, monkeypatch):
    for name, text in LIBRARIES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    names = ("litellm", "ddgs", "ddgs.exceptions")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield import_module("litellm"), import_module("ddgs")
    for name in names:
        sys.modules.pop(name, None)


class Refused(Exception):
    def __init__(self, text, status_code=0):
        super().__init__(text)
        self.status_code = status_code


async def test_a_provider_of_litellm_that_refuses_the_key_is_not_asked_again_and_others_may_be(client, libraries):
    litellm, _ = libraries
    page = {"title": "The Kama", "url": "https://kama.example/", "snippet": "A river."}
    litellm.told[:] = [page, page, page]
    for given, place in (({}, (None, None)), ({"key": "K", "base_url": "http://u"}, ("K", "http://u"))):
        hits = await open_backend("litellm:tavily", client, **given).search("Kama", 2)
        assert [(hit.title, hit.url) for hit in hits] == [("The Kama", "https://kama.example/")] * 2
        assert litellm.asked[-1] == ("Kama", "tavily", 2, *place)
    for error, kind in (
        (Refused("no", 401), Unusable),
        (Refused("no", 403), Unusable),
        (Refused("Invalid API key: SECRET"), Unusable),
        (Refused("too many for SECRET", 429), ToolDown),
        (ValueError("broken  SECRET\n" * 90), ToolDown),
    ):
        litellm.told[:] = [error]
        with pytest.raises(ToolDown, match="litellm:tavily failed: ") as raised:
            await open_backend("litellm:tavily", client, key="SECRET").search("Kama", 2)
        assert type(raised.value) is kind
        assert "SECRET" not in str(raised.value)
        assert len(str(raised.value)) <= 230
    litellm.told[:] = [ValueError("broken")]
    with pytest.raises(ToolDown, match=r"litellm:tavily failed: broken$"):
        await open_backend("litellm:tavily", client).search("Kama", 2)


async def test_no_results_of_ddgs_are_none_and_not_a_failure(client, libraries):
    _, ddgs = libraries
    failure = import_module("ddgs.exceptions").DDGSException
    page = {"title": "The Kama", "href": "https://kama.example/", "body": "A river."}
    ddgs.told[:] = [page, page]
    (hit,) = await open_backend("ddgs", client).search("Kama", 1)
    assert (hit.title, hit.url, hit.snippet) == ("The Kama", "https://kama.example/", "A river.")
    ddgs.told[:] = [failure("No results found.")]
    assert await open_backend("ddgs", client).search("Kama", 1) == []
    ddgs.told[:] = [failure("rate limit")]
    with pytest.raises(ToolDown, match="ddgs failed: rate limit"):
        await open_backend("ddgs", client).search("Kama", 1)
