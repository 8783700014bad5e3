"""Judges of an answer against the known one: HiRA's two, SimpleQA's three grades (as in MATPO), and HLE's form (MARS).

The criteria are those of the papers' appendices, the wording is original. A verdict is read strictly: "incorrect" is
not "correct". A judge that fails gives None, never 0: an unjudged answer is not wrong.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from pydantic import BaseModel, Field

from hira.agents.record import ask_for_record
from hira.agents.run_context import Conversation
from hira.core.errors import DialectError, EndpointError
from hira.core.events import Notice
from hira.core.messages import Filled, user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize

T = TypeVar("T", bound=BaseModel)


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

    def read(self) -> Verdict:
        return Verdict(self.verdict == "correct", self.verdict, self.reason)


class _Grade(BaseModel):
    """An answer that was not attempted is not correct; its grade distinguishes it."""

    reason: str = ""
    grade: Literal["CORRECT", "INCORRECT", "NOT_ATTEMPTED"]

    def read(self) -> Verdict:
        return Verdict(self.grade == "CORRECT", self.grade, self.reason)


class _Exam(BaseModel):
    """The judge extracts the final answer, then compares it with the known one."""

    extracted_final_answer: str
    reasoning: str = ""
    correct: Literal["yes", "no"]
    confidence: float = Field(default=100, ge=0, le=100)

    def read(self) -> Verdict:
        return Verdict(self.correct == "yes", self.correct, self.reasoning, self.extracted_final_answer)


Judge = Callable[[Conversation, str, str, str], Awaitable[Verdict | None]]
"""Called with its conversation, the question, the known answer and the response; None if the judge failed."""


def _make_judge(prompt: Prompt, shape: type[_Equivalent | _Grade | _Exam]) -> Judge:
    async def judge(conversation: Conversation, question: str, gold: str, response: str) -> Verdict | None:
        filled = fill_words(prompt, question=question, gold=gold, response=response)
        reply = await ask_judge(conversation, filled, shape)
        return reply.read() if reply else None

    return judge


JUDGES: Mapping[str, Judge] = {
    "hira": _make_judge(Prompt(__file__, "judge_equivalent"), _Equivalent),
    "webwalker": _make_judge(Prompt(__file__, "judge_webwalker"), _Equivalent),
    "simpleqa": _make_judge(Prompt(__file__, "judge_simpleqa"), _Grade),
    "hle": _make_judge(Prompt(__file__, "judge_hle"), _Exam),
}
"""HiRA's judges for short answers and for the detailed ones of WebWalkerQA, whose essence it compares; SimpleQA's
grades; Humanity's Last Exam."""


def fill_words(prompt: Prompt, **words: object) -> Filled:
    """Fill a prompt with words of the user or of a role."""
    return prompt.fill(**{name: sanitize(str(text)) for name, text in words.items()})


async def ask_judge(
    conversation: Conversation,
    prompt: Filled,
    shape: type[T],
    *,
    wrong: Callable[[T], str] = lambda _: "",
    failed: str = "the judge failed",
) -> T | None:
    """Return the judge's reply; None, with a notice of what `failed`, if it fails. An exhausted budget (`Stop`) still
    ends the run. `wrong` returns what is wrong with a reply that has the shape, "" if nothing is."""
    try:
        return await ask_for_record(conversation, user(prompt), shape, wrong=wrong)
    except (DialectError, EndpointError) as error:
        conversation.context.events(Notice(f"{conversation.name}: {failed}: {error.what}"))
        return None
