"""A solution is checked and corrected until no error is found. A scripted Solver errs; `offline` finds it.

python examples/marsrl.py
"""

from pathlib import Path

from hira import Hira
from hira.policies.offline import OfflinePolicy
from hira.testing import ScriptedPolicy
from hira.workflows import MarsRL

DOCUMENT = Path(__file__).parent.parent / "docs" / "hira.md"
QUESTION = "How many subtasks may the planner hand out?"

# in hira.toml each role has a model of its own: [roles.solver] model = "…"
policies = {"solver": ScriptedPolicy([r"I recall that it is three. \boxed{Three subtasks.}"]), "*": OfflinePolicy()}
with Hira("offline", docs=DOCUMENT, policies=policies, workflow=MarsRL()) as hira:
    answer = hira.ask_sync(QUESTION)

for name, trajectory in answer.rollout.trajectories.items():
    print(f"--- {name}\n{trajectory.turns[-1].completion.text}")
print(f"\n{answer.text}\n{answer.status}")
