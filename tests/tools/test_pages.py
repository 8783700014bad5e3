import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hira.core.sources import Source
from hira.evidence import check
from hira.tools.addresses import LONGEST, canonicalise_url
from hira.tools.charsets import decode_page
from hira.tools.pages import Link, extract

BODY = (
    "The river Kama is 1,805 kilometres long and joins the Volga below Kazan, as every traveller on it will tell you. "
)
ARTICLE = f"""<html><head><title>Kama &amp; Volga</title><style>p {{color: red}}</style></head><body>
<nav><ul><li><a href="/home">Home</a><li><a href="/news">News</a></ul></nav>
<div id="main"><h1>The Kama</h1>
<p>{BODY * 4}<a href="/volga?x=1&amp;y=2#mouth">Volga</a></p>
<h2>Towns</h2><ul><li>Perm, with its opera <li>Berezniki, with its salt</ul>
<table><tr><th>Town<th>People</tr><tr><td>Perm<td>1 034 002</tr><tr><td>Chistopol</td><td><a href="c.html">61 000</a></td></tr></table>
<pre>depth  =  4
width  =  9</pre>
<p>{BODY * 8}</p></div>
<div class="sidebar related-posts"><p>{BODY.replace("Kama", "Lena")}</p></div>
<footer>All rights reserved by somebody who wants them all <a href="mailto:a@b.c">write</a></footer>
<script>var SECRETSCRIPT = "<p>no text</p>";</script></body></html>"""


def test_a_page_becomes_its_title_its_running_text_without_furniture_and_its_links():
    page = extract(ARTICLE, "http://rivers.example/kama/index.html")
    assert (page.title, page.state) == ("Kama & Volga", "ok")
    assert page.text.startswith("# The Kama\n\nThe river Kama")
    for furniture in ("SECRETSCRIPT", "Home", "rights reserved", "Lena", "color"):
        assert furniture not in page.text
    assert "\n## Towns\n" in page.text
    assert "- Perm, with its opera\n- Berezniki, with its salt" in page.text
    assert "| Town | People |\n|---|---|\n| Perm | 1 034 002 |\n| Chistopol | 61 000 |" in page.text
    assert "depth  =  4\nwidth  =  9" in page.text
    assert page.links == (
        Link("Volga", "http://rivers.example/volga?x=1&y=2"),
        Link("61 000", "http://rivers.example/kama/c.html"),
        Link("Home", "http://rivers.example/home"),
        Link("News", "http://rivers.example/news"),
    )


def test_hidden_elements_are_neither_text_nor_links():
    html = """<p>Visible words</p><div style="display:none">ONE <a href="http://evil.example/">evil</a></div>
    <p style='font-size: 0'>TWO</p><span hidden>THREE</span><p aria-hidden=true>FOUR</p><p style="opacity:0.0">FIVE</p>
    <p style="position:absolute; left:-9999px">SIX</p><p style="font-size:0.9em">small but seen</p><template>SEVEN</template>
    <p style="opacity: 0.5">pale but seen</p><!-- EIGHT --><noscript>NINE</noscript><p style="visibility:hidden">TEN</p>
    <div style="height: 0; overflow: hidden">ELEVEN</div><noembed>TWELVE</noembed><script>"THIRTEEN"</script foo>"""
    page = extract(html)
    assert page.text.split() == ["Visible", "words", "small", "but", "seen", "pale", "but", "seen"]
    assert page.links == ()


def test_the_article_is_found_below_longer_comments():
    comments = "".join(f"<li><p>I do not agree with anything of this, reader {n} said. {BODY}</p>" for n in range(60))
    html = f"<article><div class='entry-content'><p>{BODY * 5}</p></div></article><ol class='thread'>{comments}</ol>"
    text = extract(html).text
    assert text.startswith("The river Kama")
    assert "reader 3" not in text


SHORT = "The committee met on Tuesday to speak about the matter at length, and several members had their say. " * 4
LONG = f"<article><p>{BODY * 40}</p></article>"
FRAME = "<aside><p>Already a subscriber? Sign in. Subscribe for unlimited access.</p></aside>"
SHELL = "<title>App</title><div id=app></div><script src=a.js></script>"
BLOCKED = (
    "Sorry, you have been blocked. Why have I been blocked? This website is using a security service to protect itself "
    "from online attacks. The action you just performed triggered the security solution. You can email the site owner "
    "to let them know you were blocked. Please include the Ray ID."
)
FILM = (
    "Blocked is a 2019 film about a road that has been closed. It opens with the line: you have been blocked. "
    "The film was shot in Leeds over a single summer."
)


