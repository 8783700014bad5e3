"""The two systems of MARS, as the offline policy plays them.

System 2 plans as HiRA's planner does, and does each subtask itself: by a search with the subtask as its purpose, or in
Python. System 1 hands on the sentence that serves the purpose.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace

from hira.dialects.answer import final
from hira.evidence import cited
from hira.messages import Filled
from hira.policies.offline import computing, opening, planning, reading, roles
from hira.policies.offline.conversation import Act, Asked
from hira.policies.offline.opening import OPEN_TABLE
from hira.policies.offline.pairs import claims
from hira.policies.offline.passages import Passage, passages_of
from hira.policies.offline.program import Calls, advance
from hira.policies.offline.roles import nothing, question_of


def system2(asked: Asked) -> Act:
    rows: list[str] = []

    def work(task: str) -> Generator[Calls, list[str], str]:
        conclusion = yield from _worked(asked, task, rows)
        if task.startswith(OPEN_TABLE):
            rows[:] = conclusion.splitlines()
        return conclusion

    plan = planning.carried_out(asked, work)
    return advance(plan, asked, "This has to be found out.", limit=asked.number("limit", 10))


def _worked(asked: Asked, task: str, rows: Sequence[str]) -> Generator[Calls, list[str], str]:
    """What a subtask concludes. The `rows` of a table that was opened before may be computed over."""
    if "python" in asked.tools and computing.program_for(task, asked.files, rows, roles.roots(asked)):
        known = Filled("", "known", {"notes": "\n".join(rows)})
        return final((yield from roles.compute(replace(asked, values={**asked.values, "task": task, "known": known}))))
    if task.startswith(OPEN_TABLE) and asked.files and "files" in asked.tools:
        one = opening.chosen(question_of(task), (yield from opening.attached(asked, roles.queries(task))))
        if one:
            return one.told
    if found := reading.find(question_of(task), (yield from opening.attached(asked, roles.queries(task)))):
        return found.text
    for query in roles.queries(task) if "search" in asked.tools else ():
        (brought,) = yield [("search", {"queries": query, "purpose": task})]
        if text := _concluded(brought, task):
            return text
    return nothing(question_of(task))


def _concluded(brought: str, task: str) -> str:
    """The one statement among the notes of all bins that answers the task; empty if none cites anything."""
    told = brought.values.get("notes", "") if isinstance(brought, Filled) else brought
    notes = [note for note in str(told).split("\n\n") if cited(note)]
    if len(notes) < 2:
        return "".join(notes)
    read = [Passage(ids[0], "", "", text) for note in notes for text, ids in claims(note)]
    found = reading.find(question_of(task), read)
    return found.text if found else notes[0]


def system1(asked: Asked) -> Act:
    """The sentence that serves the purpose, or the rows of the table that is wanted."""
    purpose, read = asked.value("purpose"), passages_of(asked.value("documents"))
    if purpose.startswith(OPEN_TABLE):
        one = opening.chosen(question_of(purpose), read)
        return Act(one.told if one else nothing(question_of(purpose)))
    found = reading.find(question_of(purpose), read)
    return Act(found.text if found else nothing(question_of(purpose)))


ROLES: Mapping[str, Callable[[Asked], Act]] = {"mars_system2": system2, "mars_system1": system1}
