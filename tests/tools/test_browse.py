import pytest
from made_documents import pdf

from hira.core.errors import ToolError
from hira.testing.web import FakeWeb, Served
from hira.tools.addresses import canonicalise_url, check_url, urls
from hira.tools.browse import browse_tool
from hira.tools.fetch import Fetcher

KAMA = """<title>The Kama</title><h1>The Kama</h1><p>The river Kama is 1,805 kilometres long and joins the Volga below
Kazan. See <a href="/volga">the Volga</a> and <a href="perm?lang=en#opera">Perm</a>.</p>"""


class Reader:
    """A browse tool for one run on a fake web, whose question names the paths in `question`."""

    def __init__(self, web: FakeWeb, *question: str, **options) -> None:
        self.web = web
        self.seen = {canonicalise_url(web.url + path) for path in question}
        self.tool = browse_tool(Fetcher(allow=[web.host], seconds=5, **options), seen=self.seen)

    async def open(self, path: str, intent: str = ""):
        return await self.tool.call({"url": self.web.url + path, "intent": intent})


async def test_a_page_is_its_text_with_numbered_absolute_links_and_a_source():
    with FakeWeb({"/kama/": KAMA}) as web:
        observation = await Reader(web, "/kama/").open("/kama/")
        (passage,) = observation.passages
        assert "joins the Volga below Kazan" in passage.text
        assert passage.text.endswith(f"Links:\n1. the Volga: {web.url}/volga\n2. Perm: {web.url}/kama/perm?lang=en")
        assert (passage.source.location, passage.source.title, passage.source.kind) == (
            f"{web.url}/kama/",
            "The Kama",
            "page",
        )
        assert "Links:" not in passage.source.text
        assert "1,805 kilometres" in passage.source.text


async def test_only_what_was_seen_is_opened_and_links_of_a_page_count_as_seen():
    pages = {
        "/kama/": KAMA,
        "/volga": "<p>The Volga is long.</p>",
        "/kama/perm": "<p>Perm has an opera.</p>",
        "/secret": "<p>x</p>",
    }
    with FakeWeb(pages) as web:
        reader = Reader(web, "/kama/")
        other = Reader(web, "/kama/")
        for spelling in ("<{}/kama/>", '"{}/kama"', "{}/kama/#top", "[the Kama]({}/kama/)."):
            assert (await other.tool.call({"url": spelling.format(web.url)})).passages
        web.visits.clear()
        for unseen in ("/volga", "/secret", "/kama/?q=what+the+user+asked", "/kama/perm?lang=en"):
            with pytest.raises(ToolError, match="was not shown"):
                await reader.open(unseen)
        assert web.visits == []
        await reader.open("/kama/")
        assert "Volga is long" in (await reader.open("/volga")).passages[0].text
        assert "opera" in (await reader.open("/kama/perm?lang=en")).passages[0].text
        for appended in ("/volga?d=secret", "/volga/secret", "/kama/perm", "/kama/perm?lang=en&d=1", "/secret"):
            with pytest.raises(ToolError, match="was not shown"):
                await reader.open(appended)


async def test_a_page_without_content_is_said_so_and_nothing_of_it_is_shown():
    for page, why in (
        ("<title>Just a moment...</title><p>Checking your browser</p>", "blocks programs"),
        ("<div></div>", "holds no text"),
        ("<div id=root></div><noscript>You need to enable JavaScript to run this app.</noscript>", "runs its scripts"),
        ("<p>The first sentence only. Subscribe to continue reading.</p>", "only to subscribers"),
        (Served("<p>Forbidden words of the server.</p>", status=403), "status 403"),
        (Served(b"\x89PNG\r\n", "image/png"), "is an image"),
        (Served(b"\x00\x01\x02" * 50, "application/octet-stream"), "binary"),
        (Served(b"%PDF-1.4 no more", "application/pdf"), "damaged"),
    ):
        with FakeWeb({"/page": page}) as web:
            with pytest.raises(ToolError, match=why) as raised:
                await Reader(web, "/page").open("/page")
            assert "words of the server" not in str(raised.value)


async def test_pdf_json_and_plain_text_are_read_by_their_type(tmp_path):
    paper = pdf(tmp_path / "paper.pdf", ["Hello PDF of the Kama"])
    pages = {
        "/paper": Served(paper.read_bytes(), "application/pdf"),
        "/data": Served({"river": "Kama", "length": 1805}, "application/json"),
        "/deep": Served(b"[" * 100_000, "application/json"),
        "/notes": Served("The Kama\njoins the Volga", "text/plain; charset=utf-8"),
    }
    with FakeWeb(pages) as web:
        reader = Reader(web, *pages)
        paper_source = (await reader.open("/paper")).passages[0].source
        assert paper_source.find_place("Hello PDF of the Kama") == "p. 1"
        assert '"length": 1805' in (await reader.open("/data")).passages[0].text
        assert (await reader.open("/deep")).passages[0].source.text.startswith("[[[")
        assert (await reader.open("/notes")).passages[0].text == "The Kama\njoins the Volga"


async def test_a_link_to_a_private_address_is_shown_but_not_opened():
    with FakeWeb({"/a": "<p>see <a href='http://169.254.169.254/latest/'>this</a> now</p>"}) as web:
        reader = Reader(web, "/a")
        await reader.open("/a")
        with pytest.raises(ToolError, match="not a public address"):
            await reader.tool.call({"url": "http://169.254.169.254/latest/"})


OTHERS = """https://a.example/x?utm_source=secret https://secret.a.example/x https://a.example:8443/x
https://secret@a.example/x https://a.example/x/secret ftp://a.example/x https://[broken/x https://a.example/x//
https://a.example//x https://a.example/%78 https://a.example:secret@a.example/x https://а.example/x
https://a.example\\x""".split()


def test_whatever_carries_something_more_is_another_url():
    assert [other for other in OTHERS if canonicalise_url(other) == canonicalise_url("https://a.example/x")] == []


def test_half_a_character_in_a_url_raises_nothing_but_what_the_model_is_told():
    for url in ("https://\udfff.example/", "https://a.example/?\udc80"):
        replaced = url.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        assert canonicalise_url(url) == canonicalise_url(replaced)
        try:
            assert check_url(url).url.isprintable()
        except ToolError as error:
            error.what.encode()


def test_urls_are_found_in_text_without_the_punctuation_around_them():
    text = (
        "See https://a.example/x, (http://b.example/y_(z)) and <https://c.example/?q=1>. Or https://a.example/x again!"
    )
    assert urls(text) == ["https://a.example/x", "http://b.example/y_(z)", "https://c.example/?q=1"]
