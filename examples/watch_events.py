"""Watch a run as it happens: every step is a typed event. Runs without a model.

python examples/watch_events.py
"""

import asyncio
from pathlib import Path

from hira import Hira
from hira.core.events import Remembered, RunEnded, SourceRead, SubtaskAssigned, SubtaskIssued

DOCS = Path(__file__).parent.parent / "docs"


async def main() -> None:
    async with Hira("offline", docs=DOCS, workflow="hira") as hira:
        run = hira.stream("How many subtasks may the planner hand out?")
        async for event in run:
            match event:
                case SubtaskIssued():
                    print(f"{event.at:5.2f} s  subtask {event.subtask}: {event.text}")
                case SubtaskAssigned():
                    print(f"{event.at:5.2f} s  given to {event.expert}: {event.reason}")
                case SourceRead():
                    print(f"{event.at:5.2f} s  read [{event.source}] {event.location}")
                case Remembered():
                    print(f"{event.at:5.2f} s  remembered a {event.channel}: {event.text}")
                case RunEnded():
                    print(f"{event.at:5.2f} s  {event.status} after {event.usage.calls} calls")
        print(run.answer.text)


asyncio.run(main())
