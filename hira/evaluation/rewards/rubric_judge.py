"""Judges: of a report item by item, of a rubric, and of reports by preference (rubrics paper, appendix C.2, C.3, C.11,
C.12). A judge that fails gives None, never 0: an unjudged report is not bad."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from hira.agents.rubrics import Rubric, RubricItem, Scores
from hira.agents.run_context import Conversation, RunContext, together
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.evaluation.rewards.answer_judge import ask_judge

RATE = Prompt(__file__, "rubric_rate")
QUALITY = Prompt(__file__, "rubric_quality")
POINTWISE = Prompt(__file__, "rubric_pointwise")
PAIRWISE = Prompt(__file__, "rubric_pairwise")


class ItemRating(BaseModel):
    reason: str = ""
    rating: int = Field(ge=1, le=10)


class Judged(BaseModel):
    reason: str = ""
    reward: float = Field(ge=0, le=4, allow_inf_nan=False)
    confidence: Annotated[int, Field(ge=0, le=100)] = 100


class Better(BaseModel):
    reason: str = ""
    better: Literal["A", "B"]


@dataclass(frozen=True, slots=True)
class Quality:
    """The quality of a rubric: `reward` from 0 to 4 (R_llm of eq. 1), the judge's confidence in percent, and its
    reason."""

    reward: float
    confidence: int
    reason: str


async def score(context: RunContext, rubric: Rubric, query: str, report: str, under: str = "") -> Scores:
    """Score a report by a rubric: the role `judge` rates each item in a separate conversation, concurrently.

    `under` names the report, if one context scores several.
    """
    stem = f"{under}/" if under else ""
    conversations = [context.conversation("judge", f"{stem}{at}") for at in range(1, len(rubric.items) + 1)]
    ratings = await together(
        [rate(one, item, query, report) for one, item in zip(conversations, rubric.items, strict=True)]
    )
    return Scores(rubric, tuple(ratings))


async def score_pair(
    context: RunContext, rubric: Rubric, query: str, reports: tuple[str, ...]
) -> tuple[Scores, Scores]:
    """Score two reports by a rubric, concurrently."""
    first, second = await together(
        [score(context, rubric, query, report, name) for name, report in zip("ab", reports, strict=True)]
    )
    return first, second


async def rate(conversation: Conversation, item: RubricItem, query: str, report: str) -> int | None:
    """Return how far one item is true of a report, from 1 to 10, whether that is good or bad; None if the judge
    failed."""
    shown = {
        "query": sanitize(query),
        "title": sanitize(item.title),
        "criterion": sanitize(item.criterion),
        "report": sanitize(report),
    }
    rated = await ask_judge(conversation, RATE.fill(**shown), ItemRating)
    return rated.rating if rated else None


async def quality(conversation: Conversation, query: str, rubric: Rubric) -> Quality | None:
    """Return the quality of a rubric for a query, independent of any report; None if the judge failed."""
    items = "\n".join(f"- {one.title} ({one.weight:+d}): {one.description}" for one in rubric.items)
    judged = await ask_judge(conversation, QUALITY.fill(query=sanitize(query), rubric=sanitize(items)), Judged)
    return Quality(judged.reward, judged.confidence, judged.reason) if judged else None


async def pointwise(conversation: Conversation, query: str, report: str) -> int | None:
    """Return the quality of a report without a rubric, from 1 to 10; None if the judge failed."""
    rated = await ask_judge(conversation, POINTWISE.fill(query=sanitize(query), report=sanitize(report)), ItemRating)
    return rated.rating if rated else None


async def pairwise(
    conversation: Conversation, query: str, first: str, second: str
) -> Literal["first", "second"] | None:
    """Return which of two reports is better, in the order shown; None if the judge failed. Also ask in the other order
    to see whether the order decided."""
    prompt = PAIRWISE.fill(query=sanitize(query), first=sanitize(first), second=sanitize(second))
    judged = await ask_judge(conversation, prompt, Better)
    return None if judged is None else "first" if judged.better == "A" else "second"
