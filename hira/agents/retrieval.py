"""Looking things up: a search, and the pages behind hits that are mere snippets.

`look_up` hands on what the tools show, the parts of a page near to the query; `retrieve` the whole of every page, each
as a document of its own.
"""

from collections.abc import Mapping, Sequence

from hira.agents.calls import Seen, frame_source, use
from hira.agents.run_context import Conversation, together
from hira.core.dataclasses import dataclass
from hira.core.messages import Filled
from hira.evidence import inert
from hira.tools import Passage, Tool

PAGES = 5
"""Pages that are read for a query."""


async def look_up(conversation: Conversation, query: str, most: int = PAGES) -> Sequence[Seen]:
    """What a query brings: the pages behind the first hits that are mere snippets, and then what the search told."""
    search = conversation.context.tools.search
    assert search is not None  # noqa: S101 - the needs of whoever calls this say so
    found = await use(conversation, search, {"query": query})
    places = _snippets(found.observation.passages)[:most]
    pages = await together([_opened(conversation, place, query) for place in places])
    return [*(page for page in pages if page), found]


@dataclass(frozen=True, slots=True)
class Retrieved:
    """`documents` as a model is shown them, each once, and `notes`: what the tools told besides, such as a failure.

    `ok` is False if nothing answered.
    """

    documents: tuple[Filled, ...] = ()
    notes: tuple[str, ...] = ()
    ok: bool = True


async def retrieve(
    conversation: Conversation, search: Tool, queries: Sequence[str], *, intent: str, most: int
) -> Retrieved:
    """What the queries bring, asked side by side, `most` results of each.

    Passages of documents come as they are; behind hits that are mere snippets the whole pages are read, side by side as
    well, and a snippet stays where its page cannot be read.
    """
    seen = await together([use(conversation, search, {"query": query}) for query in queries])
    found = [passage for one in seen for passage in one.observation.passages[:most]]
    places = _snippets(found)
    opened = await together([_page(conversation, place, intent) for place in places])
    pages = {place: page for place, page in zip(places, opened, strict=True) if page}
    documents = dict.fromkeys(_document(conversation, passage, pages) for passage in found)
    return Retrieved(tuple(documents), tuple(filter(None, map(_note, seen))), any(one.ok for one in seen))


def _snippets(found: Sequence[Passage]) -> list[str]:
    """Where the pages are of which only snippets were found."""
    return list(dict.fromkeys(one.source.location for one in found if one.source.kind == "hit"))


async def _opened(conversation: Conversation, place: str, intent: str) -> Seen | None:
    """What opening a page shows, None if it cannot be read."""
    browse = conversation.context.tools.browse
    seen = await use(conversation, browse, {"url": place, "intent": intent}) if browse else None
    return seen if seen and seen.ok else None


async def _page(conversation: Conversation, place: str, intent: str) -> Filled | None:
    """All the text of a page, None if it has none or cannot be read. It is made while others are still opened."""
    seen = await _opened(conversation, place, intent)
    if seen is None or not seen.observation.passages:
        return None
    source = seen.observation.passages[0].source
    return frame_source(conversation.context.read(source), source.text)


def _document(conversation: Conversation, passage: Passage, pages: Mapping[str, Filled]) -> Filled:
    page = pages.get(passage.source.location) if passage.source.kind == "hit" else None
    return page or frame_source(conversation.context.read(passage.source), passage.text)


def _note(seen: Seen) -> str:
    """What a search told besides its passages."""
    return inert(seen.observation.text) if seen.ok and seen.observation.passages else seen.text
