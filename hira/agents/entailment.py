"""Asking a model whether a passage says what an answer claims: for what a comparison of words cannot tell."""

from typing import Literal

from pydantic import BaseModel

from hira.agents.record import record
from hira.errors import DialectError, EndpointError
from hira.evidence import Source, Verdict
from hira.messages import user
from hira.prompts import Prompt
from hira.team import Conversation
from hira.tokens import clip

ENTAILMENT = Prompt(__file__, "entailment")
LONGEST = 6_000
"""Tokens of a source that the judge reads: of a longer one, what stands around the passage nearest to the claim."""


class Judgement(BaseModel):
    reason: str = ""
    verdict: Literal["supported", "contradicted", "not found"]


async def entailed(conversation: Conversation, claim: str, source: Source, passage: str = "") -> Verdict:
    """What the judge says of a claim and the source it cites; `unchecked` if the judge fails.

    `passage` is the part of the source nearest to the claim.
    """
    text = around(source.evidence, passage)
    message = user(ENTAILMENT.fill(claim=claim, title=source.title, passage=text))
    try:
        judged = await record(conversation, message, Judgement)
    except (DialectError, EndpointError):
        return "unchecked"
    return judged.verdict


def around(text: str, passage: str) -> str:
    """The text, or what of it stands around the passage where it is too long for the judge."""
    clipped = clip(text, LONGEST, middle=True)
    if clipped == text:
        return text
    at = text.find(passage.partition(" … ")[0]) if passage else -1
    if at < 0:
        return clipped
    reach = LONGEST * 3 // 2
    return clip(text[max(0, at - reach) : at + reach], LONGEST, middle=True)
