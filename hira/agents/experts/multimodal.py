"""The multimodal expert (HiRA): a reasoning role whose tool is a model that sees and hears."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from hira.agents.expert import Account, Task, reason
from hira.agents.run_context import RunContext
from hira.core.errors import MediaRefused, ToolError
from hira.core.messages import user
from hira.core.prompts import Prompt
from hira.evidence import Source, join_question_and_answer
from hira.tools import Observation, Passage, Tool

MULTIMODAL = Prompt(__file__, "multimodal")
LOOK = Prompt(__file__, "look")
SIGHT = Prompt(__file__, "sight")
PAGES = Prompt(__file__, "pages")
VIDEO = Prompt(__file__, "sight_video")
MOMENTS_OF = Prompt(__file__, "look_moments")
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
    return Tool("look", SIGHT.fill(things="\n".join(_list_names(context.tools.visible))), parameters, run, speaks=SEES)


async def _look(context: RunContext, subtask: str, path: str, question: str) -> str:
    """Return what the seeing model says of the file. A video that it does not take, or a file that is too large, is
    shown as pictures."""
    from hira.tools.media import TooLarge, decodes

    read = context.tools.media
    assert read is not None  # noqa: S101 - `needs` says so
    try:
        media = await asyncio.to_thread(read, path)
        return await context.conversation(SEES, subtask).reply(user(LOOK.fill(question=question), media))
    except MediaRefused:
        if media.kind != "video":
            raise
    except TooLarge:
        if not decodes():
            raise
    context.note(f"{context.config_of(SEES).policy.model} is shown {MOMENTS} pictures of a video, without its sound")
    moments = [await asyncio.to_thread(read, f"{path}#share={one}/{MOMENTS}") for one in range(1, MOMENTS + 1)]
    prompt = MOMENTS_OF.fill(count=MOMENTS, look=LOOK.fill(question=question))
    return await context.conversation(SEES, subtask).reply(user(prompt, *moments))


def _list_names(names: Sequence[str]) -> list[str]:
    """The names as lines, the first of them where there are many."""
    lines = [f"- {name}{_places(name)}" for name in names[:LISTED]]
    return [*lines, *([f"- and {len(names) - LISTED} more"] if len(names) > LISTED else [])]


def _places(name: str) -> str:
    """How a page of a document or a moment of a video is named."""
    from hira.tools.media import decodes, kind_of

    kind = kind_of(name)
    if kind.startswith("video/") and decodes():
        return VIDEO.fill(name=name)
    return PAGES.fill(name=name) if kind == "application/pdf" else ""
