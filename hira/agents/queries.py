"""The queries that a model writes for a task."""

from pydantic import Field

from hira.agents.record import Reply, ask_for_record
from hira.agents.run_context import Conversation
from hira.core.errors import DialectError
from hira.core.messages import Filled, user
from hira.core.prompts import Prompt, is_copied
from hira.core.sanitize import sanitize

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
