"""The tool "browse": a page as readable text with its links, or the passages of a long one that fit the intent."""

import asyncio
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote, urlsplit

from hira.core.bm25 import BM25
from hira.core.concurrency import run_apart
from hira.core.errors import ToolError, WorkerError
from hira.core.sanitize import clip_title, printable
from hira.core.sources import Places
from hira.core.tool import Observation, Passage, Tool, tool
from hira.evidence import Source
from hira.tools.addresses import canonicalise_url, in_one_case, quote_url, urls
from hira.tools.documents.document import Document, Part, cut
from hira.tools.documents.pieces import Piece, join_pieces, write_pieces
from hira.tools.documents.reader import read_passages
from hira.tools.documents.showing import choose_passages
from hira.tools.fetch import Fetched, Fetcher
from hira.tools.opening import ReadingChild, open_copy
from hira.tools.pages import Link, Page, extract
from hira.tools.search.service import mark_retracted

T = TypeVar("T")

LINKS = 40
KEPT = 16
LINK_TEXT = 80
_NO_CONTENT = {
    "blocked": "blocks programs: it shows a bot check or a refusal instead of its content",
    "empty": "holds no text",
    "script": "shows its content only in a browser that runs its scripts",
    "paywall": "shows its content only to subscribers",
}
_NO_NAME = re.compile(r"[^\w.-]+")
_SUFFIXES = {
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
    "application/epub+zip": ".epub",
}


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page that was read: its final URL, its links, and why it ends early, if it does. A file has its `pieces` and
    their `places`, and names the pages without text (`unread`)."""

    url: str
    title: str
    text: str
    links: tuple[Link, ...] = ()
    cut: str = ""
    pieces: tuple[Piece, ...] = ()
    places: Places = ()
    unread: tuple[str, ...] = ()


def browse_tool(fetcher: Fetcher, *, seen: set[str], retracted: Iterable[str] = ()) -> Tool:
    """Create the tool "browse" for one run. It opens only URLs in `seen`, which are canonical (`canonicalise_url`).

    `seen` begins with the URLs of the question and is shared with the run's search; URLs on pages are added to it.
    `retracted` are the URLs of works that a search of the run reported as retracted.
    """
    from pydantic import Field

    kept: dict[str, ReadPage] = {}

    async def browse(
        url: Annotated[str, Field(description="a URL as the question, a search result or a page shows it")],
        intent: Annotated[str, Field(description="what to look for")] = "",
    ) -> Observation:
        """Open a web page. Returns its text and links; of a long page the passages that matter for the intent."""
        url = _find_url(url, seen)
        key = canonicalise_url(url)
        if key not in kept:
            page = await open_page(await fetcher.get(url))
            kept[key] = replace(page, title=mark_retracted(page.title)) if key in retracted else page
        reading = kept[key]
        if len(kept) > KEPT:
            del kept[next(iter(kept))]
        observation, shows = await _run_apart(reading.url, len(reading.text), show, reading, intent)
        seen.update(shows)
        return observation

    return tool(browse, pure=True)


def _find_url(url: str, seen: set[str]) -> str:
    """Return the URL without what models put around it, if it was seen. Raises `ToolError` otherwise."""
    bare = printable(url).strip().strip("<>\"'`")
    for candidate in (bare, *urls(bare)[:1]):
        if canonicalise_url(candidate) in seen:
            return in_one_case(candidate)
    raise ToolError(
        f"{quote_url(bare)} was not shown in the question, in a search result or on a page, and only such addresses "
        "are opened, unchanged; search for it first"
    )


async def open_page(got: Fetched) -> ReadPage:
    """Read without blocking the event loop: a child process with limits parses large pages."""
    page = None
    if got.kind == "html" and got.status < 400:
        body = got.body.decode("latin-1")
        page = await _run_apart(got.url, len(body), parse_page, body, got.content_type, got.url)
    return await asyncio.to_thread(read, got, page)


async def _run_apart(url: str, size: int, function: Callable[..., T], *arguments: Any) -> T:
    try:
        return await run_apart(size, function, *arguments)
    except WorkerError as error:
        raise ToolError(f"{quote_url(url)} is not read: {error}") from None


def parse_page(body: str, content_type: str, url: str) -> Page:
    """Parse a page from its bytes, which `body` holds as Latin-1: some charsets take long to decode."""
    return extract(Fetched(url, 200, content_type, body.encode("latin-1")).text, url)


def read(got: Fetched, page: Page | None = None) -> ReadPage:
    """Turn a response into readable text; `page` is its parsed HTML. Raises `ToolError` if it holds no text."""
    shown = quote_url(got.url)
    if got.status >= 400:
        raise ToolError(f"{shown} answered with an error, status {got.status}")
    if got.kind == "image":
        raise ToolError(f"{shown} is an image; it holds no text")
    if got.kind in {"pdf", "binary"}:
        if got.cut:
            raise ToolError(f"{shown} is a file that could not be loaded whole: {got.cut}")
        return _read_file(got)
    if got.kind == "html":
        page = page or extract(got.text, got.url)
    else:
        text = got.text.strip()
        page = Page("", text, (), "ok" if text else "empty")
    if not page.text and got.cut:
        raise ToolError(f"{shown} could not be loaded: {got.cut}")
    if page.state != "ok":
        raise ToolError(f"{shown} {_NO_CONTENT[page.state]}; look for the same elsewhere")
    return ReadPage(got.url, clip_title(page.title) or _make_name(got), page.text, page.links, got.cut)


def _make_name(got: Fetched) -> str:
    """Return a file name for a response, from its URL; it ends in the suffix of its kind."""
    parts = urlsplit(got.url)
    name = _NO_NAME.sub("_", PurePosixPath(unquote(parts.path)).name)[-100:] or parts.hostname or "page"
    declared = got.content_type.partition(";")[0].strip().lower()
    suffix = ".pdf" if got.kind == "pdf" else _SUFFIXES.get(declared, "")
    return name if name.lower().endswith(suffix) else name + suffix


def _read_file(got: Fetched) -> ReadPage:
    """Read a PDF or office file with the readers of local files."""
    with ReadingChild() as child, open_copy(_make_name(got), got.body) as file:
        read = read_passages(child, file)
    if not (read.pieces or read.unread):
        raise ToolError(f"{quote_url(got.url)} {_NO_CONTENT['empty']}")
    text, places = join_pieces(read.pieces, read.title, placed=True)
    return ReadPage(got.url, read.title, text, pieces=read.pieces, places=places, unread=read.unread)


def show(reading: ReadPage, intent: str) -> tuple[Observation, set[str]]:
    """Return the page in the form for the model, and the URLs that it shows, in canonical form."""
    pieces = reading.pieces or cut(Document(reading.title, (Part(reading.text),)))
    order, note = choose_passages([piece.full for piece in pieces], intent)
    notes = [note] if note else []
    if reading.cut:
        notes.append(f"only a part of the page was read: {reading.cut}")
    if reading.unread:
        notes.append(f"there is no text on {', '.join(reading.unread[:5])}, only something to see")
    listed, links = _list_links(reading.links, intent)
    text = write_pieces(pieces, order) + listed
    source = Source(reading.url, reading.title, reading.text, "page", places=reading.places)
    shows = {canonicalise_url(url) for url in (reading.url, *(link.url for link in links), *urls(text))}
    return Observation("; ".join(notes), (Passage(source, text),)), shows


def _list_links(links: tuple[Link, ...], intent: str) -> tuple[str, list[Link]]:
    """Return the list of at most `LINKS` links, in the order of the page: those that fit the intent, then the first
    ones; and these links."""
    if not links:
        return "", []
    head, chosen = "Links:", list(range(len(links)))
    if len(links) > LINKS:
        head = f"Links ({LINKS} of {len(links)}):"
        paths = (re.sub("[/_-]", " ", unquote(urlsplit(link.url).path)) for link in links)
        fitting = BM25([f"{link.text} {path}" for link, path in zip(links, paths, strict=True)]).best(intent, LINKS)
        chosen = sorted(list(dict.fromkeys([*fitting, *chosen]))[:LINKS])
    lines = [f"{index + 1}. {links[index].text[:LINK_TEXT]}: {links[index].url}" for index in chosen]
    return "\n\n" + "\n".join([head, *lines]), [links[index] for index in chosen]
