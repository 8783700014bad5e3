"""Direct reasoning (HiRA, Table 1): the model answers from what it knows. It reads nothing, so it can cite nothing."""

from collections.abc import Mapping
from dataclasses import dataclass

from hira.agents.baselines.alone import DIRECT, REASONER, begin_loop, run_to_answer
from hira.agents.run_context import RunContext
from hira.core.policy import Usage
from hira.workflows.bound import Sizes, bound_loop


@dataclass(frozen=True)
class Direct:
    name: str = "direct"

    @property
    def roles(self) -> frozenset[str]:
        return frozenset({REASONER})

    @property
    def takes_tools(self) -> frozenset[str]:
        return frozenset()

    async def run(self, question: str, team: RunContext) -> str:
        return await run_to_answer(begin_loop(team, DIRECT, [], question), question)

    def bound(self, sizes: Sizes) -> Mapping[str, Usage]:
        return {REASONER: bound_loop(0, 0, sizes)}
