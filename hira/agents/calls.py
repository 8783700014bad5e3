"""A role's calls of tools: made or brought back from the journal, and shown with the ids of what was read."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hira.agents.recorded import call_recorded
from hira.agents.run_context import Conversation, together
from hira.core.errors import Stop, ToolError
from hira.core.events import ToolEnded, ToolStarted
from hira.core.messages import Filled
from hira.core.prompts import Prompt
from hira.core.redaction import redact
from hira.core.tool import LEFT_OUT
from hira.evidence import Source, inert
from hira.tools import Observation, Tool
from hira.tools.addresses import on

PASSAGE = Prompt(__file__, "passage")


@dataclass(frozen=True, slots=True)
class Seen:
    """What a call brought: the tool's observation, and its `text` as the model reads it."""

    observation: Observation
    text: Filled
    ok: bool = True


async def use_all(conversation: Conversation, calls: Sequence[tuple[Tool, Mapping[str, Any]]]) -> list[Seen]:
    """Call tools side by side. What they read gets its ids in the order of the calls, whichever is done first."""
    ends = [asyncio.Event() for _ in calls]

    async def one(at: int) -> Seen:
        try:
            return await use(conversation, *calls[at], after=ends[at - 1] if at else None)
        finally:
            ends[at].set()

    return await together([one(at) for at in range(len(calls))])


async def use(
    conversation: Conversation, tool: Tool, arguments: Mapping[str, Any], *, after: asyncio.Event | None = None
) -> Seen:
    """Call a tool for a role. Passages enter the run's sources and are shown with their ids, `after` those of an
    earlier call.

    A tool that cannot do it says so in the text, for the model to read; nothing is raised.
    """
    team = conversation.team
    team.called += 1
    number = team.called
    told = redact(arguments, team.secrets)
    team.events(ToolStarted(conversation.name, tool.name, told, number))
    began = time.monotonic()
    try:
        _check_unmasked(arguments, told)
        _check_open(arguments, tool)
        key = f"{tool.name} {format_arguments(arguments)}" if tool.pure else ""
        call = team.once(key, lambda: call_recorded(conversation, tool, arguments), _went_well)
        observation = _unblocked(await team.unless_stopped(call), tool)
        if after:
            await after.wait()
        seen = Seen(observation, _shown(observation, conversation), observation.ok)
    except (ToolError, Stop) as error:
        seen = Seen(Observation(), inert(f"{tool.name} failed: {error}"), ok=False)
    took = round(time.monotonic() - began, 3)
    team.events(ToolEnded(conversation.name, tool.name, seen.ok, seen.text, took, number))
    return seen


def _went_well(observation: Observation) -> bool:
    return observation.ok


def _check_unmasked(arguments: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    """Keys and passwords of this machine leave it in no argument, however a page talked the model into it."""
    if told != arguments:
        raise ToolError("an argument contains a secret of this machine, so the call was not made; remove it")


def _check_open(arguments: Mapping[str, Any], tool: Tool) -> None:
    """What is on a blocked host is not opened."""
    for value in arguments.values():
        if isinstance(value, str) and on(value, tool.blocked):
            raise ToolError(f"{value} is blocked in this run; continue without it")


def _unblocked(observation: Observation, tool: Tool) -> Observation:
    """What was seen without what is on a blocked host, wherever it came from: a search, a redirect, an earlier run."""
    if not tool.blocked:
        return observation
    passages = tuple(one for one in observation.passages if not on(one.source.location, tool.blocked))
    return replace(observation, passages=passages)


def _shown(observation: Observation, conversation: Conversation) -> Filled:
    """What a tool told, and its passages, those of one source together."""
    shown = [inert(observation.text)] if observation.text else []
    parts: dict[str, tuple[Source, list[str]]] = {}
    for passage in observation.passages:
        source = conversation.team.read(passage.source)
        parts.setdefault(source.id, (source, []))[1].append(passage.text)
    shown += [frame_source(source, LEFT_OUT.join(dict.fromkeys(texts))) for source, texts in parts.values()]
    return Filled("\n\n".join(shown) or "Nothing was found.")


def frame_source(source: Source, text: str) -> Filled:
    """What was read of a source that has its id, as a model is shown it: with where it comes from, between marks."""
    title, location = (" ".join(inert(told).split()) for told in (source.title, source.location))
    return PASSAGE.fill(id=source.id, title=title, location=location, text=inert(text))


def format_arguments(arguments: Mapping[str, object]) -> str:
    """Arguments in one line: two calls of a tool are the same if they are spelled alike."""
    if len(arguments) == 1:
        (value,) = arguments.values()
        if isinstance(value, str):
            return " ".join(value.split())
    return json.dumps(dict(arguments), ensure_ascii=False, sort_keys=True, default=str)
