"""A role's tool calls: performed or restored from the journal, and shown with the ids of their sources."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from hira.agents.run_context import Conversation, RunContext
from hira.agents.trajectory import Trajectory, Turn
from hira.core.concurrency import contain
from hira.core.errors import Stop, ToolError
from hira.core.events import Notice, ToolEnded, ToolStarted
from hira.core.hooks import ToolUse
from hira.core.messages import Filled
from hira.core.policy import Request, fields_of
from hira.core.prompts import Prompt
from hira.core.tool import LEFT_OUT, read_result
from hira.evidence import Source, inert
from hira.journal import OWN, CallSpec, Log
from hira.journal.encoding import digest_of_tool, validate
from hira.tools import Observation, Tool


@dataclass(slots=True)
class _CallInProgress:
    conversation: Conversation
    tool: Tool
    written: Mapping[str, Any]
    """The arguments that the model wrote."""
    arguments: Mapping[str, Any]
    """The actual arguments, which a hook or a person may have changed."""
    number: int
    """The position of the call among those of the run."""
    nth: int
    """Its position among the same calls of its conversation."""
    live: bool = False
    """The result does not come from the journal."""
    refused: bool = False
    """The call is not performed."""

    @property
    def context(self) -> RunContext:
        return self.conversation.context

    @property
    def is_own(self) -> bool:
        """A hook or a person decides about the call, so that no result of another run replaces it."""
        return self.context.options.hooks.sees_tools or self.tool.needs_approval

    async def get_result(self) -> Observation:
        """Perform the call, or restore its result from the journal. A failure that the model may read becomes an
        observation. The record is found by the arguments that the model wrote, and has those of the actual call."""
        context, tool, log = self.context, self.tool, self.context.log
        reads = tool is context.tools.files  # also what programs wrote, and so not always the same
        shared = _is_shared(tool, context)
        spec = CallSpec(
            "tool",
            "*" if shared else self.conversation.name,
            digest_of_tool(tool.name, self.written),
            tool.name,
            lambda: dict(self.written),
            effect=tool.has_effects and not reads,
            shared=shared,
            rerun=bool(tool.speaks),
            never_reused=self.is_own,
            change=self._change,
        )
        started = len(log.unfinished)
        observation = await log.call(spec, self._make_live, self._dump, self._load, prepare=self._prepare)
        if len(log.unfinished) > started and not self.refused:
            text = f"{tool.name} had started when the run stopped, and was called again; it may have run twice"
            context.events(Notice(text))
        if tool.speaks and not self.live:
            _bring_back(self.conversation, tool.speaks, log)
        if tool.stateful and not (self.live or self.refused):
            self.conversation.calls.unmade.setdefault(tool.name, []).append(self.arguments)
        return observation

    async def _prepare(self) -> Observation | None:
        """Ask the hook `before_tool`, then the person who approves. Return the result of a refused call, else None."""
        context, tool = self.context, self.tool
        if not (context.options.hooks.before_tool or tool.needs_approval):
            return None
        from hira.agents.hooks import check_call  # few calls are looked at

        decided = await check_call(context.options.hooks, tool, self._describe())
        if tool.needs_approval and isinstance(decided, ToolUse):
            from hira.agents.approved import ask_about_call  # few tools need it

            decided = await ask_about_call(tool, decided, self.conversation, self.nth)
        if isinstance(decided, Observation):
            self.live = self.refused = True
            return replace(decided, text=context.redact(decided.text))
        if decided.arguments != self.arguments:
            _check_unmasked(decided.arguments, context.redact(decided.arguments))
            _check_open(decided.arguments, tool)
            self.arguments = decided.arguments
        return None

    def _describe(self) -> ToolUse:
        """The call as hooks and people see it, with a copy of the arguments: changes in place are noticed, so that they
        are checked and recorded like returned ones."""
        role, arguments = self.conversation.trajectory.role, deepcopy(dict(self.arguments))
        return ToolUse(self.tool.name, arguments, role, f"call-{self.number}", self.context.handed)

    async def _make_live(self) -> Observation:
        """Perform the call, after what earlier calls in the record have left out."""
        self.live = True
        if self.tool.stateful or self.tool.speaks or self.tool is self.context.tools.files:
            # what is to come may open the files that the programs of earlier subtasks wrote
            for subtask, unmade in tuple(self.context.state.unmade.items()):
                await self.context.once(
                    f"programs of subtask {subtask}", partial(_run_again, self.context, subtask, unmade)
                )
        for earlier in self.conversation.calls.unmade.pop(self.tool.name, ()):
            await _call_tool(self.tool, earlier, self.context)
        return await _call_tool(self.tool, self.arguments, self.context)

    async def _change(self, observation: Observation) -> Observation:
        """Return a result as the hook `after_tool` leaves it, as a source that can be cited, without secrets."""
        if self.context.options.hooks.after_tool:
            from hira.agents.hooks import change_result  # few runs have hooks

            observation = await change_result(self.context.options.hooks, self.tool, self._describe(), observation)
        if observation.citable and observation.ok:
            observation = read_result(f"tool:{self.tool.name}", self.tool.name, self.arguments, observation.text)
        return _mask(observation, self.context)

    def _dump(self, observation: Observation) -> dict[str, Any]:
        record = fields_of(_mask(observation, self.context))
        if self.is_own:
            record[OWN] = True
        if self.arguments is not self.written:
            record["arguments"] = dict(self.arguments)
        if self.refused:
            record["refused"] = True
        return record

    def _load(self, record: Mapping[str, Any]) -> Observation:
        self.arguments = validate(dict[str, Any], record["arguments"]) if "arguments" in record else self.written
        self.refused = "refused" in record
        observation: Observation = validate(Observation, record)
        return observation


async def _run_again(context: RunContext, subtask: str, unmade: Sequence[Mapping[str, Any]]) -> None:
    if context.tools.python:
        async with context.tools.python(subtask) as python:
            for arguments in unmade:
                await _call_tool(python, arguments, context)


def _bring_back(conversation: Conversation, role: str, log: Log) -> None:
    """Enter into a replayed rollout what the role said on behalf of this conversation: nobody asks for it there."""
    under, trajectories = conversation.name.rpartition("/")[0], conversation.context.rollout.trajectories
    for name in log.conversations():
        above, _, agent = name.rpartition("/")
        if above == under and agent.partition(".")[0] == role and name not in trajectories:
            turns = [Turn(Request((), conversation=name), completion) for completion in log.read_conversation(name)]
            trajectories[name] = Trajectory(name, role, turns)


async def _call_tool(tool: Tool, arguments: Mapping[str, Any], context: RunContext) -> Observation:
    try:
        with contain("it"):
            return await tool.call(arguments)
    except Exception as error:  # noqa: BLE001 - a fault in somebody's tool must not lose the run: the model reads it
        from hira.agents.faults import explain_failure

        why = explain_failure(tool.name, error, partial(context.note, important=True), context.redact)
        return Observation(f"{tool.name} failed: {why}", ok=False)


def _mask(observation: Observation, context: RunContext) -> Observation:
    if not context.events.secrets:
        return observation
    masked = observation.change_texts(context.redact)
    places = [context.redact(passage.source.location) for passage in masked.passages]
    passages = tuple(
        replace(passage, source=replace(passage.source, location=place))
        for passage, place in zip(masked.passages, places, strict=True)
    )
    return replace(masked, passages=passages)


Perform = Callable[[Mapping[str, Any]], Awaitable[Observation]]
"""Makes a call with these arguments."""
PASSAGE = Prompt(__file__, "shared", "passage")
SEARCHES = frozenset({"search", "scholar", "google_search"})
"""The names of the tools that search: without a hit, a call of theirs has no result."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a call: the tool's observation, and its `text` as the model reads it."""

    observation: Observation
    text: Filled
    ok: bool = True


