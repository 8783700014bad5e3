"""Plan-and-Solve (HiRA, appendix): a plan is made at once, then carried out step by step by HiRA's experts.

For each step the coordinator's model chooses the expert, as in HiRA. The plan never changes, nothing is distilled: a
step is told the results of those before it in the experts' own words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from hira.agents.approved import approved
from hira.agents.baselines.plan_and_solve import PLANNER, concluded, planned
from hira.agents.coordinator import Coordinator
from hira.agents.expert import Expert
from hira.agents.experts import EXPERTS
from hira.events import SubtaskIssued
from hira.evidence import cited
from hira.memory import Fact
from hira.policy import Usage
from hira.team import Team
from hira.trajectory import Finding, Subtask
from hira.workflows.bound import Sizes, hierarchical
from hira.workflows.hira import HiRA


@dataclass(frozen=True)
class PlanAndSolve:
    """`max_subtasks`: steps of a plan at most (as HiRA's subtasks: 10)."""

    approves: ClassVar[bool] = True

    max_subtasks: int = 10
    experts: Sequence[Expert] = field(default=EXPERTS)
    name: str = "plan-and-solve"

    @property
    def roles(self) -> frozenset[str]:
        return HiRA(experts=self.experts).roles

    @property
    def takes_tools(self) -> frozenset[str]:
        return HiRA(experts=self.experts).takes_tools

    async def run(self, question: str, team: Team) -> str:
        experts = HiRA(experts=self.experts).available(team)
        coordinator = Coordinator(team, experts, distils=False)
        steps = await planned(team, question, experts, self.max_subtasks)
        plan = [Subtask(str(number), step) for number, step in enumerate(steps, 1)]
        for step in plan:
            team.events(SubtaskIssued(step.id, step.text))

        async def carried_out(steps: Sequence[Subtask]) -> Sequence[Finding]:
            return [await self._step(step, coordinator, team) for step in steps if not team.stopped]

        await approved(plan, team, carried_out)
        return await concluded(team, question, team.rollout.findings)

    async def _step(self, step: Subtask, coordinator: Coordinator, team: Team) -> Finding:
        memory = team.rollout.memory
        (finding,) = await coordinator.delegate([step], memory)
        if finding.ok:
            told = " ".join(finding.conclusion.split())
            memory.add_fact(Fact(told, tuple(cited(told)), finding.subtask.id))
        return finding

    def bound(self, sizes: Sizes) -> Mapping[str, Usage]:
        """As HiRA's, with two parts for its planner: the plan, asked for twice at most, and the answer."""
        most = self.max_subtasks
        answer = sizes.prompt + most * sizes.reply
        planner = Usage(2, 2 * sizes.prompt + sizes.reply, 2 * sizes.reply) + Usage(6, 6 * answer, 6 * sizes.reply)
        return hierarchical(most, self.experts, sizes) | {PLANNER: planner}
