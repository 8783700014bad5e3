"""The queries that a model writes: for a task, or as other wordings of one, whose results are merged by their ranks."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from hira.agents.evidence_step import name_search
from hira.agents.record import Reply, ask_for_record
from hira.agents.run_context import Conversation
from hira.core.concurrency import together
from hira.core.errors import DialectError, EndpointError, Stop
from hira.core.messages import Filled, user
from hira.core.prompts import Prompt, is_copied
from hira.core.sanitize import sanitize
from hira.evidence import inert
from hira.tools import Observation
from hira.tools.documents.ranking import fuse

PLAN = Prompt(__file__, "simple_search_plan")
QUERIES = 3


class SearchPlan(Reply):
    queries: list[str] = Field(json_schema_extra={"maxItems": QUERIES})


async def plan_queries(conversation: Conversation, task: str, files: Filled, known: Filled) -> list[str]:
    """Ask for at most three queries for a task; none if no plan can be read."""
    message = user(PLAN.fill(most=QUERIES, task=sanitize(task), files=files, known=known))
    instructions = PLAN.fill(most=QUERIES, task="", files="", known="")
    try:
        plan = await ask_for_record(conversation, message, SearchPlan)
    except DialectError:
        return []
    queries = dict.fromkeys(query.strip() for query in plan.queries if not is_copied(query, instructions))
    return [query for query in queries if query][:QUERIES]


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
        context.note(f"no other queries are searched: {error.what}")
        return first
    more = await together([search({**arguments, "query": other}) for other in queries if other != query])
    return merge(first, more)


def merge(first: Observation, more: Sequence[Observation]) -> Observation:
    """Merge the results of other queries into those of the first, which weigh as much as all others together."""
    orders = [first.passages] * max(1, len(more)) + [each.passages for each in more]
    merged = fuse(orders, lambda passage: (passage.source.location, passage.text))
    most = max(map(len, orders))
    return replace(first, text="" if merged else first.text, passages=tuple(merged[:most]))