async def use(conversation: Conversation, tool: Tool, arguments: Mapping[str, Any]) -> CallResult:
    """Call a tool for a role. Passages enter the run's sources and are shown with their ids. Of the calls that a
    conversation makes concurrently, the one that began first gets its ids first.

    A tool that cannot do it says so in the text, for the model to read; nothing is raised.
    """
    context = conversation.context
    context.state.called += 1
    number = context.state.called
    masked = context.redact(arguments)
    context.events(ToolStarted(conversation.name, tool.name, masked, number))
    began = time.monotonic()
    earlier, ended = conversation.calls.latest, asyncio.Event()
    conversation.calls.latest = ended
    context.state.calling[number] = tool.name
    try:
        _check_unmasked(arguments, masked)
        _check_open(arguments, tool)
        shared = _is_shared(tool, context)
        spelled = f"{tool.name} {format_arguments(arguments)}"

        async def get_result() -> Observation:
            conversation.calls.counted[spelled] += 1
            nth = conversation.calls.counted[spelled]

            async def perform(values: Mapping[str, Any]) -> Observation:
                return await _CallInProgress(conversation, tool, values, values, number, nth).get_result()

            is_search = tool is context.tools.search
            return await (_search(conversation, arguments, perform) if is_search else perform(arguments))

        async with context.stopping.bound():
            observation = await context.once(spelled if shared else "", get_result, lambda observation: observation.ok)
        observation = _drop_blocked(observation, tool)
        took = time.monotonic() - began
        conversation.calls.has_result |= observation.ok and bool(observation.passages or tool.name not in SEARCHES)
        if earlier:
            await earlier.wait()
        seen = CallResult(observation, _format_observation(observation, conversation), observation.ok)
    except (ToolError, Stop) as error:
        seen = CallResult(Observation(), inert(f"{tool.name} failed: {error}"), ok=False)
        took = time.monotonic() - began
    finally:
        ended.set()
        del context.state.calling[number]
    context.events(ToolEnded(conversation.name, tool.name, seen.ok, seen.text, round(took, 3), number))
    return seen


