"""The planner on one model, everyone else on another, over real HTTP. A scripted server stands in for both.

python examples/two_models.py
"""

import json
from collections import Counter

from hira import Hira, Settings
from hira.testing import Endpoint, calling

QUESTION = "What is the sum of the first hundred whole numbers?"
DISTILLED = {"reasoning": "Summed them in Python.", "conclusion": "The sum is 5050 [s1]."}
SCRIPT = {
    "large": [calling("subtask", task=f"{QUESTION} Compute it."), r"\boxed{The sum is 5050 [s1].}"],
    "small": [
        '{"reason": "it has to be exact", "expert": "code"}',
        calling("python", code="print('The sum is', sum(range(1, 101)))"),
        r"\boxed{5050 [s1]}",
        json.dumps(DISTILLED),
    ],
}

with Endpoint(SCRIPT) as endpoint:
    # in hira.toml: [roles.planner] model = "large"; on the command line: --role planner=large
    settings = Settings(model="small", base_url=endpoint.base_url, roles={"planner": {"model": "large"}})
    with Hira(settings=settings) as hira:
        answer = hira.ask_sync(QUESTION)
    asked = Counter(call.body["model"] for call in endpoint.calls)

print(answer.text)
print(answer.status, dict(asked))
