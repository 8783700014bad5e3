"""Direct reasoning (HiRA, Table 1): the model answers from what it knows. It reads nothing, so it can cite nothing."""

from collections.abc import Mapping
from dataclasses import dataclass

from hira.agents.baselines.alone import DIRECT, REASONER, answered, begun
from hira.policy import Usage
from hira.team import Team
from hira.workflows.bound import Sizes, looped


@dataclass(frozen=True)
class Direct:
    name: str = "direct"

    @property
    def roles(self) -> frozenset[str]:
        return frozenset({REASONER})

    @property
    def takes_tools(self) -> frozenset[str]:
        return frozenset()

    async def run(self, question: str, team: Team) -> str:
        return await answered(begun(team, DIRECT, [], question), question)

    def bound(self, sizes: Sizes) -> Mapping[str, Usage]:
        return {REASONER: looped(0, 0, sizes)}
