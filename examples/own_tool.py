"""Give the experts a tool of your own whose results can be cited. A script plays the model; name one to use it.

python examples/own_tool.py [MODEL]
"""

import json
import sys
from pathlib import Path

from hira import Hira, tool
from hira.evidence import Source
from hira.testing import ScriptedPolicy, calling
from hira.tools import Observation, Passage

TIDES = {"Husum": "13:40", "Cuxhaven": "12:05"}
DOCS = Path(__file__).parent.parent / "docs"
QUESTION = "When is high water in Husum today?"
DISTILLED = {"reasoning": "Asked the tide table.", "conclusion": "High water in Husum is at 13:40 [s1]."}
SCRIPT = {
    "planner": [calling("subtask", task=QUESTION), r"\boxed{High water in Husum is at 13:40 [s1].}"],
    "coordinator": ['{"reason": "a table has to be read", "expert": "deep_search"}', json.dumps(DISTILLED)],
    "deep_search": [calling("high_water", harbour="Husum"), r"\boxed{13:40 [s1]}"],
}


@tool(pure=True)
def high_water(harbour: str) -> Observation:
    """Today's time of high water in a harbour."""
    text = f"High water in {harbour} is at {TIDES[harbour]}."
    return Observation(passages=(Passage(Source(f"tides/{harbour}", "Tide table", text), text),))


model = sys.argv[1] if len(sys.argv) > 1 else ""
played = {} if model else {"*": ScriptedPolicy(SCRIPT)}
with Hira(model or "offline", docs=DOCS, tools=[high_water], policies=played) as hira:
    answer = hira.ask_sync(QUESTION)
print(answer.text)
print([(citation.source, citation.verdict, citation.quote) for citation in answer.citations])
