"""Several ways to answer one question, side by side: plain retrieval, a chain with tools, a fixed plan, and HiRA.

python examples/baselines.py
"""

import asyncio
from pathlib import Path

from hira import Hira
from hira.workflows import HiRA
from hira.workflows.baselines import PlanAndSolve, Rag, ReAct, SearchO1

DOCS = Path(__file__).parent.parent / "docs"
QUESTION = "How many subtasks may the planner hand out?"


async def main() -> None:
    for workflow in (Rag(), SearchO1(), ReAct(), PlanAndSolve(), HiRA()):
        async with Hira("offline", docs=DOCS, workflow=workflow) as hira:
            answer = await hira.ask(QUESTION)
        held = sum(citation.verdict == "supported" for citation in answer.citations)
        usage = answer.usage
        print(f"{workflow.name:15} {answer.status}, {held} verified, {usage.calls} calls, {usage.tokens:,} tokens")
    print(answer.text)


asyncio.run(main())