def _is_shared(tool: Tool, context: RunContext) -> bool:
    """Return whether a result counts for all roles, unless a hook sees the calls of each."""
    return tool.pure and not context.options.hooks.sees_tools


async def _search(conversation: Conversation, arguments: Mapping[str, Any], perform: Perform) -> Observation:
    """Search as the run wants it: also with other queries, and with a model that reads what was found."""
    context = conversation.context
    if context.options.rewrite:
        from hira.agents.queries import search_rewritten  # few runs have it

        observation = await search_rewritten(conversation, arguments, perform)
    else:
        observation = await perform(arguments)
    if not (context.options.evidence and observation.passages):
        return observation
    from hira.agents.evidence_step import choose_evidence  # few runs have it

    return await choose_evidence(context, str(arguments["query"]), observation)


def _check_unmasked(arguments: Mapping[str, Any], masked: Mapping[str, Any]) -> None:
    """Keys and passwords of this machine leave it in no argument, however a page talked the model into it."""
    if masked != arguments:
        raise ToolError("an argument contains a secret of this machine, so the call was not made; remove it")


def _check_open(value: Any, tool: Tool) -> None:
    """Refuse to open an address on a blocked host, at any depth of the arguments."""
    if not tool.blocked:
        return
    from hira.tools.addresses import is_on_host

    if isinstance(value, str) and is_on_host(value.strip(), tool.blocked):
        raise ToolError(f"{value} is blocked in this run; continue without it")
    if isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            _check_open(part, tool)


def _drop_blocked(observation: Observation, tool: Tool) -> Observation:
    """Remove the passages from blocked hosts, be it from a search, a redirect or an earlier run."""
    if not tool.blocked:
        return observation
    from hira.tools.addresses import is_on_host

    passages = tuple(
        passage for passage in observation.passages if not is_on_host(passage.source.location, tool.blocked)
    )
    return replace(observation, passages=passages)


def _format_observation(observation: Observation, conversation: Conversation) -> Filled:
    """Format the tool's text and its passages, grouped by source."""
    shown = [inert(observation.text)] if observation.text else []
    parts: dict[str, tuple[Source, list[str]]] = {}
    for passage in observation.passages:
        source = conversation.context.read(passage.source)
        parts.setdefault(source.id, (source, []))[1].append(passage.text)
    shown += [frame_source(source, LEFT_OUT.join(dict.fromkeys(texts))) for source, texts in parts.values()]
    return Filled("\n\n".join(shown) or "Nothing was found.")


def frame_source(source: Source, text: str) -> Filled:
    """Format the text of a source for the model: between marks, with its id and its location."""
    title, location = (" ".join(inert(words).split()) for words in (source.title, source.location))
    return PASSAGE.fill(id=source.id, title=title, location=location, text=inert(text))


def format_arguments(arguments: Mapping[str, object]) -> str:
    """Arguments in one line: two calls of a tool are the same if they are spelled alike."""
    if len(arguments) == 1:
        (value,) = arguments.values()
        if isinstance(value, str):
            return " ".join(value.split())
    return json.dumps(dict(arguments), ensure_ascii=False, sort_keys=True, default=str)