def test_a_page_that_is_no_content_says_so_in_many_languages_and_an_article_about_walls_is_none():
    for html, state in (
        ("", "empty"),
        ("<title>Just a moment...</title><p>Checking your browser before you go on.</p>", "blocked"),
        ("<p>Request unsuccessful. Incapsula incident ID: 123-456</p>", "blocked"),
        ("<p>Please complete the following challenge to confirm this search was made by a human.</p>", "blocked"),
        (f"<title>Attention Required! | Cloudflare</title><p>{BLOCKED}</p>", "blocked"),
        ("<title>Zugriff verweigert</title><p>Bitte bestätigen Sie, dass Sie kein Roboter sind.</p>", "blocked"),
        ("<title>安全验证</title><h1>安全验证</h1><p>请完成下方验证后继续操作</p>", "blocked"),
        (f"<title>Captcha</title><p>A CAPTCHA tells people and programs apart. Invented in 1997. {SHORT}</p>", "ok"),
        (f"<title>Blocked (film)</title><p>{FILM}</p>", "ok"),
        (f"<title>Access denied: a history</title>{LONG}<p>Are you a robot? the box asks. Access denied.</p>", "ok"),
        ("<title>The Kama</title><p>The Kama is a river in Russia.</p><script>x()</script>", "ok"),
        ("<div></div><noscript>You need to enable JavaScript to run this app.</noscript><script></script>", "script"),
        ("<div id=app>Loading</div><script src=a.js></script><script src=b.js></script>", "script"),
        (SHELL, "script"),
        (f"{SHELL}<noscript>Bitte aktivieren Sie JavaScript.</noscript>", "script"),
        (f"{SHELL}<noscript>请启用JavaScript</noscript>", "script"),
        (f'<script type="application/ld+json">{{"isAccessibleForFree": "False"}}</script><p>{BODY * 2}</p>', "paywall"),
        (f"<article><p>{SHORT}</p></article><div><p>Subscribe to continue reading</p></div>", "paywall"),
        (f"<article><p>{SHORT}</p></article><p>Dieser Artikel ist nur für Abonnenten verfügbar.</p>", "paywall"),
        (f"<article><p>{SHORT}</p></article><p>この記事は会員限定です。残り1200文字</p>", "paywall"),
        (f"<article><p>{SHORT}</p></article><p>Материал доступен только подписчикам</p>", "paywall"),
        (f"<article><p>{SHORT}</p></article><p>Weather: rain. Subscribe to our newsletter.</p>", "ok"),
        (f"{LONG}<p>Subscribe to continue reading</p>", "ok"),
        (f"{FRAME}<article><p>{SHORT}</p></article>", "ok"),
        (f"<article><p>{SHORT * 5}</p></article>{FRAME}", "ok"),
    ):
        assert extract(html).state == state


def test_cells_that_take_several_columns_or_rows_keep_the_others_under_theirs():
    html = f"""<p>{BODY}</p><table><tr><th colspan=2>Group</th><th>C</th></tr>
    <tr><td rowspan=2>a</td><td>b</td><td rowspan=9>c</td></tr><tr><td>d</td></tr><tr><td>e</td><td>f</td></tr></table>
    <table><tr><td>g</td><td colspan=x>h</td></tr></table>"""
    rows = [line for line in extract(html).text.splitlines() if line.startswith("|")]
    assert rows == ["| Group |  | C |", "|---|---|---|", "| a | b | c |", "| a | d | c |", "| e | f | c |", "| g | h |"]


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("<thead><tr><th>Ferry<th>Crew<tbody><tr><td>Alma<td>9", ["| Ferry | Crew |", "|---|---|", "| Alma | 9 |"]),
        ("<tr><th>Ferries<tr><th>Name<th>Crew<tr><th>Alma<td>9<tr><th>Sold<tr><td>Berit<td>4",
         ["| Ferries |", "| Name | Crew |", "|---|---|", "| Alma | 9 |", "| Sold |", "| Berit | 4 |"]),
        ("<tr><th>Alma<td>9<tr><th>Berit<td>4", ["| Alma | 9 |", "| Berit | 4 |"]),
        ("<tr><td>Alma<td>9<tr><td>Berit<td>4", ["| Alma | 9 |", "| Berit | 4 |"]),
    ],
)  # fmt: skip
def test_only_the_first_rows_of_names_of_columns_are_the_header_of_a_table(table, rows):
    text = extract(f"<p>{BODY}</p><table>{table}</table><p>{BODY}</p>").text
    assert [line for line in text.splitlines() if line.startswith("|")] == rows


def test_a_definition_is_on_the_line_of_its_term_and_several_paragraphs_are_below_it():
    html = (
        "<h1>Harrow Club</h1><dl><dt>Founded</dt><dd>1931</dd><dt>Coach<dd>\n<p><b>Mina</b> Kerr</p>\n"
        "<dt>Rules</dt><dd><p>No dogs.</p><p>No bells.</p></dd><dt>Alone</dt></dl><p>End.</p>"
    )

    text = extract(html).text

    assert "Founded: 1931\nCoach: Mina Kerr\n" in text
    assert "Rules:\n\nNo dogs.\n\nNo bells." in text
    source = Source("club.html", "Harrow Club", text, "page", "s1")
    assert check("The coach of Harrow Club is Mina Kerr", source).verdict == "supported"


