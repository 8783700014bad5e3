"""A workflow of your own: search once, then answer. Its prompt is own_workflow.md beside it. Runs without a model.

python examples/own_workflow.py
"""

from pathlib import Path

from hira import Hira
from hira.agents.calls import use
from hira.agents.run_context import RunContext
from hira.core.messages import user
from hira.core.prompts import Prompt

DOCS = Path(__file__).parent.parent / "docs"
ANSWER = Prompt(__file__, "own_workflow")


class Lookup:
    name = "lookup"

    async def run(self, question: str, context: RunContext) -> str:
        assert context.tools.search is not None
        conversation = context.conversation("reader")
        seen = await use(conversation, context.tools.search, {"query": question})
        return await conversation.reply(user(ANSWER.fill(question=question, documents=seen.text)))


with Hira("offline", docs=DOCS, workflow=Lookup()) as hira:
    answer = hira.ask_sync("How many calls does an expert make at most in a subtask?")
print(answer.text)
print(f"{answer.status}, {answer.usage.calls} call, {len(answer.sources)} sources read")
