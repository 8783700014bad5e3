"""The planner on one model, everyone else on another, over real HTTP. A scripted server replaces both.

python examples/two_models.py
"""

from collections import Counter
from pathlib import Path

from hira import Hira
from hira.testing import Endpoint, calling

DOCS = Path(__file__).parent.parent / "docs" / "hira.md"
QUESTION = "How many memory entries does the coordinator recall at most?"
FOUND = "The coordinator recalls at most five memory entries [s1]."
SCRIPT = {
    "large": [calling("subtask", task=QUESTION), rf"\boxed{{{FOUND}}}"],
    "small": [
        '{"reason": "a page states it", "expert": "simple_search"}',
        FOUND,
    ],
}

with Endpoint(SCRIPT) as endpoint:
    # in hira.toml: [roles.planner] model = "large"; on the command line: --role planner=large
    roles = {"planner": "large"}
    with Hira("small", base_url=endpoint.base_url, docs=DOCS, workflow="hira", roles=roles) as hira:
        answer = hira.ask_sync(QUESTION)
    calls_by_model = Counter(call.body["model"] for call in endpoint.calls)

print(answer.text)
print(answer.status, dict(calls_by_model))
