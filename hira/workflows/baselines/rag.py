"""Vanilla RAG (HiRA, appendix): the question itself is searched for, once, and answered from what that brings."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hira.agents.baselines.alone import REASONER, answered, needed
from hira.agents.experts.simple_search import ANSWER
from hira.agents.loop import Loop
from hira.agents.retrieval import look_up
from hira.messages import Filled, user
from hira.policy import Usage
from hira.team import Team
from hira.tools.search.tool import LONGEST
from hira.untrusted import said
from hira.workflows.bound import Sizes, looped


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

    async def run(self, question: str, team: Team) -> str:
        needed(team.tools.search, "a search")
        loop = Loop(team.conversation(REASONER), [], limit=1, final=True)
        query = " ".join(question.split())[:LONGEST]
        seen = await look_up(loop.conversation, query, self.pages)
        documents = Filled("\n\n".join(dict.fromkeys(one.text for one in seen)))
        loop.conversation.say(user(ANSWER.fill(documents=documents, task=said(question), known=Filled(""))))
        return await answered(loop, question)

    def bound(self, sizes: Sizes) -> Mapping[str, Usage]:
        read = (self.pages + 1) * sizes.result
        return {REASONER: looped(0, 0, replace(sizes, prompt=sizes.prompt + read))}