def test_a_row_of_a_page_supports_a_claim_with_the_names_of_its_columns():
    html = f"<p>{BODY}</p><table><tr><th>Ferry<th>Crew<th>Decks<tr><td>Alma<td>9<td>2<tr><td>Berit<td>4<td>3</table>"
    source = Source("http://ferries.example/", "Ferries", extract(html).text, id="s1")
    assert check("The crew of the Alma is 9", source).verdict == "supported"
    assert check("The decks of the Alma are 9", source).verdict == "unsupported"


@pytest.mark.parametrize(
    "piece", ["<!-- x>", "<a <", "<p x='", "<script>", pytest.param("<td><tr>", marks=pytest.mark.heavy(seconds=3))]
)
def test_hostile_markup_takes_no_quadratic_time(piece):
    began = time.process_time()
    extract("<p>visible</p>" + piece * 60_000 + "<p>text</p>")
    assert time.process_time() - began < 10  # linear: a tenth of a second to one; quadratic: minutes


@given(st.text(st.sampled_from(list("<>/!-[]?=\"' &;#xpatdivliulrhn\x00é"))))
def test_no_markup_is_too_broken_to_read(html):
    page = extract(html, "http://a.example/")
    assert page.state in {"ok", "empty", "script", "blocked", "paywall"}


def test_stray_end_tags_do_not_tear_tables_and_blocks():
    html = "<div><span><table><tr><td>a</div></span></td><td>b</td></tr></table></div>"
    assert extract(html).text == "| a | b |"


CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy a pak ještě dlouho běžel přes pole k řece."


def test_the_charset_is_found_in_mark_header_meta_or_the_bytes_themselves():
    for body, content_type in (
        (CZECH.encode("iso-8859-2"), "text/html; charset=iso-8859-2"),
        (f'<meta charset="windows-1250">{CZECH}'.encode("cp1250"), "text/html"),
        (f'<meta http-equiv=Content-Type content="text/html; charset=windows-1250">{CZECH}'.encode("cp1250"), ""),
        (CZECH.encode(), "text/html; charset=klingon"),
        (CZECH.encode("utf-16"), "text/html"),
        (b"\xef\xbb\xbf" + CZECH.encode(), "text/html; charset=latin1"),
        (f'<meta charset="utf-16">{CZECH}'.encode(), ""),
        (f'<?xml version="1.0" encoding="ISO-8859-2"?>{CZECH}'.encode("iso-8859-2"), ""),
        (CZECH.encode(), ""),
    ):
        assert "žluťoučký kůň" in decode_page(body, content_type)


def test_a_declaration_counts_where_the_bytes_would_also_be_utf_8():
    assert "東京" in decode_page("<meta charset=iso-2022-jp><p>東京</p>".encode("iso-2022-jp"))


TEXT = "<p>" + "A long and readable sentence about the harbour of Alta. " * 20 + "</p>"


def test_a_reference_of_thousands_of_digits_is_a_character_that_cannot_be_shown():
    endless = f"&#{'9' * 5_000};"
    page = extract(f"<title>{endless}x</title><p title='{endless}'>{endless}{TEXT}", "https://example.org/")
    assert (page.title, page.text.split()[:2]) == ("\ufffdx", ["\ufffd", "A"])


def test_a_base_that_is_no_address_leaves_the_page_readable():
    for base in ("http://[", "http://\ud800/"):
        page = extract(f'<base href="{base}"><a href="/next">next</a>{TEXT}', "https://example.org/page")
        assert page.state == "ok"
        assert "harbour of Alta" in page.text
        for link in page.links:
            canonicalise_url(link.url)


def test_links_are_read_as_browsers_read_them_and_are_only_of_the_web():
    hrefs = [
        "a b/c d.pdf",
        " /x\n/y ",
        "http://[",
        f"/{'l' * LONGEST}",
        "caf\ud800",
        "#top",
        "mailto:a@b.example",
        "/x/y#z",
    ]
    anchors = "".join(f'<a href="{href}">one</a>' for href in (*hrefs, "javascript:f()", "FTP://x/y"))
    page = extract(f'<base href="//example.org/in/">{anchors}{TEXT}', "https://a.example/page")
    assert [link.url for link in page.links] == [
        "https://example.org/in/a%20b/c%20d.pdf",
        "https://example.org/x/y",
        "https://example.org/in/caf\ufffd",
    ]
    assert canonicalise_url("https://example.org/in/a b/c d.pdf") == canonicalise_url(page.links[0].url)
