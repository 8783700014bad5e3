"""HiRA: hierarchical reasoning with decoupled planning and execution (paper 2507.02652).

The planner reasons and hands out subtasks (eq. 1). For each, the coordinator chooses the cheapest expert that will
succeed, passes on what memory holds, lets it work, distils the result and remembers it. The planner reads the distilled
results, reflects and corrects, until it answers (eq. 2) or reaches the limit of subtasks and must answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from hira.agents.coordinator import Coordinator
from hira.agents.expert import Expert, Looping
from hira.agents.experts import EXPERTS
from hira.agents.planner import Attempt, Planner
from hira.agents.run_context import RunContext
from hira.core.errors import UsageError
from hira.core.options import Part, SubtaskOptions
from hira.core.policy import Usage

if TYPE_CHECKING:
    from hira.workflows.bound import Sizes


@dataclass(frozen=True)
class HiRA(SubtaskOptions):
    """Limits are the paper's. `without` removes a mechanism or an ability (Table 2), `describe_experts=False` keeps
    the experts' descriptions from the planner (Fig. 3), `parallel` lets one turn hand out at most this many subtasks,
    `faithful` makes every call the paper makes, even when there is nothing to decide or condense."""

    approves: ClassVar[bool] = True

    without: frozenset[Part] = frozenset()
    describe_experts: bool = True
    faithful: bool = False
    experts: Sequence[Expert] = field(default=EXPERTS)
    name: str = "hira"

    @property
    def roles(self) -> frozenset[str]:
        """The roles that can be configured: `look` is the model that sees and hears for the multimodal expert."""
        return frozenset(["planner", "coordinator", "look", *(expert.name for expert in self.experts)])

    @property
    def takes_tools(self) -> frozenset[str]:
        """The experts that work in the loop and are not removed."""
        experts = [expert for expert in self.experts if expert.ability not in self.without]
        return frozenset(expert.name for expert in experts if isinstance(expert, Looping) and expert.loops)

    async def run(self, question: str, context: RunContext, attempt: Attempt | None = None) -> str:
        experts, memory = self.available(context), context.rollout.memory
        planner = Planner(
            context,
            limit=self.max_subtasks,
            several=self.parallel,
            experts=experts,
            describe=self.describe_experts,
        )
        coordinator = Coordinator(
            context,
            experts,
            transfer="reasoning-transfer" not in self.without,
            remember="memory" not in self.without,
            faithful=self.faithful,
        )
        step = await planner.begin(question, attempt)
        while step.calls:
            step = await planner.hand_out(step, partial(coordinator.delegate, memory=memory))
        return step.answer

    def available(self, context: RunContext) -> list[Expert]:
        """The experts that are not removed and that this run has the tools for: what the expert needs, or for one that
        works in a loop, tools that the user gave to it by name."""
        experts, tools = list[Expert](), context.tools
        for expert in self.experts:
            has_own = isinstance(expert, Looping) and expert.loops and expert.name in tools.scoped
            if expert.ability not in self.without and (has_own or all(map(tools.has, expert.needs))):
                experts.append(expert)
        if not experts:
            raise UsageError(
                "no expert is left to do the work",
                fix="give documents (--docs or docs=), a search (--search or search=) or leave out a --without",
            )
        return experts

    def bound(self, sizes: "Sizes") -> dict[str, Usage]:
        """At most so much by role; of the experts, one or the other."""
        return sizes.bound_hierarchy(self.max_subtasks, self.experts)
