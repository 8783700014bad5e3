"""Answering from passages that are shown, by a role that can call nothing: the planner's way, all of it looked up."""

from collections.abc import Generator, Sequence
from dataclasses import replace

from hira.dialects.answer import final
from hira.policies.offline import baselines, computing, planning, reading
from hira.policies.offline.conversation import Asked
from hira.policies.offline.opening import OPEN_TABLE
from hira.policies.offline.passages import Passage
from hira.policies.offline.program import Calls, advance
from hira.policies.offline.roles import nothing, question_of


def solved(asked: Asked, read: Sequence[Passage]) -> str:
    """The answer to the value `question`, with its citations, or that the passages do not hold it."""

    def work(task: str) -> Generator[Calls, list[str], str]:
        yield from ()  # it takes no call
        question = question_of(task)
        if computing.expression(question):
            return final(baselines.direct(replace(asked, values={"task": question})).text)
        over_rows = task.startswith((OPEN_TABLE, f"{computing.COMPUTE} "))
        found = None if over_rows else reading.find(question, read)
        return found.text if found else nothing(question)

    return final(advance(planning.carried_out(asked, work), asked, "").text)
