"""MATPO with the parts that its paper takes away: what the planner read, what its worker read, and what it cost.

python examples/matpo.py
"""

from pathlib import Path
from typing import Any

from hira import Hira
from hira.workflows import MATPO

DOCS = Path(__file__).parent.parent / "docs"
QUESTION = "How many subtasks may the planner hand out? How many memory entries does the coordinator recall at most?"
MANNERS: list[dict[str, Any]] = [{}, {"recap": False}, {"summary": False}]

for manner in MANNERS:
    with Hira("offline", docs=DOCS, workflow=MATPO(**manner)) as hira:
        answer = hira.ask_sync(QUESTION)
    print(f"{manner or 'as in the paper'}: {answer.status}, {answer.text}")
    for name, trajectory in answer.rollout.trajectories.items():
        told = "\n".join(message.text for message in trajectory.turns[-1].request.messages)
        pages = "read pages" if "[/s1]" in told else "read no page"
        question = "knew the question" if QUESTION in told else "knew its subtask alone"
        print(f"  {name}: {len(trajectory.turns)} turns, {pages}, {question}")
