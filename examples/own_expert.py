"""An expert of your own, which the planner's subtasks are given to. Runs without a model.

python examples/own_expert.py
"""

from hira import Hira
from hira.agents.expert import Account, Task
from hira.agents.run_context import RunContext
from hira.evidence import Source
from hira.workflows import HiRA

FERRIES = {
    "Amrum": "The ferry from Dagebüll to Amrum takes 90 minutes.",
    "Föhr": "The ferry from Dagebüll to Föhr takes 45 minutes.",
}


class Harbour:
    """Knows the ferries. `cost` 1 makes it the first choice, `needs` is empty: it works without any tool."""

    name = "harbour"
    description = "knows how long the ferries to the islands take"
    ability = "timetables"
    cost = 1
    needs: frozenset[str] = frozenset()

    async def work(self, task: Task, context: RunContext) -> Account:
        lines = [line for island, line in FERRIES.items() if island in task.text]
        read = [context.read(Source("ferries", "Timetable", line)) for line in lines]
        report = " ".join(f"{source.text} [{source.id}]" for source in read) or "Nothing was found."
        return Account(f"Looked into the timetable.\n\n{report}", report)


with Hira("offline", workflow=HiRA(experts=(Harbour(),))) as hira:
    answer = hira.ask_sync("How long does the ferry to Amrum take?")
print(answer.text)
print(answer.status, [(finding.expert, finding.conclusion) for finding in answer.rollout.findings])
