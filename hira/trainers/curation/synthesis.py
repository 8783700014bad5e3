"""Questions from chains of facts: only the first entity is named, the last is the answer (rubrics paper, 3.2)."""

from pydantic import BaseModel, Field

from hira.agents.record import record
from hira.agents.run_context import Conversation
from hira.core.errors import DialectError, EndpointError
from hira.core.events import Notice
from hira.core.messages import user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.evaluation.item import Item
from hira.evaluation.rewards.match import contains
from hira.trainers.curation.graph import Chain

SYNTHESIZE = Prompt(__file__, "curation_synthesize")


class Asked(BaseModel):
    question: str = Field(min_length=1)


def leaks(question: str, chain: Chain) -> list[str]:
    """What is wrong with a question for a chain: the first entity is not named, or another one is."""
    hidden = [one for one in (*chain.between, chain.end) if contains(question, one) and not contains(chain.start, one)]
    lost = [] if contains(question, chain.start) else [f"it does not name {chain.start}"]
    return [*lost, *(f"it gives {one} away" for one in hidden)]


async def question_of(conversation: Conversation, name: str, chain: Chain) -> Item | None:
    """The question whose answer is the end of the chain; None, and it is told, if the writer names what it should hide
    even when asked again."""
    facts = "\n".join(f"{at}. {one.subject} – {one.relation} – {one.object}" for at, one in enumerate(chain.facts, 1))
    hidden = "\n".join(f"- {one}" for one in (*chain.between, chain.end))
    prompt = SYNTHESIZE.fill(
        facts=sanitize(facts), start=sanitize(chain.start), answer=sanitize(chain.end), hidden=sanitize(hidden)
    )

    def wrong(one: Asked) -> str:
        found = leaks(one.question, chain)
        return f"The question is not usable: {'; '.join(found)}." if found else ""

    try:
        asked = await record(conversation, user(prompt), Asked, wrong=wrong)
    except (DialectError, EndpointError) as error:
        conversation.team.events(Notice(f"{conversation.name}: no question {name}, because {error.what}"))
        return None
    meta = {"path": [[one.subject, one.relation, one.object] for one in chain.facts]}
    return Item(name, asked.question.strip(), (chain.end,), category=f"{len(chain.facts)} hops", meta=meta)
