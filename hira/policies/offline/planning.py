"""The planner, as the offline policy plays it."""

import re
from collections.abc import Generator

from hira.messages import Filled
from hira.policies.offline.conversation import Act, Asked
from hira.policies.offline.program import Calls, Program, advance
from hira.policies.offline.roles import OTHER_WORDS, boxed, failed, other_words
from hira.untrusted import clean

Plan = Generator[Calls, list[str], str]
_NUMBER = re.compile(r"\d+")


def plan(asked: Asked) -> Act:
    several = int(number[0]) if (number := _NUMBER.search(asked.value("several"))) else 1
    return advance(_solve(asked), asked, "", several=several, limit=int(asked.value("limit") or 10))


def _solve(asked: Asked) -> Program:
    question = asked.value("question")
    conclusion = yield from look_up(question)
    if conclusion:
        return boxed(conclusion)
    return boxed(f"The documents do not hold the answer to this question: {question}")


def look_up(question: str) -> Plan:
    """The conclusion of one subtask, or of one more that names the failure, empty if neither found anything."""
    (report,) = yield [("subtask", {"task": question})]
    if not failed(concluded(report)):
        return concluded(report)
    again = ", ".join(other_words(question))
    (report,) = yield [("subtask", {"task": f"{question} {OTHER_WORDS}{': ' + again if again else ''}."})]
    return "" if failed(concluded(report)) else concluded(report)


def concluded(report: str) -> str:
    """The conclusion that a report carries among its values; a report without values is taken whole."""
    said = report.values.get("conclusion", "") if isinstance(report, Filled) else report
    return clean(str(said)).strip()
