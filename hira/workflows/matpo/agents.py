"""The two roles of MATPO: a planner that hands out subtasks, and workers that search and read for one subtask each."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hira.agents.coordinator import BROKE_OFF, COULD_NOT
from hira.agents.loop import CONCLUDE, Loop, Step
from hira.agents.planner import make_workflow_tool, refuse_empty_task
from hira.agents.record import repeats_form
from hira.agents.run_context import Conversation, RunContext, format_files
from hira.agents.trajectory import Finding, Subtask
from hira.core.errors import EndpointError, UsageError
from hira.core.events import Notice, SubtaskAssigned
from hira.core.messages import Filled, system, user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.evidence import find_cited
from hira.policies.dialects.answer import find_boxed, find_final_answer, find_section
from hira.policies.dialects.report import find_under_heading
from hira.policies.dialects.tool_messages import with_tool_messages
from hira.tools import WHERE_TO_SEARCH, Tool

Speaker = Literal["user", "tool"]


@dataclass(frozen=True, slots=True)
class LoopConfig:
    """`summary` closes every conversation with one more turn, which sums it up. `results` says whose messages results
    are. `window` are the tokens of a conversation, of which `reply` are kept free for its last turn. `brief`
    has prompts of a few lines."""

    summary: bool = True
    results: Speaker = "user"
    window: int = 40_960
    reply: int = 4_096
    brief: bool = False

    def loop(
        self,
        conversation: Conversation,
        tools: Sequence[Tool],
        ask_summary: Callable[[str], Filled],
        *,
        limit: int,
        several: int = 1,
        final: bool = False,
    ) -> Loop:
        """The loop of an agent. `ask_summary` writes the request for its summary, with the reason why it has to end,
        if there is one."""
        if self.results == "tool":
            config = conversation.config
            conversation.config = replace(config, dialect=with_tool_messages(config.dialect))

        def conclude(reason: str) -> Filled:
            closing = BRIEF_CONCLUSION.fill() if self.brief else CONCLUDE.fill(reason=reason)
            return ask_summary(reason) if self.summary else closing

        room = self.window - self.reply
        return Loop(conversation, tools, limit, several, final=final, conclude=conclude, window=room)

    async def summarise(self, loop: Loop, step: Step) -> Step:
        """Close the conversation with its summary; a forced step is a summary already. If the summary fails, is
        empty or only repeats the request, the earlier words are kept, unless they are a plan."""
        if step.forced or not self.summary:
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


PLANNER = Prompt(__file__, "matpo_planner")
QUESTION = Prompt(__file__, "matpo_messages", "matpo_question")
BROWSING = Prompt(__file__, "matpo_messages", "matpo_browsing")
PLANNER_SUMMARY = Prompt(__file__, "matpo_planner_summary")
BRIEF_PLANNER = Prompt(__file__, "matpo_brief", "matpo_brief_planner")
BRIEF_BROWSING = Prompt(__file__, "matpo_brief", "matpo_brief_browsing")
BRIEF_WORKER = Prompt(__file__, "matpo_brief", "matpo_brief_worker")
BRIEF_CONCLUSION = Prompt(__file__, "matpo_brief", "matpo_brief_conclusion")


def begin(question: str, context: RunContext, manner: LoopConfig, *, limit: int, several: int) -> Loop:
    """Begin the planner's conversation with the question and its one tool (MATPO, appendix A)."""
    about = (BRIEF_BROWSING if manner.brief else BROWSING).fill()
    tools = [make_workflow_tool("search_and_browse", about, ["subtask"], server="browsing_agent")]

    def ask_summary(reason: str) -> Filled:
        return PLANNER_SUMMARY.fill(question=sanitize(question), reason=reason)

    conversation = context.conversation("planner")
    loop = manner.loop(conversation, tools, ask_summary, limit=limit, several=several, final=True)
    explained = conversation.explain(tools, brief=manner.brief)
    several = several if several > 1 else 0  # the prompt speaks of several
    if manner.brief:
        prompt = BRIEF_PLANNER.fill(tools=explained, several=several, limit=limit)
    else:
        prompt = PLANNER.fill(today=context.rollout.today, tools=explained, several=several, limit=limit)
    question_prompt = QUESTION.fill(question=sanitize(question), files=format_files(context.files))
    conversation.say(system(prompt), user(question_prompt))
    return loop


def report(finding: Finding) -> Filled:
    """Format a worker's report for the planner, without anything that the worker read."""
    text = sanitize(finding.reasoning or finding.conclusion)
    return Filled(text, "matpo_report", {"conclusion": finding.conclusion})


def answer(step: Step) -> str:
    """The answer in the planner's last turn: boxed, else its conclusion, else all of it."""
    marked = find_boxed(step.text) or find_section(step.text, "answer")
    return find_final_answer(step.text if marked else find_under_heading(step.text, "Conclusion") or step.text)


WORKER = Prompt(__file__, "matpo_worker")
SUBTASK = Prompt(__file__, "matpo_messages", "matpo_subtask")
WORKER_SUMMARY = Prompt(__file__, "matpo_worker_summary")
NOTHING = Prompt(__file__, "matpo_messages", "matpo_nothing")
SERVER = "search_and_scrape_webpage"
"""Whom a call of the worker's tools names (MATPO, appendix A)."""


def tools_of(context: RunContext, blocked: Collection[str] = (), *, only_search: bool = False) -> list[Tool]:
    """Return the worker's tools in this run, without anything from a `blocked` host: the paper's google_search, where
    a service has it, in place of search. With `only_search` that is all. Raises `UsageError` for a run without
    tools."""
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


async def work(
    subtask: Subtask, main: str, context: RunContext, manner: LoopConfig, *, tools: Sequence[Tool], calls: int
) -> Finding:
    """Do a subtask of the `main` question, which the worker sees unless it is empty (user-query recap). `reasoning` of
    the finding is the whole report, `conclusion` the text under that heading. A worker that fails is a finding too,
    with the error and the worker's words until then."""
    if not subtask.text.strip():
        return Finding(subtask, "worker", "", refuse_empty_task(), ok=False)
    context.events(SubtaskAssigned(subtask.id, "worker", "", 0))
    loop = _begin_worker(subtask, main, context, manner, tools=tools, calls=calls)
    try:
        step = await manner.summarise(loop, await loop.run())
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


def _begin_worker(
    subtask: Subtask, main: str, context: RunContext, manner: LoopConfig, *, tools: Sequence[Tool], calls: int
) -> Loop:
    def ask_summary(reason: str) -> Filled:
        return WORKER_SUMMARY.fill(task=sanitize(subtask.text), recap=sanitize(main), reason=reason)

    conversation = context.conversation("worker", subtask.id)
    loop = manner.loop(conversation, tools, ask_summary, limit=calls)
    explained, recap = conversation.explain(tools, brief=manner.brief), sanitize(main)
    if manner.brief:
        prompt = BRIEF_WORKER.fill(tools=explained, limit=calls, recap=recap)
    else:
        prompt = WORKER.fill(today=context.rollout.today, tools=explained, limit=calls, recap=recap)
    conversation.say(system(prompt), user(SUBTASK.fill(task=sanitize(subtask.text), files=format_files(context.files))))
    return loop
