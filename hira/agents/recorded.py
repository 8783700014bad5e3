"""A tool's call and the journal: what is recorded is not called again, and what state needs is called again unseen.

What a tool brings passes here before anything else sees it, so that keys and passwords of this machine end here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from hira.agents import faults
from hira.agents.run_context import Conversation, RunContext
from hira.agents.trajectory import Trajectory, Turn
from hira.core.errors import HiraError, ToolDown, ToolError
from hira.core.events import Notice
from hira.core.policy import Request
from hira.core.redaction import redact
from hira.core.tokens import clip
from hira.core.tool import read_result
from hira.evidence import Source
from hira.journal import Asked, Log
from hira.journal.digest import digest_of_tool
from hira.tools import Observation, Passage, Tool

_FAULT = 500
"""Tokens of a fault's text that are told: it may hold all that a service answered."""


async def call_recorded(conversation: Conversation, tool: Tool, arguments: Mapping[str, Any]) -> Observation:
    """What the call brings, or what the journal holds of it. A failure that the model is told of is an observation."""
    log, team = conversation.team.log, conversation.team
    if log is None:
        return await _made(tool, arguments, team)
    live, reads = False, tool is team.tools.files  # also what programs wrote, and so not always the same

    async def make() -> Observation:
        nonlocal live
        live = True
        if tool.stateful or tool.speaks or reads:
            await write_again(conversation.team)
        for earlier in conversation.unmade.pop(tool.name, ()):
            await _made(tool, earlier, team)
        return await _made(tool, arguments, team)

    asked = Asked(
        "tool",
        "*" if tool.pure else conversation.name,
        digest_of_tool(tool.name, arguments),
        tool.name,
        lambda: dict(arguments),
        effect=not (tool.pure or tool.stateful or tool.speaks or reads),
        anywhere=tool.pure,
        again=bool(tool.speaks),
    )
    started = len(log.unfinished)
    observation = await log.call(asked, make, _record, _observation)
    if len(log.unfinished) > started:
        told = f"{tool.name} had started when the run stopped, and was called again; it may have run twice"
        conversation.team.events(Notice(told))
    if tool.speaks and not live:
        _bring_back(conversation, tool.speaks, log)
    if tool.stateful and not live:
        conversation.unmade.setdefault(tool.name, []).append(arguments)
    return observation


async def write_again(team: RunContext) -> None:
    """Run the programs of earlier subtasks again, unseen, because what is to come may open the files they wrote."""
    for subtask, unmade in tuple(team.unmade.items()):
        await team.once(f"programs of subtask {subtask}", partial(_run_again, team, subtask, unmade))


async def _run_again(team: RunContext, subtask: str, unmade: Sequence[Mapping[str, Any]]) -> None:
    if team.tools.python:
        async with team.tools.python(subtask) as python:
            for arguments in unmade:
                await _made(python, arguments, team)


def _bring_back(conversation: Conversation, role: str, log: Log) -> None:
    """Enter into a replayed rollout what the role said on behalf of this conversation: nobody asks for it there."""
    under, trajectories = conversation.name.rpartition("/")[0], conversation.team.rollout.trajectories
    for name in log.conversations():
        above, _, own = name.rpartition("/")
        if above == under and own.partition(".")[0] == role and name not in trajectories:
            turns = [Turn(Request((), conversation=name), one) for one in log.read_conversation(name)]
            trajectories[name] = Trajectory(name, role, turns)


async def _made(tool: Tool, arguments: Mapping[str, Any], team: RunContext) -> Observation:
    try:
        observation = await tool.call(arguments)
    except ToolError as error:
        observation = Observation(f"{tool.name} failed: {error}", ok=False)
        if isinstance(error, ToolDown):  # else the answer would look as if it knew all
            why = "; ".join(str(error).rstrip(".").splitlines())
            team.note(redact(f"{tool.name} is down: {why}", team.secrets), important=True)
    except (HiraError, AssertionError):  # the run's own, and checks that failed
        raise
    except Exception as error:  # noqa: BLE001 - a fault in somebody's tool must not lose the run: it is told
        faults.log_fault("tool", tool.name, error, team.secrets)
        why = clip(f"a fault in the tool, {type(error).__name__}: {error}".rstrip(": "), _FAULT)
        observation = Observation(f"{tool.name} failed: {why}", ok=False)
        team.note(redact(f"{tool.name} failed: {why}", team.secrets), important=True)
    if observation.citable and observation.ok:
        observation = read_result(f"tool:{tool.name}", tool.name, arguments, observation.text)
    passages = tuple(_masked(passage, team.secrets) for passage in observation.passages)
    return replace(observation, text=redact(observation.text, team.secrets), passages=passages)


def _masked(passage: Passage, secrets: frozenset[str]) -> Passage:
    told = {name: redact(getattr(passage.source, name), secrets) for name in ("location", "title", "text")}
    return Passage(replace(passage.source, **told), redact(passage.text, secrets))


def _record(observation: Observation) -> dict[str, Any]:
    passages = [
        {"source": {name: getattr(one.source, name) for name in one.source.__dataclass_fields__}, "text": one.text}
        for one in observation.passages
    ]
    return {"text": observation.text, "passages": passages, "ok": observation.ok}


def _observation(record: Mapping[str, Any]) -> Observation:
    passages = (Passage(Source(**one["source"]), one["text"]) for one in record["passages"])
    return Observation(record["text"], tuple(passages), record["ok"])
