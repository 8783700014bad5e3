"""Simple search (HiRA, appendix): plan at most three queries, retrieve once, answer with citations."""

from pydantic import Field

from hira.agents.expert import Account, Task
from hira.agents.loop import ask_for_text
from hira.agents.record import Reply, ask_for_record
from hira.agents.retrieval import look_up
from hira.agents.run_context import RunContext, together
from hira.core.errors import DialectError, EndpointError, Stop, ToolError
from hira.core.memory import Fact
from hira.core.messages import Filled, user
from hira.core.prompts import Prompt, is_copied
from hira.core.sanitize import sanitize
from hira.policies.dialects.answer import strip_thought

PLAN = Prompt(__file__, "simple_search_plan")
ANSWER = Prompt(__file__, "simple_search_answer")
QUERIES = 3
OWN_QUERY = 25
"""Words of a task up to which it is a query itself, and no call plans others."""


class SearchPlan(Reply):
    queries: list[str] = Field(json_schema_extra={"maxItems": QUERIES})


class SimpleSearch:
    name = "simple_search"
    description = "looks up facts that documents or pages state, quickly and cheaply"
    ability = "search"
    cost = 1
    needs = frozenset({"search"})

    async def work(self, task: Task, context: RunContext) -> Account:
        queries = await self._plan(context, task)
        conversation = context.conversation(self.name, task.id)
        seen = await together([look_up(conversation, query) for query in queries])
        if not any(one.ok for group in seen for one in group):
            raise ToolError(seen[0][-1].text)
        documents = Filled("\n\n".join(dict.fromkeys(one.text for group in seen for one in group)))
        prompt = ANSWER.fill(documents=documents, task=sanitize(task.text), known=task.known)
        searched = f"Searched for: {'; '.join(queries)}\n\n{documents}"
        try:
            answer = strip_thought(await ask_for_text(conversation, prompt))
        except (EndpointError, Stop) as error:
            return Account(searched, documents, error.what)
        return Account(f"{searched}\n\n{answer}", answer, found=conversation.has_read)

    async def _plan(self, context: RunContext, task: Task) -> list[str]:
        """At most three queries; the task itself where it is short or no plan can be read, with the facts that it was
        given, which may name what it only describes. The answer is written in another conversation, since a small model
        repeats the plan that it sees."""
        if len(task.text.split()) <= OWN_QUERY and not task.files and not task.faithful:
            facts = [entry.text for entry in task.recall.entries if isinstance(entry, Fact)]
            return [" ".join(" ".join([task.text, *facts]).split()[: 2 * OWN_QUERY])]
        conversation = context.conversation(self.name, task.id)
        message = user(PLAN.fill(most=QUERIES, task=sanitize(task.text), files=task.attached, known=task.known))
        instructions = PLAN.fill(most=QUERIES, task="", files="", known="")
        try:
            plan = await ask_for_record(conversation, message, SearchPlan)
        except DialectError:
            return [task.text]
        queries = dict.fromkeys(query.strip() for query in plan.queries if not is_copied(query, instructions))
        return [*queries][:QUERIES] or [task.text]
