"""A tool's call and the journal: what is recorded is not called again, and what state needs is called again unseen."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from hira.errors import ToolError
from hira.events import Notice
from hira.evidence import Source
from hira.journal import Asked
from hira.journal.digest import digest_of_tool
from hira.team import Conversation
from hira.tools import Observation, Passage, Tool


async def recorded(conversation: Conversation, tool: Tool, arguments: Mapping[str, Any]) -> Observation:
    """What the call brings, or what the journal holds of it. A failure that the model is told of is an observation."""
    log = conversation.team.log
    if log is None:
        return await _made(tool, arguments)
    live = False

    async def make() -> Observation:
        nonlocal live
        live = True
        for earlier in conversation.unmade.pop(tool.name, ()):
            await _made(tool, earlier)
        return await _made(tool, arguments)

    asked = Asked(
        "tool",
        "*" if tool.pure else conversation.name,
        digest_of_tool(tool.name, arguments),
        tool.name,
        lambda: dict(arguments),
        effect=not (tool.pure or tool.stateful),
        anywhere=tool.pure,
    )
    started = len(log.unfinished)
    observation = await log.call(asked, make, asdict, _observation)
    if len(log.unfinished) > started:
        told = f"{tool.name} had been started when the run broke off, and was made again; it may have happened twice"
        conversation.team.events(Notice(told))
    if tool.stateful and not live:
        conversation.unmade.setdefault(tool.name, []).append(arguments)
    return observation


async def _made(tool: Tool, arguments: Mapping[str, Any]) -> Observation:
    try:
        return await tool.call(arguments)
    except ToolError as error:
        return Observation(f"{tool.name} failed: {error}", ok=False)


def _observation(record: Mapping[str, Any]) -> Observation:
    passages = (Passage(Source(**one["source"]), one["text"]) for one in record["passages"])
    return Observation(record["text"], tuple(passages), record["ok"])
