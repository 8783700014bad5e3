"""The experts, cheapest first. One of your own needs no change here: hand it to the workflow."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import PurePath
from typing import Any

from hira.agents.expert import Account, Expert, Task, reason
from hira.agents.loop import ask_for_text
from hira.agents.retrieval import NOTHING_FOUND, look_up
from hira.agents.run_context import RunContext
from hira.core.concurrency import together
from hira.core.errors import EndpointError, MediaRefused, Stop, ToolError
from hira.core.memory import Fact
from hira.core.messages import Filled, user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.evidence import Source, join_question_and_answer
from hira.policies.dialects.answer import strip_thought
from hira.tools import Observation, Passage, Tool

ANSWER = Prompt(__file__, "simple_search_answer")
OWN_QUERY = 25
"""Words of a task up to which it is a query itself, and no call plans others."""


class SimpleSearch:
    name = "simple_search"
    description = "looks up facts that documents or pages state, quickly and cheaply"
    ability = "search"
    cost = 1
    needs = frozenset({"search"})

    async def work(self, task: Task, context: RunContext) -> Account:
        if len(task.text.split()) <= OWN_QUERY and not task.files and not task.faithful:
            # also together with the facts that it was given, which may name what it only describes
            facts = [entry.text for entry in task.recall.entries if isinstance(entry, Fact)]
            own = [task.text, *([" ".join((task.text, *facts))] if facts else [])]
            queries = [" ".join(query.split()[: 2 * OWN_QUERY]) for query in own]
        else:
            from hira.agents.queries import plan_queries  # a short task is its own query

            # the answer is written in another conversation, since a small model repeats the plan that it sees
            planning = context.conversation(self.name, task.id)
            queries = await plan_queries(planning, task.text, task.attached, task.known) or [task.text]
        conversation = context.conversation(self.name, task.id)
        seen = await together([look_up(conversation, query) for query in queries])
        if not any(tool_use.ok for group in seen for tool_use in group):
            raise ToolError(seen[0][-1].text)
        has_found = any(tool_use.observation.passages for group in seen for tool_use in group)
        if not (has_found or task.known or task.faithful):
            return Account(f"Searched for: {'; '.join(queries)}", NOTHING_FOUND.fill(), found=False)
        documents = Filled("\n\n".join(dict.fromkeys(tool_use.text for group in seen for tool_use in group)))
        prompt = ANSWER.fill(documents=documents, task=sanitize(task.text), known=task.known)
        searched = f"Searched for: {'; '.join(queries)}\n\n{documents}"
        try:
            answer = strip_thought(await ask_for_text(conversation, prompt))
        except (EndpointError, Stop) as error:
            return Account(searched, documents, error.what)
        work = f"{searched}\n\n{answer}" if task.faithful else answer  # which cites them: they are not read twice
        return Account(work, answer, found=conversation.calls.has_result)


DEEP_SEARCH = Prompt(__file__, "deep_search")
CODE = Prompt(__file__, "code")
READER = Prompt(__file__, "reader")


class DeepSearch:
    """HiRA's use of WebThinker: searches and opens pages inside its own reasoning."""

    name = "deep_search"
    description = "explores many pages, follows links and compares what they say, at high cost"
    ability = "search"
    cost = 3
    needs = frozenset({"search"})
    loops = True

    async def work(self, task: Task, context: RunContext) -> Account:
        box = context.tools
        tools = [tool for tool in (box.search, box.browse, box.files, *box.extra_for(self.name)) if tool]
        return await reason(context.conversation(self.name, task.id), task, DEEP_SEARCH, tools)


class Code:
    """HiRA's computational reasoning agent: thinks and runs Python, whose variables last for one subtask."""

    name = "code"
    description = "computes exact results with Python: arithmetic, statistics, data files, dates, units, simulations"
    ability = "code"
    cost = 2
    needs = frozenset({"python"})
    loops = True

    async def work(self, task: Task, context: RunContext) -> Account:
        toolbox, conversation = context.tools, context.conversation(self.name, task.id)
        async with toolbox.python(task.id) if toolbox.python else nullcontext() as python:
            tools = [tool for tool in (python, toolbox.files, *toolbox.extra_for(self.name)) if tool]
            account = await reason(conversation, task, CODE, tools)
        if python and (unmade := conversation.calls.unmade.pop(python.name, [])):
            context.state.unmade[task.id] = unmade
        return account


