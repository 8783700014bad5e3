"""System 2 of MARS: reasons with deliberation, and asks tools for what it needs, each time for a purpose (eq. 1)."""

from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from hira.agents.loop import Loop, Step
from hira.agents.packing import beginning
from hira.agents.run_context import RunContext, format_files
from hira.agents.trajectory import Finding, Subtask
from hira.core.errors import ToolError, UsageError
from hira.core.messages import user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.core.tokens import clip, count
from hira.policies.dialects import Call
from hira.policies.dialects.answer import find_boxed, find_final_answer, find_section
from hira.tools import WHERE_TO_SEARCH, Observation, Tool, tool

SYSTEM2 = Prompt(__file__, "mars_system2")
GO_ON = Prompt(__file__, "mars_remarks", "mars_go_on")
REQUEST = Prompt(__file__, "mars_request")
RESERVED = 10
"""The answer's part of the tokens that System 2 may write: one of ten."""
QUOTED = 200
"""Tokens of sources outside searches that are kept for a run that ends early."""


@dataclass(frozen=True, slots=True)
class ReadingRequest:
    """What System 2 wants read: queries of one search tool, and the purpose that they serve (t and p, eq. 1)."""

    queries: tuple[str, ...]
    purpose: str


@asynccontextmanager
async def tools_of(context: RunContext, most: int, without: Collection[str] = ()) -> AsyncIterator[list[Tool]]:
    """The tools of System 2: the searches, each with up to `most` queries and a purpose, then those whose results go
    straight back, but for those `without` which it has to do. Python keeps its variables for the whole run. Raises
    `UsageError` if there is no tool at all."""
    box = context.tools
    async with AsyncExitStack() as stack:
        searches = [search for search in (box.search, box.scholar) if search and search.name not in without]
        tools = [requesting(search, most) for search in searches]
        tools += [box.files] if box.files else []
        tools += [await stack.enter_async_context(box.python("mars"))] if box.python and "python" not in without else []
        tools += box.extra_for("system2")
        if not tools:
            raise UsageError("the workflow 'mars' needs a tool, but this run has none", fix=WHERE_TO_SEARCH)
        yield tools


def requesting(search: Tool, most: int) -> Tool:
    """A search tool as System 2 calls it. The call is carried out by the workflow."""
    from pydantic import BeforeValidator, Field

    async def ask(
        queries: Annotated[
            list[str],
            BeforeValidator(_split_queries),
            Field(min_length=1, max_length=most, description=f"what to look for, at most {most} queries"),
        ],
        purpose: Annotated[str, Field(min_length=1, description="what you need to learn from it, and what for")],
    ) -> Observation:
        raise ToolError(f"{queries} for {purpose!r} must be answered by the workflow")

    made: Tool = tool(ask, name=search.name, pure=True)
    return replace(made, description=REQUEST.fill(where=search.description.partition(".")[0], most=most))


def begin(question: str, context: RunContext, tools: list[Tool], turns: int, longest: int | None = None) -> Loop:
    """Begin the loop of System 2 with the question: the context c₀, of at most `longest` tokens."""
    conversation = context.conversation("system2")
    loop = Loop(conversation, tools, limit=turns, final=True, task=question)
    prompt = partial(
        SYSTEM2.fill,
        today=context.rollout.today,
        tools=conversation.explain(tools),
        limit=turns,
        files=format_files(context.files),
    )
    text = prompt(question=sanitize(question))
    room = count(question)
    while longest and (excess := count(text) - longest) > 0:
        room -= excess
        if room < 1:
            what = f"`mars.system2_prompt` leaves no room for the question: {longest} tokens"
            raise UsageError(what, fix="give more, or leave it out")
        text = prompt(question=sanitize(clip(question, room, middle=True)))
    if room < count(question):
        context.note(f"the question is cut to {room} tokens, so that System 2's prompt has at most {longest}")
    conversation.say(user(text))
    return loop


async def think(loop: Loop, written: int | None = None) -> Step:
    """Return a request or the answer (eq. 1), with at most `written` tokens of System 2 in all its turns."""
    if written is None:
        return await _think(loop)
    conversation = loop.conversation
    left = written - sum(turn.completion.usage.completion_tokens for turn in conversation.trajectory.turns)
    reserve = written // RESERVED
    closes = left <= reserve
    config = conversation.config
    longest = max(1, left if closes else left - reserve)
    longest = min(longest, config.replies.tokens) if config.replies else longest
    conversation.config = replace(config, sampling=replace(config.sampling, max_tokens=longest))
    return await loop.close(f"your replies have {written} tokens in all") if closes else await _think(loop)


async def _think(loop: Loop) -> Step:
    """A turn, and the next one after mere reasoning: a turn with neither a call nor an answer in its tags, which counts
    (Algorithm 1, lines 13 to 17). The text after it is the answer, with or without tags."""
    step = await loop.think()
    if step.calls or step.forced or find_boxed(step.text) or find_section(step.text, "answer"):
        return step
    loop.calls.used += 1
    loop.conversation.say(user(GO_ON.fill()))
    return await loop.think()


def answer(step: Step) -> str:
    """What System 2 closes with, by its tags (appendix C.3), where there are any."""
    return find_final_answer(find_section(step.text, "answer") or step.text)


async def perform_call(call: Call, loop: Loop) -> str:
    """Perform a call whose result goes straight back, such as Python's. Its sources become a finding of the run."""
    context = loop.conversation.context
    before = set(context.rollout.sources.read)
    result = await loop.perform(call)
    read = [source for source in context.rollout.sources.read.values() if source.id not in before]
    if read:
        quotes = [f"“{beginning(source.evidence.strip(), QUOTED)}” [{source.id}]" for source in read]
        subtask = Subtask(str(loop.calls.used), " ".join(map(str, call.arguments.values())))
        context.rollout.findings.append(Finding(subtask, call.name, "", "\n".join(quotes)))
    return result


def _split_queries(value: Any) -> Any:
    """Queries as they are often written: one as a plain text, several as its lines, with empty ones between."""
    lines = value.splitlines() if isinstance(value, str) else value
    if not isinstance(lines, list):
        return value
    return [" ".join(line.split()) if isinstance(line, str) else line for line in lines if line not in ("", None)]
