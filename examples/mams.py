"""A report with numbered references. Runs without a model.

python examples/mams.py
"""

import asyncio
from pathlib import Path

from hira import Hira
from hira.evidence.references import number_references, references
from hira.workflows import MaMs

DOCS = Path(__file__).parent.parent / "docs"
TOPIC = "Citations and how they are checked"


async def main() -> None:
    async with Hira("offline", docs=DOCS, workflow=MaMs(max_turns=3)) as hira:
        answer = await hira.ask(TOPIC)
    read = answer.rollout.sources.read
    print(number_references(answer.text, read))
    for reference in references(answer.text, read):
        print(f"{reference.number}. {reference.source.title} ({reference.source.location})")
    print(f"\n{answer.status}, {len(answer.rollout.memory.facts)} notes, {answer.usage.calls} calls")


asyncio.run(main())