class Reader:
    """Reads the files that came with the question and uses the tools that the user brought, in a run that has neither
    Python nor a search. Where it has one of these, the experts for it get the files and the tools as well."""

    name = "reader"
    description = "reads the attached files and uses the tools that the user provided"
    ability = "reading"
    cost = 2
    needs = frozenset({"given"})
    loops = True

    async def work(self, task: Task, context: RunContext) -> Account:
        tools = [tool for tool in (context.tools.files, *context.tools.extra_for(self.name)) if tool]
        return await reason(context.conversation(self.name, task.id), task, READER, tools)


MULTIMODAL = Prompt(__file__, "multimodal")
LOOK = Prompt(__file__, "look")
SIGHT = Prompt(__file__, "sight", "sight")
PLACES = Prompt(__file__, "sight", "places")
SEES = "look"
MOMENTS = 8
"""The number of evenly spaced pictures that replace a video."""
LISTED = 60
"""The most file names in the prompt."""


class Multimodal:
    name = "multimodal"
    description = (
        "looks at pictures and scanned pages, listens to sounds, watches videos, and answers questions about them"
    )
    ability = "multimodal"
    cost = 2
    needs = frozenset({"media"})
    loops = True

    async def work(self, task: Task, context: RunContext) -> Account:
        conversation = context.conversation(self.name, task.id)
        sight = [look(context, task.id)] if context.tools.media else []
        return await reason(conversation, task, MULTIMODAL, [*sight, *context.tools.extra_for(self.name)])


def look(context: RunContext, subtask: str) -> Tool:
    """The tool that has the role `look` answer one question about one picture, sound or video."""

    async def run(arguments: Mapping[str, Any]) -> Observation:
        path, question = str(arguments["data"]), str(arguments["question"])
        try:
            answer = await _look(context, subtask, path, question)
        except MediaRefused as refused:
            context.note(f"{context.config_of(SEES).policy.model}: {refused.what}; {refused.fix}")
            raise ToolError(f"{refused.what}, so there is no answer; continue without it") from None
        source = Source(path, PurePath(path).name, join_question_and_answer(question, answer), kind="media")
        return Observation(passages=(Passage(source, answer),))

    parameters = {
        "type": "object",
        "properties": {"data": {"type": "string"}, "question": {"type": "string"}},
        "required": ["data", "question"],
    }
    return Tool("look", SIGHT.fill(things=_list_places(context.tools.visible)), parameters, run, speaks=SEES)


async def _look(context: RunContext, subtask: str, path: str, question: str) -> str:
    """Return what the seeing model says of the file. A video that it refuses, or a large one, becomes pictures."""
    from hira.tools.file_kinds import decodes
    from hira.tools.media import TooLarge

    read = context.tools.media
    assert read is not None  # noqa: S101 - `needs` says so
    try:
        media = await asyncio.to_thread(read, path)
        return await context.conversation(SEES, subtask).reply(user(LOOK.fill(question=question, moments=0), media))
    except MediaRefused:
        if media.kind != "video":
            raise
    except TooLarge:
        if not decodes():
            raise
    context.note(f"{context.config_of(SEES).policy.model} is shown {MOMENTS} pictures of a video, without its sound")
    moments = [await asyncio.to_thread(read, f"{path}#share={share}/{MOMENTS}") for share in range(1, MOMENTS + 1)]
    prompt = LOOK.fill(question=question, moments=MOMENTS)
    return await context.conversation(SEES, subtask).reply(user(prompt, *moments))


def _list_places(names: Sequence[str]) -> str:
    """The names of the first files as lines, and how a page of a document or a moment of a video is named."""
    from hira.tools.file_kinds import decodes, kind_of

    lines = []
    for name in names[:LISTED]:
        kind = kind_of(name)
        moments = kind.startswith("video/") and decodes()
        lines.append(f"- {PLACES.fill(name=name, pages=kind == 'application/pdf', moments=moments)}")
    if len(names) > LISTED:
        lines.append(f"- and {len(names) - LISTED} more")
    return "\n".join(lines)


EXPERTS: tuple[Expert, ...] = (SimpleSearch(), Code(), Multimodal(), Reader(), DeepSearch())
