"""MATPO: a planner and workers, two roles of one model (paper 2510.04678), its multi-agent rollout.

τ = [a₁, τ¹, s₁, …, a_T]. In each turn the planner thinks and hands out a subtask (a_t) through its only tool; a worker
searches and reads for it in a separate conversation (τᵗ), and the planner sees the worker's last words alone (s_t).
Each conversation ends with a summary of all of it.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

from hira.agents.coordinator import BROKE_OFF, COULD_NOT
from hira.agents.loop import CONCLUDE, Loop, Step
from hira.agents.planner import hand_out, make_workflow_tool, refuse_empty_task
from hira.agents.record import repeats_form
from hira.agents.run_context import Conversation, RunContext, format_files
from hira.agents.trajectory import Finding, Subtask
from hira.core.concurrency import together
from hira.core.errors import EndpointError, UsageError
from hira.core.events import Notice, SubtaskAssigned
from hira.core.messages import Filled, system, user
from hira.core.options import SubtaskOptions
from hira.core.policy import Usage
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.evidence import find_cited
from hira.policies.dialects import Call
from hira.policies.dialects.answer import find_boxed, find_final_answer, find_section
from hira.policies.dialects.report import find_under_heading
from hira.policies.dialects.tool_messages import with_tool_messages
from hira.tools import WHERE_TO_SEARCH, Tool
from hira.tools.search import LEAKING
from hira.workflows.bound import Sizes

Speaker = Literal["user", "tool"]

PLANNER = Prompt(__file__, "matpo_planner")
QUESTION = Prompt(__file__, "matpo_messages", "matpo_question")
BROWSING = Prompt(__file__, "matpo_messages", "matpo_browsing")
PLANNER_SUMMARY = Prompt(__file__, "matpo_planner_summary")
WORKER = Prompt(__file__, "matpo_worker")
SUBTASK = Prompt(__file__, "matpo_messages", "matpo_subtask")
WORKER_SUMMARY = Prompt(__file__, "matpo_worker_summary")
NOTHING = Prompt(__file__, "matpo_messages", "matpo_nothing")
BRIEF_PLANNER = Prompt(__file__, "matpo_brief", "matpo_brief_planner")
BRIEF_BROWSING = Prompt(__file__, "matpo_brief", "matpo_brief_browsing")
BRIEF_WORKER = Prompt(__file__, "matpo_brief", "matpo_brief_worker")
BRIEF_CONCLUSION = Prompt(__file__, "matpo_brief", "matpo_brief_conclusion")
SERVER = "search_and_scrape_webpage"
"""Whom a call of the worker's tools names (MATPO, appendix A)."""


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
        more = [host.strip() for host in self.blocked_hosts.split(",") if host.strip()]
        tools = tools_of(context, (*(LEAKING if self.block_leaks else ()), *more), only_search=self.brief)
        if not self.planner:
            return (await self._work(Subtask("1", question), "", context, tools)).conclusion
        planner = self._begin(question, context)
        step = await planner.think()
        while step.calls:
            planner.observe(await self._reports(question, planner, step, tools))
            step = await planner.think()
        return answer(await _summarise(planner, step, wanted=self.summary and self.planner_summary))

    async def _reports(self, question: str, planner: Loop, step: Step, tools: Sequence[Tool]) -> list[tuple[Call, str]]:
        """Return the reports of one turn's workers, in the order of its calls."""
        context, main = planner.conversation.context, question if self.recap else ""

        async def work_on(subtasks: Sequence[Subtask]) -> Sequence[Finding]:
            findings = await together([self._work(subtask, main, context, tools) for subtask in subtasks])
            context.rollout.findings += findings
            return findings

        first = planner.calls.used - len(step.calls) + 1
        subtasks = [
            Subtask(str(number), str(call.arguments["subtask"])) for number, call in enumerate(step.calls, first)
        ]
        return await hand_out([*zip(step.calls, subtasks, strict=True)], planner, work_on, report)

    def _make_loop(
        self,
        conversation: Conversation,
        tools: Sequence[Tool],
        ask_summary: Callable[[str], Filled] | None,
        *,
        limit: int,
        several: int = 1,
        final: bool = False,
    ) -> Loop:
        """The loop of an agent. `ask_summary` writes the request for its summary, with the reason why it has to end,
        if there is one; None closes the conversation without a summary."""
        if self.results == "tool":
            config = conversation.config
            conversation.config = replace(config, dialect=with_tool_messages(config.dialect))

        def conclude(reason: str) -> Filled:
            closing = BRIEF_CONCLUSION.fill() if self.brief else CONCLUDE.fill(reason=reason)
            return ask_summary(reason) if ask_summary else closing

        room = self.window - self.reply
        return Loop(conversation, tools, limit, several, final=final, conclude=conclude, window=room)

    def _begin(self, question: str, context: RunContext) -> Loop:
        """Begin the planner's conversation with the question and its one tool (MATPO, appendix A)."""
        about = (BRIEF_BROWSING if self.brief else BROWSING).fill()
        tools = [make_workflow_tool("search_and_browse", about, ["subtask"], server="browsing_agent")]

        def ask_summary(reason: str) -> Filled:
            return PLANNER_SUMMARY.fill(question=sanitize(question), reason=reason)

        conversation, limit = context.conversation("planner"), self.max_subtasks
        summary = ask_summary if self.summary and self.planner_summary else None
        loop = self._make_loop(conversation, tools, summary, limit=limit, several=self.parallel, final=True)
        explained = conversation.explain(tools, brief=self.brief)
        several = self.parallel if self.parallel > 1 else 0  # the prompt speaks of several
        if self.brief:
            prompt = BRIEF_PLANNER.fill(tools=explained, several=several, limit=limit)
        else:
            prompt = PLANNER.fill(today=context.rollout.today, tools=explained, several=several, limit=limit)
        question_prompt = QUESTION.fill(question=sanitize(question), files=format_files(context.files))
        conversation.say(system(prompt), user(question_prompt))
        return loop

    async def _work(self, subtask: Subtask, main: str, context: RunContext, tools: Sequence[Tool]) -> Finding:
        """Do a subtask of the `main` question, which the worker sees unless it is empty (user-query recap). `reasoning`
        of the finding is the whole report, `conclusion` the text under that heading. A worker that fails is a finding
        too, with the error and the worker's words until then."""
        if not subtask.text.strip():
            return Finding(subtask, "worker", "", refuse_empty_task(), ok=False)
        context.events(SubtaskAssigned(subtask.id, "worker", "", 0))
        recap, limit = sanitize(main), self.worker_calls

        def ask_summary(reason: str) -> Filled:
            return WORKER_SUMMARY.fill(task=sanitize(subtask.text), recap=recap, reason=reason)

        conversation = context.conversation("worker", subtask.id)
        loop = self._make_loop(conversation, tools, ask_summary if self.summary else None, limit=limit)
        explained = conversation.explain(tools, brief=self.brief)
        if self.brief:
            prompt = BRIEF_WORKER.fill(tools=explained, limit=limit, recap=recap)
        else:
            prompt = WORKER.fill(today=context.rollout.today, tools=explained, limit=limit, recap=recap)
        task = SUBTASK.fill(task=sanitize(subtask.text), files=format_files(context.files))
        conversation.say(system(prompt), user(task))
        try:
            step = await _summarise(loop, await loop.run(), wanted=self.summary)
        except EndpointError as error:
            why = (
                BROKE_OFF.fill(expert="the worker", why=error.what, conclusion=sanitize(loop.said))
                if loop.said
                else COULD_NOT.fill(expert="the worker", why=error.what)
            )
            finding = Finding(subtask, "worker", "", why, ok=False)
        else:
            text = step.text
            conclusion = find_under_heading(text, "Conclusion") or find_final_answer(text) or NOTHING.fill()
            ok = bool(find_cited(text)) if context.stopped else bool(text)
            finding = Finding(subtask, "worker", text, conclusion, ok=ok)
        return context.announce(finding)

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


