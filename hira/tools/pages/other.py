"""The text of a page as trafilatura reads it, an extra; title, links and state stay our own."""

from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from hira.core.errors import UsageError
from hira.tools.pages import Page, extract

Extractor = Literal["hira", "trafilatura"]


def check_extractor(name: Extractor) -> None:
    """Raise `UsageError` for an extractor that is not installed."""
    if name == "trafilatura" and find_spec("trafilatura") is None:
        raise UsageError("extractor = 'trafilatura' needs trafilatura", fix="pip install 'hira[trafilatura]'")


def extract_by(name: Extractor, html: str, url: str = "") -> Page:
    """Read a page with this extractor. A page in which trafilatura finds nothing is told as ours reads it."""
    page = extract(html, url)
    if name == "hira" or page.state != "ok":
        return page
    trafilatura: Any = import_module("trafilatura")  # an extra: it may have no types here
    text = trafilatura.extract(html, url=url or None, output_format="markdown", include_tables=True)
    return replace(page, text=text.strip()) if text and text.strip() else page
