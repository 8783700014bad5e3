"""What a model is asked of a question: its level, whether it is clear, whether it needs an expert (MARS, appendix B and
D.2). The criteria are the paper's, the wording is ours. A judge that fails gives None: nothing is decided."""

from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

from pydantic import BaseModel, Field

from hira.agents.record import record
from hira.agents.run_context import Conversation
from hira.core.errors import DialectError, EndpointError
from hira.core.events import Notice
from hira.core.messages import user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.evaluation.item import Item
from hira.trainers.curation.decision import Decision, Stage

LEVEL = Prompt(__file__, "curation_level")
CLARITY = Prompt(__file__, "curation_clarity")
EXPERT = Prompt(__file__, "curation_expert")
ACADEMIC = frozenset({"undergraduate", "graduate"})
T = TypeVar("T", bound=BaseModel)


class Level(BaseModel):
    reason: str = ""
    discipline: str = Field(min_length=1)
    level: Literal["school", "undergraduate", "graduate", "none"]


class Clear(BaseModel):
    reason: str = ""
    clear: Literal["yes", "no"]


class Expert(BaseModel):
    reason: str = ""
    expert: Literal["yes", "no"]


Asked = Callable[[Conversation, Item], Awaitable[Decision | None]]


async def level(conversation: Conversation, item: Item) -> Decision | None:
    """Step 1: what may be of undergraduate or graduate level is kept, with its discipline."""
    read = await _read(conversation, LEVEL, Level, item)
    if read is None:
        return None
    told = {"discipline": read.discipline, "level": read.level}
    return Decision("level", item.id, kept=read.level in ACADEMIC, why=read.reason, told=told)


async def clarity(conversation: Conversation, item: Item) -> Decision | None:
    """Step 3: what is stated clearly, without ambiguity, and has one answer is kept."""
    read = await _read(conversation, CLARITY, Clear, item)
    return None if read is None else Decision("clarity", item.id, kept=read.clear == "yes", why=read.reason)


async def expert(conversation: Conversation, item: Item) -> Decision | None:
    """Step 4: what takes knowledge of advanced or graduate studies is kept."""
    read = await _read(conversation, EXPERT, Expert, item)
    return None if read is None else Decision("expert", item.id, kept=read.expert == "yes", why=read.reason)


JUDGED: dict[Stage, Asked] = {"level": level, "clarity": clarity, "expert": expert}


async def _read(conversation: Conversation, prompt: Prompt, shape: type[T], item: Item) -> T | None:
    filled = prompt.fill(question=sanitize(item.question), answer=sanitize(item.gold))
    try:
        return await record(conversation, user(filled), shape)
    except (DialectError, EndpointError) as error:
        conversation.team.events(Notice(f"{conversation.name}: {item.id} is not decided, because {error.what}"))
        return None
