"""Queries in the words of those who would ask them (rubrics paper, section 3.2 and appendix A)."""

from pydantic import BaseModel, Field

from hira.agents.record import record
from hira.agents.run_context import Conversation
from hira.core.messages import user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.evaluation.rewards.match import contains
from hira.evidence.references import language

REWRITE = Prompt(__file__, "curation_rewrite")


class Rewritten(BaseModel):
    kept: list[str] = []
    query: str = Field(min_length=1)


async def rewritten(conversation: Conversation, query: str) -> str:
    """A short question as a request for a report, in the question's language.

    The names and figures that the writer says it kept have to stand in both, else it is asked once more. Raises
    `DialectError` if the second try fails, too.
    """

    def wrong(one: Rewritten) -> str:
        text = one.query.strip()
        if text.casefold() == query.strip().casefold():
            return "This is the question as it was. Write it as a request for a report."
        lost = [name for name in one.kept if name.strip() and not (contains(text, name) and contains(query, name))]
        return f"These are not in both, question and request: {', '.join(lost)}." if lost else ""

    prompt = REWRITE.fill(query=sanitize(query), language=language(query))
    return (await record(conversation, user(prompt), Rewritten, wrong=wrong)).query.strip()
