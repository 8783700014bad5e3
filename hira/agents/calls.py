"""A role's calls of tools: made or brought back from the journal, and shown with the ids of what was read."""

import asyncio
import json
import logging
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from hira.agents.run_context import Conversation, RunContext, together
from hira.agents.trajectory import Trajectory, Turn
from hira.core.errors import HiraError, Stop, ToolDown, ToolError
from hira.core.events import Notice, ToolEnded, ToolStarted
from hira.core.messages import Filled
from hira.core.policy import Request
from hira.core.prompts import Prompt
from hira.core.redaction import redact
from hira.core.tokens import clip
from hira.core.tool import LEFT_OUT, read_result
from hira.evidence import Source, inert
from hira.journal import Asked, Log
from hira.journal.encoding import digest_of_tool
from hira.tools import Observation, Passage, Tool
from hira.tools.addresses import on

log = logging.getLogger("hira.agents")
log.addHandler(logging.NullHandler())  # else a program that configures no logging has them on its terminal


def log_fault(what: str, name: str, error: BaseException, secrets: frozenset[str]) -> None:
    """Log the fault of what has this name. Its traceback goes as text without secrets, of which the error may hold."""
    if log.isEnabledFor(logging.ERROR):
        record = log.makeRecord(log.name, logging.ERROR, __file__, 0, f"a fault in the {what} %r", (name,), None)
        record.exc_text = redact("".join(traceback.format_exception(error)).rstrip(), secrets)
        log.handle(record)


@contextmanager
def told_to(tell: Callable[[str], None]) -> Iterator[None]:
    """Tell whoever is at the terminal of the faults, each with its traceback, as long as the context lasts."""
    handler = _Telling(tell)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


class _Telling(logging.Handler):
    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(self.format(record))


_FAULT = 500
"""Tokens of a fault's text that are told: it may hold all that a service answered."""


async def call_recorded(conversation: Conversation, tool: Tool, arguments: Mapping[str, Any]) -> Observation:
    """What the call brings, or what the journal holds of it. A failure that the model is told of is an observation."""
    log, context = conversation.context.log, conversation.context
    if log is None:
        return await _made(tool, arguments, context)
    live, reads = False, tool is context.tools.files  # also what programs wrote, and so not always the same

    async def make() -> Observation:
        nonlocal live
        live = True
        if tool.stateful or tool.speaks or reads:
            await write_again(conversation.context)
        for earlier in conversation.unmade.pop(tool.name, ()):
            await _made(tool, earlier, context)
        return await _made(tool, arguments, context)

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
        conversation.context.events(Notice(told))
    if tool.speaks and not live:
        _bring_back(conversation, tool.speaks, log)
    if tool.stateful and not live:
        conversation.unmade.setdefault(tool.name, []).append(arguments)
    return observation


async def write_again(context: RunContext) -> None:
    """Run the programs of earlier subtasks again, unseen, because what is to come may open the files they wrote."""
    for subtask, unmade in tuple(context.unmade.items()):
        await context.once(f"programs of subtask {subtask}", partial(_run_again, context, subtask, unmade))


async def _run_again(context: RunContext, subtask: str, unmade: Sequence[Mapping[str, Any]]) -> None:
    if context.tools.python:
        async with context.tools.python(subtask) as python:
            for arguments in unmade:
                await _made(python, arguments, context)


def _bring_back(conversation: Conversation, role: str, log: Log) -> None:
    """Enter into a replayed rollout what the role said on behalf of this conversation: nobody asks for it there."""
    under, trajectories = conversation.name.rpartition("/")[0], conversation.context.rollout.trajectories
    for name in log.conversations():
        above, _, own = name.rpartition("/")
        if above == under and own.partition(".")[0] == role and name not in trajectories:
            turns = [Turn(Request((), conversation=name), one) for one in log.read_conversation(name)]
            trajectories[name] = Trajectory(name, role, turns)


async def _made(tool: Tool, arguments: Mapping[str, Any], context: RunContext) -> Observation:
    try:
        observation = await tool.call(arguments)
    except ToolError as error:
        observation = Observation(f"{tool.name} failed: {error}", ok=False)
        if isinstance(error, ToolDown):  # else the answer would look as if it knew all
            why = "; ".join(str(error).rstrip(".").splitlines())
            context.note(redact(f"{tool.name} is down: {why}", context.secrets), important=True)
    except (HiraError, AssertionError):  # the run's own, and checks that failed
        raise
    except Exception as error:  # noqa: BLE001 - a fault in somebody's tool must not lose the run: it is told
        log_fault("tool", tool.name, error, context.secrets)
        why = clip(f"a fault in the tool, {type(error).__name__}: {error}".rstrip(": "), _FAULT)
        observation = Observation(f"{tool.name} failed: {why}", ok=False)
        context.note(redact(f"{tool.name} failed: {why}", context.secrets), important=True)
    if observation.citable and observation.ok:
        observation = read_result(f"tool:{tool.name}", tool.name, arguments, observation.text)
    passages = tuple(_masked(passage, context.secrets) for passage in observation.passages)
    return replace(observation, text=redact(observation.text, context.secrets), passages=passages)


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
    context = conversation.context
    context.called += 1
    number = context.called
    told = redact(arguments, context.secrets)
    context.events(ToolStarted(conversation.name, tool.name, told, number))
    began = time.monotonic()
    try:
        _check_unmasked(arguments, told)
        _check_open(arguments, tool)
        key = f"{tool.name} {format_arguments(arguments)}" if tool.pure else ""
        call = context.once(key, lambda: call_recorded(conversation, tool, arguments), _went_well)
        observation = _unblocked(await context.unless_stopped(call), tool)
        if after:
            await after.wait()
        seen = Seen(observation, _shown(observation, conversation), observation.ok)
    except (ToolError, Stop) as error:
        seen = Seen(Observation(), inert(f"{tool.name} failed: {error}"), ok=False)
    took = round(time.monotonic() - began, 3)
    context.events(ToolEnded(conversation.name, tool.name, seen.ok, seen.text, took, number))
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
        source = conversation.context.read(passage.source)
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
