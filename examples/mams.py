"""A report with numbered references, and how it stands by a rubric for its topic. Runs without a model.

python examples/mams.py
"""

import asyncio
from pathlib import Path

from hira import Hira
from hira.evaluation.rewards.report_judge import score
from hira.evidence.citations import number_references, references
from hira.policies.offline import OfflinePolicy
from hira.testing.script import make_context
from hira.workflows import MaMs
from hira.workflows.mams.rubrics import generate

DOCS = Path(__file__).parent.parent / "docs"
TOPIC = "Citations and how they are checked"


async def main() -> None:
    async with Hira("offline", docs=DOCS, workflow=MaMs(max_turns=3)) as hira:
        answer = await hira.ask(TOPIC)
    read = answer.rollout.sources.read
    print(number_references(answer.text, read))
    for reference in references(answer.text, read):
        print(f"{reference.number}. {reference.source.title} ({reference.source.location})")
    print(f"\n{answer.status}, {len(answer.rollout.memory.facts)} notes, {answer.rollout.usage.calls} calls")
    context = make_context(OfflinePolicy())
    rubric = await generate(context.conversation("rubric"), TOPIC)
    scores = await score(context, rubric, TOPIC, answer.text)
    print(f"{len(rubric.items)} items, score {scores.normalised:.2f}")


asyncio.run(main())
