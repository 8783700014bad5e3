"""A role that does everything itself: the planner's way, each subtask done with the tools that the role has."""

from collections.abc import Callable, Generator
from dataclasses import replace

from hira.dialects.answer import final
from hira.messages import Filled
from hira.policies.offline import computing, planning, roles
from hira.policies.offline.conversation import Asked
from hira.policies.offline.opening import OPEN_TABLE
from hira.policies.offline.program import Calls, Program

Look = Callable[[Asked], Program]


def worked(asked: Asked, look: Look) -> Program:
    """The way to the answer; `look` looks up what is neither computed nor the rows of a table.

    The rows of a table that was opened may be computed over by the subtasks behind it.
    """
    rows: list[str] = []

    def work(task: str) -> Generator[Calls, list[str], str]:
        told = replace(
            asked, values={**asked.values, "task": task, "known": Filled("", "known", {"notes": "\n".join(rows)})}
        )
        computes = computing.program_for(task, asked.files, rows, roles.roots(asked)) and "python" in asked.tools
        if task.startswith(OPEN_TABLE) or not computes:
            conclusion = final((yield from look(replace(told, values={**told.values, "known": None}))))
        else:
            conclusion = final((yield from roles.compute(told)))
        if task.startswith(OPEN_TABLE):
            rows[:] = conclusion.splitlines()
        return conclusion

    return (
        yield from planning.carried_out(replace(asked, values={**asked.values, "question": asked.value("task")}), work)
    )
