"""The meta reasoning planner (HiRA, eq. 1 and 2): thinks, hands out subtasks, reads distilled results, answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hira.agents.expert import Expert, attached
from hira.agents.loop import Loop
from hira.dialects import Call
from hira.errors import ToolError
from hira.events import SubtaskIssued
from hira.messages import Filled, user
from hira.prompts import Prompt
from hira.team import Team
from hira.tools import Observation, Tool
from hira.trajectory import Finding, Subtask

PLANNER = Prompt(__file__, "planner")
EXPERTS = Prompt(__file__, "planner_experts")
FINDING = Prompt(__file__, "finding")


async def _by_the_workflow(arguments: Mapping[str, Any]) -> Observation:
    raise ToolError(f"a subtask is given to the coordinator, not run: {arguments['task']}")


SUBTASK = Tool(
    "subtask",
    "hand out one subtask; you get back how it was done and what it concluded",
    {"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]},
    _by_the_workflow,
    pure=True,
)


@dataclass(frozen=True, slots=True)
class Thought:
    """One step of the planner: subtasks to hand out, or none and its `answer`."""

    subtasks: tuple[Subtask, ...] = ()
    answer: str = ""


class Planner:
    """The planner's one conversation. Without `experts` to describe, it plans by the task alone (HiRA, Fig. 3)."""

    def __init__(self, team: Team, *, limit: int = 10, several: int = 1, experts: Sequence[Expert] = ()) -> None:
        self.team = team
        self.experts = experts
        self.loop = Loop(team.conversation("planner"), [SUBTASK], limit=limit, several=several, final=True)
        self._open: tuple[Call, ...] = ()

    @property
    def issued(self) -> int:
        return self.loop.used

    async def begin(self, question: str) -> Thought:
        loop = self.loop
        listed = Filled("\n".join(f"- {expert.name}: {expert.description}" for expert in self.experts))
        several = (
            "one subtask, and wait for its report"
            if loop.several == 1
            else (f"up to {loop.several} subtasks in one turn, if none needs the result of another")
        )
        loop.conversation.say(
            user(
                PLANNER.fill(
                    question=question,
                    files=attached(self.team.files),
                    call=loop.conversation.part.dialect.instructions([SUBTASK]),
                    several=several,
                    limit=loop.limit,
                    experts=EXPERTS.fill(experts=listed) if self.experts else "",
                )
            )
        )
        return await self._think()

    async def resume(self, findings: Sequence[Finding]) -> Thought:
        """Go on with what came back, in the order in which the subtasks were issued."""
        reports = [
            FINDING.fill(
                expert=finding.expert, reasoning=finding.reasoning or "(not told)", conclusion=finding.conclusion
            )
            for finding in findings
        ]
        for call, finding in zip(self._open, findings, strict=True):
            if not finding.ok:
                self.loop.forget(call)
        self.loop.observe(list(zip(self._open, reports, strict=True)))
        return await self._think()

    async def _think(self) -> Thought:
        step = await self.loop.think()
        self._open = step.calls
        if not step.calls:
            return Thought(answer=step.answer)
        first = self.loop.used - len(step.calls) + 1
        subtasks = tuple(
            Subtask(str(first + at), str(call.arguments.get("task", "")).strip()) for at, call in enumerate(step.calls)
        )
        for subtask in subtasks:
            self.team.events(SubtaskIssued(subtask.id, subtask.text))
        return Thought(subtasks)
