"""Judges of an answer against the known one: HiRA's two, SimpleQA's three grades (as in MATPO), and HLE's form (MARS).

The criteria are those of the papers' appendices, the wording is original. A verdict is read strictly: "incorrect" is
not "correct". A judge that fails gives None, never 0: an unjudged answer is not wrong.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field

from hira.agents.conversation import Conversation
from hira.agents.record import ask_for_record
from hira.core.errors import DialectError, EndpointError
from hira.core.events import Notice
from hira.core.messages import user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize

EQUIVALENT = Prompt(__file__, "judge_equivalent")
WEBWALKER = Prompt(__file__, "judge_webwalker")
SIMPLEQA = Prompt(__file__, "judge_simpleqa")
HLE = Prompt(__file__, "judge_hle")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on an answer, with the judge's grade and reason, and the answer that it extracted, if it names
    one."""

    correct: bool
    grade: str
    reason: str = ""
    extracted: str = ""


class _Equivalent(BaseModel):
    reason: str = ""
    verdict: Literal["correct", "incorrect"]


class _Grade(BaseModel):
    reason: str = ""
    grade: Literal["CORRECT", "INCORRECT", "NOT_ATTEMPTED"]


class _Exam(BaseModel):
    extracted_final_answer: str
    reasoning: str = ""
    correct: Literal["yes", "no"]
    confidence: float = Field(default=100, ge=0, le=100)


Judge = Callable[[Conversation, str, str, str], Awaitable[Verdict | None]]
"""Called with its conversation, the question, the known answer and the response; None if the judge failed."""


async def equivalent(conversation: Conversation, question: str, gold: str, response: str) -> Verdict | None:
    """Ask HiRA's judge for questions with a short answer whether the response gives the same answer."""
    read = await _read(conversation, EQUIVALENT, _Equivalent, question, gold, response)
    return read and Verdict(read.verdict == "correct", read.verdict, read.reason)


async def webwalker(conversation: Conversation, question: str, gold: str, response: str) -> Verdict | None:
    """Ask HiRA's judge for WebWalkerQA, whose known answers are detailed: it compares their essence."""
    read = await _read(conversation, WEBWALKER, _Equivalent, question, gold, response)
    return read and Verdict(read.verdict == "correct", read.verdict, read.reason)


async def simpleqa(conversation: Conversation, question: str, gold: str, response: str) -> Verdict | None:
    """Ask for one of SimpleQA's three grades. An answer that was not attempted is not correct; its grade distinguishes
    it."""
    read = await _read(conversation, SIMPLEQA, _Grade, question, gold, response)
    return read and Verdict(read.grade == "CORRECT", read.grade, read.reason)


async def hle(conversation: Conversation, question: str, gold: str, response: str) -> Verdict | None:
    """Ask the judge of Humanity's Last Exam: it extracts the final answer, then compares it with the known one."""
    read = await _read(conversation, HLE, _Exam, question, gold, response)
    return read and Verdict(read.correct == "yes", read.correct, read.reasoning, read.extracted_final_answer)


JUDGES: Mapping[str, Judge] = {"hira": equivalent, "webwalker": webwalker, "simpleqa": simpleqa, "hle": hle}


async def _read(
    conversation: Conversation, prompt: Prompt, shape: type[Any], question: str, gold: str, response: str
) -> Any:
    told = {"question": sanitize(question), "gold": sanitize(gold), "response": sanitize(response)}
    try:
        return await ask_for_record(conversation, user(prompt.fill(**told)), shape)
    except (DialectError, EndpointError) as error:
        conversation.context.events(
            Notice(f"{conversation.name}: the judge failed, so the answer has no score ({error.what})")
        )
        return None
