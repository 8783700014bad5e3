"""Writing a rubric for a query with a model (rubrics paper, section 3.3 and appendix C.1)."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from hira.agents.record import record
from hira.agents.rubrics.rubric import FEWEST, MOST, Rubric, faults
from hira.agents.run_context import Conversation
from hira.core.messages import user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.evidence.references import language

WRITER = "rubric"
"""The role that writes rubrics."""
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
    prompt = GENERATE.fill(query=sanitize(query), fewest=FEWEST, most=MOST, language=language(query))
    written = await record(conversation, user(prompt), Written, wrong=lambda one: "; ".join(faults(one.items)))
    return Rubric.of(written.items)
