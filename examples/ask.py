"""Ask the documentation a question, with no model, no key and no network.

python examples/ask.py ["another question"]
"""

import sys
from pathlib import Path

from hira import Hira

DOCS = Path(__file__).parent.parent / "docs"
QUESTION = "How many memory entries does the coordinator recall at most?"


def main(question: str) -> None:
    with Hira("offline", docs=DOCS) as hira:
        answer = hira.ask_sync(question)
    print(answer.text)
    print(f"\nstatus: {answer.status}")
    for citation in answer.citations:
        source = answer.rollout.sources.read[citation.source]
        print(f"[{source.id}] {source.location}, {citation.verdict}: “{citation.quote}”")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else QUESTION)
