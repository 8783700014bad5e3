"""Other wordings of a query: the role that searches reads what a first search found and writes more queries; the
orders of all are merged by reciprocal rank."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hira.agents.evidence_step import name_search
from hira.agents.queries import plan_queries
from hira.agents.run_context import Conversation
from hira.core.concurrency import together
from hira.core.errors import EndpointError, Stop
from hira.core.messages import Filled
from hira.core.prompts import Prompt
from hira.evidence import inert
from hira.tools import Observation
from hira.tools.documents.ranking import fuse

KNOWN = Prompt(__file__, "shared", "known")
SHOWN = 5
"""Passages of the first search that the role reads."""
REPLY = 200
"""Tokens of its reply."""


async def search_rewritten(
    conversation: Conversation,
    arguments: Mapping[str, Any],
    search: Callable[[Mapping[str, Any]], Awaitable[Observation]],
) -> Observation:
    """Search with the query and with at most three others."""
    first = await search(arguments)
    if not first.ok:
        return first
    context, query = conversation.context, str(arguments["query"])
    writer = context.conversation(conversation.trajectory.role, name_search(query), reply=REPLY)
    writer.instructions = ""
    notes = "\n".join(inert(f"{passage.source.title}: {passage.text}") for passage in first.passages[:SHOWN])
    try:
        queries = await plan_queries(writer, query, Filled(""), KNOWN.fill(notes=notes))
    except (EndpointError, Stop) as error:
        context.note(f"no other queries are searched for: {error.what}")
        return first
    more = await together([search({**arguments, "query": other}) for other in queries if other != query])
    return merge(first, more)


def merge(first: Observation, more: Sequence[Observation]) -> Observation:
    """Merge the results of other queries into those of the first, which weigh as much as all others together."""
    orders = [first.passages] * max(1, len(more)) + [each.passages for each in more]
    merged = fuse(orders, lambda passage: (passage.source.location, passage.text))
    most = max(map(len, orders))
    return replace(first, text="" if merged else first.text, passages=tuple(merged[:most]))
