"""Multimodal enhanced (HiRA, appendix): reasoning whose one tool is a model that sees and hears, as in HiRA's expert.

Attached files of text can be read too, since the paper's tool understands files of various kinds.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from hira.agents.baselines.alone import REASONER, begin_loop, run_to_answer
from hira.agents.expert import CALLS
from hira.agents.experts.multimodal import MULTIMODAL, look
from hira.agents.run_context import RunContext
from hira.core.errors import UsageError
from hira.core.policy import Usage
from hira.workflows.bound import Sizes, bound_loop

SEES = "look"


@dataclass(frozen=True)
class MultimodalAlone:
    """`calls`: looks and readings at most (as HiRA's experts: 10)."""

    calls: int = CALLS
    name: str = "multimodal"

    @property
    def roles(self) -> frozenset[str]:
        return frozenset({REASONER, SEES})

    @property
    def takes_tools(self) -> frozenset[str]:
        return frozenset({REASONER})

    async def run(self, question: str, team: RunContext) -> str:
        sight = look(team, "1") if team.tools.media else None
        tools = [tool for tool in (sight, team.tools.files, *team.tools.extra_for(REASONER)) if tool]
        if not tools:
            fix = "attach a picture, a sound, a video or another file (--file), or name a folder with pictures (--docs)"
            raise UsageError("this workflow needs something to look at, and this run has nothing", fix=fix)
        return await run_to_answer(begin_loop(team, MULTIMODAL, tools, question, limit=self.calls), question)

    def bound(self, sizes: Sizes) -> Mapping[str, Usage]:
        looks = Usage(self.calls, self.calls * sizes.prompt, self.calls * sizes.reply)
        return {REASONER: bound_loop(self.calls, sizes.result, sizes), SEES: looks}
