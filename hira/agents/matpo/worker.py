"""A worker of MATPO: searches and reads for one subtask in a conversation of its own, and reports."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from hira.agents.coordinator import BROKE_OFF, COULD_NOT
from hira.agents.expert import format_files
from hira.agents.loop import UNREADABLE, Loop
from hira.agents.matpo.manner import LoopConfig
from hira.agents.planner import NO_TASK
from hira.agents.run_context import RunContext
from hira.agents.trajectory import Finding, Subtask
from hira.core.errors import EndpointError, UsageError
from hira.core.events import SubtaskAssigned, SubtaskDone
from hira.core.messages import Filled, system, user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.evidence import find_cited
from hira.policies.dialects.answer import final
from hira.policies.dialects.headed import under
from hira.tools import Tool

WORKER = Prompt(__file__, "matpo_worker")
RECAP = Prompt(__file__, "matpo_recap")
SUBTASK = Prompt(__file__, "matpo_subtask")
SUMMARY = Prompt(__file__, "matpo_worker_summary")
MAIN_TASK = Prompt(__file__, "matpo_main_task")
NOTHING = Prompt(__file__, "matpo_nothing")
SERVER = "search_and_scrape_webpage"
"""Whom a call of the worker's tools names (MATPO, appendix A)."""


def tools_of(team: RunContext, blocked: Collection[str] = ()) -> list[Tool]:
    """What a worker can use in this run, with nothing from a `blocked` host. Raises `UsageError` if that is nothing."""
    box = team.tools
    web = [replace(tool, server=SERVER, blocked=blocked) for tool in (box.search, box.browse) if tool]
    tools = [*web, *([box.files] if box.files else []), *box.extra_for("worker")]
    if not tools:
        raise UsageError(
            "the workflow 'matpo' needs a search, but this run has none",
            fix="give documents (--docs) or a search backend (--search)",
        )
    return tools


async def work(
    subtask: Subtask, main: str, team: RunContext, manner: LoopConfig, *, tools: Sequence[Tool], calls: int
) -> Finding:
    """Do a subtask of the `main` question, which the worker is told of unless it is empty (user-query recap).

    `reasoning` of the finding is the whole report, `conclusion` what stands under that heading. A worker that cannot
    go on is a finding that says so, and what it had said by then.
    """
    if not subtask.text.strip():
        return Finding(subtask, "worker", "", UNREADABLE.fill(error=NO_TASK.fill()), ok=False)
    team.events(SubtaskAssigned(subtask.id, "worker", "", 0))
    loop = _begun(subtask, main, team, manner, tools=tools, calls=calls)
    try:
        step = await manner.closed(loop, await loop.run())
    except EndpointError as error:
        finding = _broken_off(subtask, loop.said, error)
    else:
        text = step.text
        conclusion = under(text, "Conclusion") or final(text) or NOTHING.fill()
        ok = bool(find_cited(text)) if team.stopped else bool(text)
        finding = Finding(subtask, "worker", text, conclusion, ok=ok)
    team.events(SubtaskDone(subtask.id, "worker", finding.conclusion, finding.ok))
    return finding


def _begun(
    subtask: Subtask, main: str, team: RunContext, manner: LoopConfig, *, tools: Sequence[Tool], calls: int
) -> Loop:
    def asking(why: Filled) -> Filled:
        recap = MAIN_TASK.fill(question=sanitize(main)) if main else Filled("")
        return SUMMARY.fill(task=sanitize(subtask.text), recap=recap, why=why)

    conversation = team.conversation("worker", subtask.id)
    loop = manner.loop(conversation, tools, asking, limit=calls)
    prompt = WORKER.fill(
        today=team.rollout.today,
        tools=conversation.part.dialect.instructions(tools),
        limit=calls,
        recap=RECAP.fill(question=sanitize(main)) if main else Filled(""),
    )
    conversation.say(system(prompt), user(SUBTASK.fill(task=sanitize(subtask.text), files=format_files(team.files))))
    return loop


def _broken_off(subtask: Subtask, so_far: str, error: EndpointError) -> Finding:
    told = BROKE_OFF.fill(expert="the worker", why=error.what, conclusion=sanitize(so_far)) if so_far else None
    return Finding(subtask, "worker", "", told or COULD_NOT.fill(expert="the worker", why=error.what), ok=False)
