"""ReAct (HiRA, appendix): all tools in one chain of reasoning; every output is inserted into it as it is."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from hira.agents.baselines.alone import REACT, REASONER, WHERE_TO_SEARCH, begin_loop, run_to_answer
from hira.agents.experts.multimodal import look
from hira.agents.run_context import RunContext
from hira.core.errors import UsageError
from hira.core.policy import Usage
from hira.workflows.bound import Sizes, bound_loop

SEES = "look"


@dataclass(frozen=True)
class ReAct:
    """`calls` of all tools together at most (the HiRA paper gives none: as many as WebThinker searches)."""

    calls: int = 20
    name: str = "react"

    @property
    def roles(self) -> frozenset[str]:
        return frozenset({REASONER, SEES})

    @property
    def takes_tools(self) -> frozenset[str]:
        return frozenset({REASONER})

    async def run(self, question: str, team: RunContext) -> str:
        box = team.tools
        async with AsyncExitStack() as stack:
            python = await stack.enter_async_context(box.python("1")) if box.python else None
            sight = look(team, "1") if box.media else None
            mine = (box.search, box.browse, box.files, python, sight, *box.extra_for(REASONER))
            tools = [tool for tool in mine if tool]
            if not tools:
                raise UsageError("this workflow needs tools, and this run has none", fix=WHERE_TO_SEARCH)
            return await run_to_answer(begin_loop(team, REACT, tools, question, limit=self.calls), question)

    def bound(self, sizes: Sizes) -> Mapping[str, Usage]:
        looks = Usage(self.calls, self.calls * sizes.prompt, self.calls * sizes.reply)
        return {REASONER: bound_loop(self.calls, sizes.result, sizes), SEES: looks}
