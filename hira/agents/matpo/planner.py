"""The planner of MATPO: thinks, hands out subtasks through its one tool, and answers from the reports."""

from collections.abc import Mapping
from typing import Any

from hira.agents.expert import format_files
from hira.agents.loop import Loop, Step
from hira.agents.matpo.manner import LoopConfig
from hira.agents.run_context import RunContext
from hira.agents.trajectory import Finding, Subtask
from hira.core.errors import ToolError
from hira.core.events import SubtaskIssued
from hira.core.messages import Filled, system, user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.policies.dialects.answer import final, find_boxed, find_tagged
from hira.policies.dialects.headed import under
from hira.tools import Observation, Tool

PLANNER = Prompt(__file__, "matpo_planner")
ONE = Prompt(__file__, "matpo_one")
SEVERAL = Prompt(__file__, "matpo_several")
QUESTION = Prompt(__file__, "matpo_question")
BROWSING = Prompt(__file__, "matpo_browsing")
SUMMARY = Prompt(__file__, "matpo_planner_summary")


async def _by_a_worker(arguments: Mapping[str, Any]) -> Observation:
    raise ToolError(f"a subtask is done by a worker, not run: {arguments['subtask']}")


def browsing() -> Tool:
    """The one tool of the planner (MATPO, appendix A)."""
    parameters = {"type": "object", "properties": {"subtask": {"type": "string"}}, "required": ["subtask"]}
    return Tool("search_and_browse", BROWSING.fill(), parameters, _by_a_worker, pure=True, server="browsing_agent")


def begin(question: str, team: RunContext, manner: LoopConfig, *, limit: int, parallel: int) -> Loop:
    """The planner's conversation, told the question."""
    tools = [browsing()]

    def asking(why: Filled) -> Filled:
        return SUMMARY.fill(question=sanitize(question), why=why)

    conversation = team.conversation("planner")
    loop = manner.loop(conversation, tools, asking, limit=limit, several=parallel, final=True)
    prompt = PLANNER.fill(
        today=team.rollout.today,
        tools=conversation.part.dialect.instructions(tools),
        several=ONE.fill() if parallel == 1 else SEVERAL.fill(several=parallel),
        limit=limit,
    )
    asked = QUESTION.fill(question=sanitize(question), files=format_files(team.files))
    conversation.say(system(prompt), user(asked))
    return loop


def handed_out(loop: Loop, step: Step) -> list[Subtask]:
    """The subtasks of a turn, numbered in the order of issue."""
    first = loop.used - len(step.calls) + 1
    subtasks = [Subtask(str(first + at), str(call.arguments["subtask"])) for at, call in enumerate(step.calls)]
    for subtask in subtasks:
        loop.conversation.team.events(SubtaskIssued(subtask.id, subtask.text))
    return subtasks


def report(finding: Finding) -> Filled:
    """What the planner reads of a worker: its report, and nothing that it read."""
    text = sanitize(finding.reasoning or finding.conclusion)
    return Filled(text, "matpo_report", {"conclusion": finding.conclusion})


def answer(step: Step) -> str:
    """The answer in the planner's last turn: boxed, else its conclusion, else all of it."""
    marked = find_boxed(step.text) or find_tagged(step.text)
    return final(step.text if marked else under(step.text, "Conclusion") or step.text)
