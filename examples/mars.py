"""Two systems: one reasons and never reads a page, one reads all of them. Runs without a model.

python examples/mars.py
"""

from pathlib import Path

from hira import Hira
from hira.workflows import MARS

DOCS = Path(__file__).parent.parent / "docs"
QUESTION = "How many memory entries does the coordinator recall at most?"

# a small window makes several bins, which System 1 goes through side by side
with Hira("offline", docs=DOCS, workflow=MARS(window=2_500)) as hira:
    answer = hira.ask_sync(QUESTION)

for name, trajectory in answer.rollout.trajectories.items():
    for turn in trajectory.turns:
        calls = [call.arguments for call in turn.completion.calls]
        print(f"{name}: {' '.join([turn.completion.text, *calls])}")
print(answer.status, len(answer.rollout.sources), "sources")