async def _summarise(loop: Loop, step: Step, *, wanted: bool) -> Step:
    """Close the conversation with its summary, if `wanted`; a forced step is a summary already. If the summary fails,
    is empty or only repeats the request, the earlier words are kept, unless they are a plan."""
    if step.forced or not wanted:
        return replace(step, text=step.text or loop.last_words)
    try:
        summed = await loop.close("")
        repeated = repeats_form(summed.text, f"{PLANNER_SUMMARY.text}\n{WORKER_SUMMARY.text}")
        fault = "the reply repeats the request" if repeated else ""
    except EndpointError as error:
        fault = error.what
    if fault:
        loop.conversation.context.events(Notice(f"{loop.conversation.trajectory.role}: no summary: {fault}"))
        return step
    if find_under_heading(summed.text, "Conclusion"):
        return summed
    return replace(step, text="\n\n".join(dict.fromkeys(text for text in (step.text, summed.text) if text)))


def report(finding: Finding) -> Filled:
    """Format a worker's report for the planner, without anything that the worker read."""
    text = sanitize(finding.reasoning or finding.conclusion)
    return Filled(text, "matpo_report", {"conclusion": finding.conclusion})


def answer(step: Step) -> str:
    """The answer in the planner's last turn: boxed, else its conclusion, else all of it."""
    marked = find_boxed(step.text) or find_section(step.text, "answer")
    return find_final_answer(step.text if marked else find_under_heading(step.text, "Conclusion") or step.text)


def tools_of(context: RunContext, blocked: Collection[str] = (), *, only_search: bool = False) -> list[Tool]:
    """Return the worker's tools in this run, without anything from a `blocked` host: the paper's google_search, where
    a service has it, in place of search. With `only_search` that is all. Raises `UsageError` without a tool."""
    box = context.tools
    own = box.extra_for("worker")
    google = next((tool for tool in own if tool.name == "google_search"), None)
    box = replace(box, browse=None, files=None) if only_search else box
    web = [replace(tool, server=SERVER, blocked=blocked) for tool in (google or box.search, box.browse) if tool]
    more = () if only_search else (tool for tool in own if tool is not google)
    tools = [*web, *([box.files] if box.files else []), *more]
    if not tools:
        raise UsageError("the workflow 'matpo' needs a search, but this run has none", fix=WHERE_TO_SEARCH)
    return tools
