"""HTML files, by the same extractor that reads web pages."""

from pathlib import Path

from hira.tools.documents.document import Document, Part, add_title


def page_of(html: str) -> tuple[str, str]:
    """Title and readable text of an HTML page."""
    from hira.tools.pages import extract

    page = extract(html)
    return page.title, page.text


def read_html(path: Path, text: str) -> Document:
    title, readable = page_of(text)
    return add_title(path, (Part(readable),), title)
