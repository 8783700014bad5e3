"""Retrieval: a search, and the pages of hits that are mere snippets.

`look_up` returns what the tools show, the parts of a page that fit the query; `retrieve` returns whole pages as
separate documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hira.agents.calls import CallResult, frame_source, use
from hira.agents.run_context import Conversation, RunContext
from hira.core.concurrency import together
from hira.core.errors import EndpointError, Stop
from hira.core.messages import Filled
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.evidence import CITED, inert, is_refusal
from hira.tools import LONGEST_QUERY, Passage, Tool

NOTHING_FOUND = Prompt(__file__, "reports", "nothing_found")
FOLLOW_UP = Prompt(__file__, "reports", "follow_up")
_REFERRED = 200
"""Characters of an earlier message that a follow-up question is searched with."""
PAGES = 5
"""Pages that are read for a query."""


async def look_up(conversation: Conversation, query: str, most: int = PAGES) -> Sequence[CallResult]:
    """Search, open the pages of the first hits that are mere snippets, and return their texts, then the search's."""
    search = conversation.context.tools.search
    assert search is not None  # noqa: S101 - the needs of whoever calls this say so
    hits = await use(conversation, search, {"query": query})
    places = _snippets(hits.observation.passages)[:most]
    pages = await together([_open(conversation, place, query) for place in places])
    return [*(page for page in pages if page), hits]


async def look_up_question(conversation: Conversation, question: str, most: int = PAGES) -> Sequence[CallResult]:
    """Look up the beginning of the question as it was typed. A follow-up question is looked up again together with the
    latest question and answer, which name the things that it may refer to, unless the answer is a refusal."""
    context = conversation.context
    typed = context.rollout.question or question
    latest = [CITED.sub("", text)[:_REFERRED] for _, text in context.earlier[-2:] if not is_refusal(text)]
    queries = [typed, *([" ".join((typed, *latest))] if latest else [])]
    cut = [" ".join(query.split())[:LONGEST_QUERY] for query in queries]
    seen = await together([look_up(conversation, query, most) for query in cut])
    return [result for results in seen for result in results]


def restate(context: RunContext) -> str:
    """Return a follow-up question with the one that it follows."""
    before = next((text for role, text in reversed(context.earlier) if role == "user"), "")
    return str(FOLLOW_UP.fill(question=sanitize(context.rollout.question), before=sanitize(before[:_REFERRED])))


async def look_up_reworded(conversation: Conversation, question: str, most: int = PAGES) -> None:
    """Look up a question with the queries that a model writes for it, because its own words find nothing."""
    from hira.agents.queries import plan_queries  # few questions need it

    question = restate(conversation.context) if conversation.context.earlier else question
    try:
        queries = await plan_queries(conversation, question, Filled(""), Filled(""))
    except (EndpointError, Stop) as error:
        conversation.context.note(f"no other queries are searched: {error.what}")
        return
    await together([look_up(conversation, query[:LONGEST_QUERY], most) for query in queries])


@dataclass(frozen=True, slots=True)
class Retrieved:
    """`documents` as the model sees them, each once, and `notes`: other messages of the tools, such as a failure.

    `ok` is False if no tool answered.
    """

    documents: tuple[Filled, ...] = ()
    notes: tuple[str, ...] = ()
    ok: bool = True


async def retrieve(
    conversation: Conversation, search: Tool, queries: Sequence[str], *, intent: str, most: int
) -> Retrieved:
    """Run the queries concurrently, with at most `most` results each. Passages of documents are returned unchanged. For
    hits that are mere snippets the whole pages are read, concurrently too, if they can be."""
    seen = await together([use(conversation, search, {"query": query}) for query in queries])
    passages = [passage for tool_use in seen for passage in tool_use.observation.passages[:most]]
    places = _snippets(passages)
    opened = await together([_page(conversation, place, intent) for place in places])
    pages = {place: page for place, page in zip(places, opened, strict=True) if page}
    documents: dict[Filled, None] = {}
    for passage in passages:
        page = pages.get(passage.source.location) if passage.source.kind == "hit" else None
        documents[page or frame_source(conversation.context.read(passage.source), passage.text)] = None
    notes = [
        inert(tool_use.observation.text) if tool_use.ok and tool_use.observation.passages else tool_use.text
        for tool_use in seen
    ]
    return Retrieved(tuple(documents), tuple(filter(None, notes)), any(tool_use.ok for tool_use in seen))


def _snippets(passages: Sequence[Passage]) -> list[str]:
    """Where the pages are of which only snippets were found."""
    return list(dict.fromkeys(passage.source.location for passage in passages if passage.source.kind == "hit"))


async def _open(conversation: Conversation, place: str, intent: str) -> CallResult | None:
    """Open a page and return what the tool shows, None if that fails."""
    browse = conversation.context.tools.browse
    seen = await use(conversation, browse, {"url": place, "intent": intent}) if browse else None
    return seen if seen and seen.ok else None


async def _page(conversation: Conversation, place: str, intent: str) -> Filled | None:
    """Return the whole text of a page, None if that fails. Texts are formatted while other pages load."""
    seen = await _open(conversation, place, intent)
    if seen is None or not seen.observation.passages:
        return None
    source = seen.observation.passages[0].source
    return frame_source(conversation.context.read(source), source.text)
