"""Markdown of an answer as a page. Texts of models and sources are plain text in it."""

from collections.abc import Sequence
from pathlib import Path

from hira.cli.report_sources import find_url
from hira.core.page import make_standalone_page
from hira.evidence.references import Reference, is_chinese


def render_markdown(text: str, listed: Sequence[Reference]) -> str:
    """Convert Markdown to HTML. HTML in it becomes text; links lead to cited sources or become words."""
    from markdown_it import MarkdownIt

    known = {find_url(citation.source) for citation in listed} - {""}
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")
    parser.validateLink = lambda url: url in known  # type: ignore[method-assign]
    tokens = parser.parse(text)
    for token in tokens:
        token.info = ""
        for inner in token.children or ():
            if inner.type == "link_open":  # no title, and no referrer for its target
                inner.attrs = {"href": inner.attrs["href"], "rel": "noopener noreferrer nofollow"}
    return str(parser.renderer.render(tokens, parser.options, {}))


def make_page(question: str, shown: str) -> str:
    """Return a page with the style of reports, in the language of the question, which is its title."""
    style = Path(__file__).with_name("report_page.css").read_text(encoding="utf-8")
    language = "zh" if is_chinese(question) else "en"
    title = " ".join(question.split())
    return make_standalone_page(title, f"<main>\n{shown}\n</main>", style=style, language=language).strip()
