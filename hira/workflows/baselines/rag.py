"""Vanilla RAG (HiRA, appendix): the question itself is searched for, once, and answered from what that brings."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hira.agents.baselines.alone import REASONER, require_tool, run_to_answer
from hira.agents.experts.simple_search import ANSWER
from hira.agents.loop import Loop
from hira.agents.retrieval import look_up
from hira.agents.run_context import RunContext
from hira.core.messages import Filled, user
from hira.core.policy import Usage
from hira.core.sanitize import sanitize
from hira.tools.search.tool import LONGEST
from hira.workflows.bound import Sizes, bound_loop


@dataclass(frozen=True)
class Rag:
    """`pages` behind the hits of a search are read (HiRA: the top 10)."""

    pages: int = 10
    name: str = "rag"

    @property
    def roles(self) -> frozenset[str]:
        return frozenset({REASONER})

    @property
    def takes_tools(self) -> frozenset[str]:
        return frozenset()

    async def run(self, question: str, team: RunContext) -> str:
        require_tool(team.tools.search, "a search")
        loop = Loop(team.conversation(REASONER), [], limit=1, final=True)
        query = " ".join(question.split())[:LONGEST]
        seen = await look_up(loop.conversation, query, self.pages)
        documents = Filled("\n\n".join(dict.fromkeys(one.text for one in seen)))
        loop.conversation.say(user(ANSWER.fill(documents=documents, task=sanitize(question), known=Filled(""))))
        return await run_to_answer(loop, question)

    def bound(self, sizes: Sizes) -> Mapping[str, Usage]:
        read = (self.pages + 1) * sizes.result
        return {REASONER: bound_loop(0, 0, replace(sizes, prompt=sizes.prompt + read))}
