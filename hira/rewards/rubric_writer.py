"""Writing a rubric for a query with a model (rubrics paper, section 3.3 and appendix C.1)."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from hira.agents.record import record
from hira.evidence.references import language
from hira.messages import user
from hira.prompts import Prompt
from hira.rewards.rubric import FEWEST, MOST, Rubric, faults
from hira.team import Conversation
from hira.untrusted import said

GENERATE = Prompt(__file__, "rubric_generate")


class Written(BaseModel):
    """A rubric as a model writes it. One object, because servers hold a model to a schema of an object, not of a list;
    what its items lack is for `faults` to say."""

    model_config = ConfigDict(extra="forbid")
    items: list[dict[str, Any]]


async def generate(conversation: Conversation, query: str) -> Rubric:
    """The rubric that the role writes for the query; one that is not valid is asked for once more, with all its faults.

    Raises `DialectError` if the second is not valid either.
    """
    prompt = GENERATE.fill(query=said(query), fewest=FEWEST, most=MOST, language=language(query))
    written = await record(conversation, user(prompt), Written, wrong=lambda one: "; ".join(faults(one.items)))
    return Rubric.of(written.items)
