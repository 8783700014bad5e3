"""Pages, search results and MCP servers that say too much, or that say it in no proper form."""

import pytest

from hira.core.errors import ToolError
from hira.core.sanitize import presentable
from hira.tools.addresses import LONGEST, canonicalise_url, check_url, is_allowed
from hira.tools.pages import extract
from hira.tools.search.service import Found, Service

TEXT = "<p>" + "A long and readable sentence about the harbour of Alta. " * 20 + "</p>"


async def test_a_reference_of_thousands_of_digits_is_a_character_that_cannot_be_shown() -> None:
    endless = f"&#{'9' * 5_000};"

    async def ask(_query: str, _n: int) -> list[Found]:
        return [Found(f"Alta{endless}", "https://a.example/", f"a{endless}b &#0065;")]

    page = extract(f"<title>{endless}x</title><p title='{endless}'>{endless}{TEXT}", "https://example.org/")
    assert "harbour of Alta" in page.text
    (hit,) = await Service("scripted", ask).search("harbour", 10)
    assert hit.snippet == "a\ufffdb A"
    assert presentable(f"[Alta]({endless})", ()).startswith("[Alta](")


@pytest.mark.parametrize("base", ["http://[", "http://\ud800/"])
def test_a_base_that_is_no_address_leaves_the_page_readable(base: str) -> None:
    page = extract(f'<base href="{base}"><a href="/next">next</a>{TEXT}', "https://example.org/page")
    assert page.state == "ok"
    assert "harbour of Alta" in page.text
    for link in page.links:
        canonicalise_url(link.url)


def test_links_are_read_as_browsers_read_them() -> None:
    hrefs = ["a b/c d.pdf", " /x\n/y ", "http://[", f"/{'l' * LONGEST}", "caf\ud800", "#top", "mailto:a@b.example"]
    html = "".join(f'<a href="{href}">one</a>' for href in hrefs)
    page = extract(f"{html}{TEXT}", "https://example.org/in/page")
    assert [link.url for link in page.links] == [
        "https://example.org/in/a%20b/c%20d.pdf",
        "https://example.org/x/y",
        "https://example.org/in/caf\ufffd",
    ]
    assert is_allowed("https://example.org/in/a b/c d.pdf", {canonicalise_url(page.links[0].url)})


@pytest.mark.parametrize("url", ["https://\udfff.example/", "https://a.example/?\udc80"])
def test_half_a_character_in_a_url_raises_nothing_but_what_the_model_is_told(url: str) -> None:
    assert canonicalise_url(url) == canonicalise_url(url.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    try:
        assert check_url(url).url.isprintable()
    except ToolError as error:
        error.what.encode()
