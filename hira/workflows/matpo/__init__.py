"""MATPO: a planner and workers, two roles of one model (paper 2510.04678), its multi-agent rollout.

τ = [a₁, τ¹, s₁, …, a_T]. In each turn the planner thinks and hands out a subtask (a_t) through its only tool; a worker
searches and reads for it in a separate conversation (τᵗ), and the planner sees the worker's last words alone (s_t).
Each conversation ends with a summary of all of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, get_args

from hira.agents.loop import Loop, Step
from hira.agents.planner import hand_out
from hira.agents.run_context import RunContext
from hira.agents.trajectory import Finding, Subtask
from hira.core.concurrency import together
from hira.core.errors import UsageError
from hira.core.options import SubtaskOptions
from hira.core.policy import Usage
from hira.policies.dialects import Call
from hira.tools import Tool
from hira.tools.search import LEAKING
from hira.workflows.bound import Sizes
from hira.workflows.matpo.agents import LoopConfig, Speaker, answer, begin, report, tools_of, work


@dataclass(frozen=True)
class MATPO(SubtaskOptions):
    """Limits are those of the paper's published configuration: subtasks of the planner and calls of a worker, one in
    each of their turns, and of a conversation's `window` of tokens the part that is kept free for its last `reply`.

    `recap` tells a worker the question that its subtask is for, `summary` closes each conversation with a summary,
    `block_leaks` keeps sites from the worker that hold the answers of benchmarks (all three ablated in Fig. 6).
    `planner_summary` closes the planner's conversation so, too; the paper has it for workers alone. `blocked_hosts` are
    more hosts, separated by commas, that no worker sees.
    `results` are messages of the user, as in the paper, or of the tool, as it suggests to try. `parallel` lets one turn
    hand out at most this many subtasks, whose workers run side by side (paper: one). Without a `planner` one worker
    answers the question: the single agent that the paper compares with. `brief` has prompts of a few lines and the
    search as the worker's only tool, for models of less than a billion parameters.
    """

    takes_tools: ClassVar[frozenset[str]] = frozenset({"worker"})
    approves: ClassVar[bool] = True
    dialect: ClassVar[str] = "xml"

    max_subtasks: int = 20
    worker_calls: int = 20
    planner: bool = True
    recap: bool = True
    summary: bool = True
    brief: bool = False
    block_leaks: bool = True
    planner_summary: bool = True
    blocked_hosts: str = ""
    results: Speaker = "user"
    window: int = 40_960
    reply: int = 4_096
    name: str = "matpo"

    def __post_init__(self) -> None:
        if min(self.max_subtasks, self.worker_calls, self.parallel, self.reply) < 1 or self.window <= self.reply:
            raise UsageError(
                f"{self.max_subtasks} subtasks, {self.parallel} at once, {self.worker_calls} calls, a window of "
                f"{self.window} tokens with {self.reply} for the reply: these limits leave nothing to do",
                fix="at least one of each, and reply < window",
            )
        if self.results not in get_args(Speaker):
            raise UsageError(f"results of {self.results!r}", fix="results are messages of 'user' or of 'tool'")

    @property
    def roles(self) -> frozenset[str]:
        return frozenset({"planner", "worker"}) if self.planner else frozenset({"worker"})

    async def run(self, question: str, context: RunContext) -> str:
        manner = LoopConfig(self.summary, self.results, self.window, self.reply, self.brief)
        more = [host.strip() for host in self.blocked_hosts.split(",") if host.strip()]
        tools = tools_of(context, (*(LEAKING if self.block_leaks else ()), *more), only_search=self.brief)
        if not self.planner:
            return (
                await work(Subtask("1", question), "", context, manner, tools=tools, calls=self.worker_calls)
            ).conclusion
        closing = replace(manner, summary=self.summary and self.planner_summary)
        planner = begin(question, context, closing, limit=self.max_subtasks, several=self.parallel)
        step = await planner.think()
        while step.calls:
            planner.observe(await self._reports(question, planner, step, manner, tools))
            step = await planner.think()
        return answer(await closing.summarise(planner, step))

    async def _reports(
        self, question: str, planner: Loop, step: Step, manner: LoopConfig, tools: Sequence[Tool]
    ) -> list[tuple[Call, str]]:
        """Return the reports of one turn's workers, in the order of its calls."""
        context, main = planner.conversation.context, question if self.recap else ""

        async def work_on(subtasks: Sequence[Subtask]) -> Sequence[Finding]:
            works = [work(subtask, main, context, manner, tools=tools, calls=self.worker_calls) for subtask in subtasks]
            findings = await together(works)
            context.rollout.findings += findings
            return findings

        first = planner.calls.used - len(step.calls) + 1
        subtasks = [
            Subtask(str(number), str(call.arguments["subtask"])) for number, call in enumerate(step.calls, first)
        ]
        return await hand_out([*zip(step.calls, subtasks, strict=True)], planner, work_on, report)

    def bound(self, sizes: Sizes) -> dict[str, Usage]:
        """At most so much by role; no prompt is longer than the window leaves it."""
        planner = self._within(sizes.bound_loop(self.max_subtasks + 1, sizes.reply), sizes)
        worker = self._within(sizes.bound_loop(self.worker_calls + 1, sizes.result), sizes)
        if not self.planner:
            return {"worker": worker}
        return {"planner": planner, "worker": worker.times(self.max_subtasks)}

    def _within(self, usage: Usage, sizes: Sizes) -> Usage:
        longest = usage.calls * max(self.window, sizes.prompt)
        return replace(usage, prompt_tokens=min(usage.prompt_tokens, longest))
