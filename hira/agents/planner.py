"""The meta reasoning planner (HiRA, eq. 1 and 2): thinks, hands out subtasks, reads distilled results, answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hira.agents.approved import CHANGED, Dispatch, ask_approval
from hira.agents.expert import Expert
from hira.agents.loop import Loop, Step
from hira.agents.recovery import UNREADABLE
from hira.agents.run_context import RunContext, format_files
from hira.agents.trajectory import Finding, Subtask
from hira.core.bm25 import words
from hira.core.errors import ToolError
from hira.core.events import SubtaskIssued
from hira.core.messages import Filled, user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.policies.dialects import Call
from hira.tools import Observation, Tool, Toolbox

PLANNER = Prompt(__file__, "planner")
FINDING = Prompt(__file__, "reports", "finding")
NO_TASK = Prompt(__file__, "reports", "no_task")


async def _refuse_to_run(arguments: Mapping[str, Any]) -> Observation:
    raise ToolError(f"the workflow does this, not a tool: {dict(arguments)}")


def make_workflow_tool(
    name: str, description: str, required: Sequence[str], *optional: str, pure: bool = True, server: str = ""
) -> Tool:
    """A tool whose calls the workflow carries out itself. All of its parameters are strings."""
    properties = {field: {"type": "string"} for field in (*required, *optional)}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return Tool(name, description, schema, _refuse_to_run, pure=pure, server=server)


SUBTASK = make_workflow_tool(
    "subtask", "hand out one subtask; you get back how it was done and what it concluded", ["task"]
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """An answer that no check confirmed, and the passages that it was written from."""

    answer: str
    passages: Filled


class Planner:
    """The planner's one conversation. It sees its experts; with `describe=False` only their abilities, so that it plans
    by the task alone (HiRA, Fig. 3). A call of an expert by its name is a subtask for that expert."""

    def __init__(
        self,
        context: RunContext,
        *,
        limit: int = 10,
        several: int = 1,
        experts: Sequence[Expert] = (),
        describe: bool = True,
    ) -> None:
        self.context = context
        self.experts = experts
        self.describe = describe
        parameters = {"type": "object", "properties": {"task": {"type": "string"}}, "additionalProperties": True}
        tools = [Tool(expert.name, expert.description, parameters, _refuse_to_run, pure=True) for expert in experts]
        self.loop = Loop(
            context.conversation("planner"),
            [SUBTASK],
            limit=limit,
            several=several,
            final=True,
            hidden_tools=tools if describe else (),
            known_answer=self._only_report,
            fallback_calls=self._hand_out_question,
        )
        self.asked = ""
        """The question as a subtask, whose expert sees no earlier messages."""

    async def begin(self, question: str, attempt: Attempt | None = None) -> Step:
        """Think for the first time. A step has subtasks to hand out, or none and the answer."""
        loop = self.loop
        loop.reader.task = self.asked = question
        if self.context.earlier:
            from hira.agents.retrieval import restate  # few questions follow up on others

            self.asked = restate(self.context)
        prompt = PLANNER.fill(
            today=self.context.rollout.today,
            question=sanitize(question),
            files=format_files(self.context.files),
            call=loop.conversation.explain([SUBTASK]),
            several=loop.several if loop.several > 1 else 0,
            limit=loop.calls.limit,
            experts=describe_experts(self.experts) if self.describe else Filled(""),
            abilities="" if self.describe else ", ".join(dict.fromkeys(expert.ability for expert in self.experts)),
            tools=describe_tools(self.context.tools, self.experts),
            passages=attempt.passages if attempt else "",
            answer=(sanitize(attempt.answer) or "none") if attempt else "",
        )
        loop.conversation.say(user(prompt))
        return await self._think()

    async def hand_out(self, step: Step, dispatch: Dispatch) -> Step:
        """Have the subtasks of a step done, and think again with the reports on them."""
        known = [expert.name for expert in self.experts if self.describe]
        issued: list[tuple[Call, Subtask]] = []
        for number, call in enumerate(step.calls, self.loop.calls.used - len(step.calls) + 1):
            named = call.arguments.get("expert") if call.name == SUBTASK.name else call.name
            issued.append((call, Subtask(str(number), self._read_task(call), named if named in known else "")))
        reports = iter(await hand_out([pair for pair in issued if pair[1].text], self.loop, dispatch, report))
        results: list[tuple[Call, str]] = []
        for call, subtask in issued:
            if subtask.text:
                results.append(next(reports))
            else:
                self.loop.forget(call)
                results.append((call, refuse_empty_task()))
        self.loop.observe(results)
        return await self._think()

    async def _think(self) -> Step:
        step = await self.loop.think()
        while step.calls and not any(map(task_of, step.calls)):
            self.loop.observe([(call, refuse_empty_task()) for call in step.calls])
            step = await self.loop.think()
        return step

    def _read_task(self, call: Call) -> str:
        """Return the task of a call, or the question in place of one that repeats the earlier messages."""
        task, earlier = task_of(call), self.context.earlier
        if not (task and earlier):
            return task
        from hira.agents.history import repeats_history  # few questions follow up on others

        return self.asked if repeats_history(task, self.loop.reader.task, earlier) else task

    def _only_report(self) -> str:
        """The conclusion of the one subtask that was done, or of the question itself as the last one, empty if it has
        none: a planner that only hands it out again has nothing to decide."""
        done = self.context.rollout.findings
        last = done[-1] if done and (len(done) == 1 or done[-1].subtask.text == self.asked) else None
        return last.conclusion if last and last.ok else ""

    def _hand_out_question(self) -> Sequence[Call]:
        """The question itself as a subtask, for a planner that is stuck and whose subtasks left out a part of it: its
        expert is given what memory holds by now, so that a second step follows the first."""
        earlier_words = {word for finding in self.context.rollout.findings for word in words(finding.subtask.text)}
        call = Call(SUBTASK.name, {"task": self.asked})
        return (call,) if set(words(self.asked)) - earlier_words else ()


def task_of(call: Call) -> str:
    """Return the task of a call, empty if it has none. The task of an expert called by name is all of its arguments."""
    if call.name == SUBTASK.name or "task" in call.arguments:
        return str(call.arguments.get("task", "")).strip()
    texts = (
        ", ".join(map(str, argument)) if isinstance(argument, list) else str(argument)
        for argument in call.arguments.values()
    )
    return "; ".join(filter(None, map(str.strip, texts)))


async def hand_out(
    issued: Sequence[tuple[Call, Subtask]], loop: Loop, dispatch: Dispatch, report: Callable[[Finding], Filled]
) -> list[tuple[Call, str]]:
    """Have the subtasks of a turn done; return a report on each for its call. One that failed may be tried again."""
    context = loop.conversation.context
    for _, subtask in issued:
        context.events(SubtaskIssued(subtask.id, subtask.text))
    findings = await ask_approval([subtask for _, subtask in issued], context, dispatch)
    results: list[tuple[Call, str]] = []
    for (call, subtask), finding in zip(issued, findings, strict=True):
        if not finding.ok:
            loop.forget(call)
        text, done = report(finding), finding.subtask.text
        if done.strip() != subtask.text.strip():  # a person changed it
            text = Filled(CHANGED.fill(task=sanitize(done), report=text), text.prompt, text.values)
        results.append((call, text))
    return results


def report(finding: Finding) -> Filled:
    """A finding as the planner reads it."""
    conclusion = sanitize(finding.conclusion)
    return (
        FINDING.fill(conclusion=conclusion, reasoning=sanitize(finding.reasoning)) if finding.reasoning else conclusion
    )


def describe_experts(experts: Sequence[Expert]) -> Filled:
    """Describe the experts in a line. Names and lists are left out, because a small model copies them into its subtask
    (`benchmarks/results/prompts.md`)."""
    return Filled("; ".join(f"one {expert.description}" for expert in experts))


def describe_tools(tools: Toolbox, experts: Sequence[Expert]) -> str:
    """Describe, in a line, where these experts can search and which tools the user added."""
    search = [tools.search] if tools.search and any("search" in expert.needs for expert in experts) else []
    expert_tools = [tool for expert in experts for tool in tools.extra_for(expert.name)]
    lines = [f"{tool.name} ({tool.description.partition('. ')[0].rstrip('.')})" for tool in (*search, *expert_tools)]
    return ", ".join(dict.fromkeys(lines))


def refuse_empty_task() -> Filled:
    """The reply to a call that hands out nothing."""
    return UNREADABLE.fill(error=NO_TASK.fill())
