"""Simple search (HiRA, appendix): plan at most three queries, retrieve once, answer with citations."""

from pydantic import BaseModel

from hira.agents.expert import Account, Task
from hira.agents.loop import check_spoken
from hira.agents.record import record
from hira.agents.retrieval import look_up
from hira.dialects.answer import spoken
from hira.errors import DialectError, EndpointError, Stop
from hira.messages import Filled, assistant, user
from hira.prompts import Prompt
from hira.team import Conversation, Team, together
from hira.untrusted import said

PLAN = Prompt(__file__, "simple_search_plan")
ANSWER = Prompt(__file__, "simple_search_answer")
QUERIES = 3


class Plan(BaseModel):
    queries: list[str]


class SimpleSearch:
    name = "simple_search"
    description = (
        "looks a thing up: a few queries, one reading of what they bring, an answer with sources. "
        "Quick and cheap; for facts that a page states directly"
    )
    ability = "search"
    cost = 1
    needs = frozenset({"search"})

    async def work(self, task: Task, team: Team) -> Account:
        conversation = team.conversation(self.name, task.id)
        queries = await self._plan(conversation, task)
        seen = await together([look_up(conversation, query) for query in queries])
        documents = Filled("\n\n".join(dict.fromkeys(one.text for group in seen for one in group)))
        conversation.say(user(ANSWER.fill(documents=documents, task=said(task.text), known=task.known)))
        searched = f"Searched for: {'; '.join(queries)}\n\n{documents}"
        try:
            completion = await conversation.turn()
            check_spoken(completion, conversation)
        except (EndpointError, Stop) as error:
            return Account(searched, documents, error.what)
        conversation.say(assistant(completion.text))
        told = spoken(completion)
        return Account(f"{searched}\n\n{told}", told)

    async def _plan(self, conversation: Conversation, task: Task) -> list[str]:
        """At most three queries; the task itself where no plan can be read."""
        message = user(PLAN.fill(most=QUERIES, task=said(task.text), files=task.attached, known=task.known))
        try:
            plan = await record(conversation, message, Plan)
        except DialectError:
            return [task.text]
        return list(dict.fromkeys(query.strip() for query in plan.queries if query.strip()))[:QUERIES] or [task.text]
