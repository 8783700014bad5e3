"""A run context configures the roles, gives out conversations, and keeps the record of a run."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from hira.agents.conversation import Conversation
from hira.agents.history import Messages
from hira.agents.output_type import OutputType
from hira.agents.role import Continuation, RoleConfig
from hira.agents.trajectory import Finding, Rejected, Rollout, Subtask, Trajectory
from hira.core.budget import Budget
from hira.core.concurrency import EndsEarly, SingleFlight, any_time
from hira.core.errors import Interrupted, OutOfBudget, Stop
from hira.core.events import Events, Notice, SourceRead, SubtaskDone
from hira.core.hooks import NO_HOOKS, ApproveTool, Hooks, Refusal
from hira.core.policy import Completion
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.core.tool import Context
from hira.evidence import Source, Verifier
from hira.journal import CallSpec, Log
from hira.journal.log import UNBOUNDED, Within
from hira.policies.dialects.quoted import fold
from hira.tools import Tool, Toolbox

__all__ = ["Approve", "Continuation", "Conversation", "RoleConfig", "RunContext", "Verify", "together"]

T = TypeVar("T")
INSTRUCTIONS = Prompt(__file__, "shared", "instructions")
AT_LEAST = 1.0
"""Seconds between two looks at a budget whose seconds a person holds up."""
UNINSTRUCTED = frozenset({"coordinator", "evidence", "look", "output", "reader", "state", "system1", "verifier"})
"""Roles that only read, choose or check for those that plan and answer."""


async def together(works: Sequence[Awaitable[T]]) -> list[T]:
    """The results of all works, made side by side, in their order. When one raises, the others are ended first."""
    if len(works) == 1:
        return [await works[0]]
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


Verify = Literal["lexical", "model", "off"]
Decisions = Sequence[Subtask | Rejected | Refusal]
Approve = Callable[[list[Subtask]], Decisions | Awaitable[Decisions]]
"""Asks a person about subtasks that are to be handed out. One decision for each, in their order: the subtask as it is,
with another text, or a refusal."""


@dataclass(slots=True)
class RunContext:
    """Everything that one run works with. Each run has a new one, and its workflow receives it.

    `roles` maps roles to their configurations; the entry `*` is for all other roles. No tool ever gets an argument that
    contains one of the `secrets`. `called` counts tool calls, `offered` are the tools that some role was offered, by
    name, whose calls are no part of the answer, and `silent` counts consecutive empty replies. `unmade` are, by
    subtask, the Python calls whose results came from the journal: their files do not exist. `approve` decides about
    every subtask before it is handed out, None approves all. `verify` says how the answer is checked, unless a
    `verifier` of the program does it. `output` is the type of the answer's value, `instructions` are additional ones
    for the roles that plan and answer. `hooks` see tool calls and turns, `approve_tool` decides about calls of tools
    that need approval, `deps` belong to the program. Without an `exam` the verdicts of a verifying model count as
    they are. With `evidence`, a model scores and condenses what searches find; with `rewrite`, it adds queries to each.
    `earlier` are the messages that a follow-up question continues. `once` keeps results of calls by key.
    """

    roles: Mapping[str, RoleConfig]
    rollout: Rollout = field(default_factory=lambda: Rollout("", "", ""))
    events: Events = field(default_factory=Events)
    budget: Budget = field(default_factory=Budget)
    tools: Toolbox = field(default_factory=Toolbox)
    files: tuple[Path, ...] = ()
    stream: bool = False
    secrets: frozenset[str] = frozenset()
    log: Log | None = None
    called: int = 0
    offered: dict[str, Tool] = field(default_factory=dict)
    silent: int = 0
    unmade: dict[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    approve: Approve | None = None
    verify: Verify = "lexical"
    verifier: Verifier | None = None
    output: OutputType | None = None
    instructions: str = ""
    hooks: Hooks = NO_HOOKS
    approve_tool: ApproveTool | None = None
    deps: Any = None
    exam: bool = True
    evidence: int = 0
    rewrite: bool = False
    earlier: Messages = ()
    once: SingleFlight = field(default_factory=SingleFlight)
    _blocks: set[EndsEarly] = field(default_factory=set)
    _reason: Stop | None = None
    _noted: set[str] = field(default_factory=set)
    _thinking: set[str] = field(default_factory=set)
    _folded: dict[str, tuple[str, str]] = field(default_factory=dict)
    _person: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def handed(self) -> Context[Any]:
        """The context that the program's own tools and hooks get."""
        return Context(self.deps, self.rollout.run, self.rollout.question)

    def config_of(self, role: str) -> RoleConfig:
        return self.roles.get(role) or self.roles["*"]

    def conversation(self, role: str, under: str = "", *, reply: int | None = None) -> Conversation:
        """Open a new, empty conversation of the role; `under` names its subtask, so that names never race. A `reply`
        has at most this many tokens; None leaves the length to the role's configuration."""
        stem = name = f"{under}/{role}" if under else role
        again = 1
        while name in self.rollout.trajectories:
            again += 1
            name = f"{stem}.{again}"
        trajectory = self.rollout.trajectories[name] = Trajectory(name, role)
        config = self.config_of(role)
        if reply is not None:
            reply = min(reply, config.replies.tokens) if config.replies else reply
            config = replace(config, sampling=replace(config.sampling, max_tokens=reply))
        text = INSTRUCTIONS.fill(instructions=sanitize(self.instructions)) if self.instructions else ""
        return Conversation(self, trajectory, config, instructions="" if role in UNINSTRUCTED else text)

    def read(self, source: Source) -> Source:
        """Enter a source into the run's record and return it with its id."""
        before = len(self.rollout.sources)
        source = self.rollout.sources.add(source)
        if self.log:
            self.log.read(source.location, source.id)
        if len(self.rollout.sources) > before:
            self.events(SourceRead(source.id, source.kind, source.title, source.location))
        return source

    def fold(self, name: str, text: str) -> str:
        """Fold a text that was read, once for all roles; a source under its name may have grown."""
        known = self._folded.get(name)
        if known is None or known[0] != text:
            known = self._folded[name] = (text, fold(text))
        return known[1]

    def announce(self, finding: Finding) -> Finding:
        """Say that a subtask is done."""
        self.events(SubtaskDone(finding.subtask.id, finding.expert, finding.conclusion, finding.ok))
        return finding

    def stop(self, why: Stop | None = None) -> None:
        """End the run soon: calls in flight are dropped and the planner answers from the results so far."""
        if self._reason is None:
            self._reason = why or Interrupted("interrupted; answering from the results so far")
            for block in tuple(self._blocks):
                block.end(self._reason)

    async def call_recorded(
        self,
        spec: CallSpec,
        make: Callable[[], Awaitable[T]],
        encode: Callable[[T], Any],
        decode: Callable[[Any], T],
        within: Within = UNBOUNDED,
    ) -> T:
        """Return what `make` returns, or what it returned in the record of this run. It is awaited `within`."""
        if self.log:
            return await self.log.call(spec, make, encode, decode, within)
        async with within:
            return await make()

    @property
    def stopped(self) -> Stop | None:
        return self._reason

    async def for_a_person(self, work: Callable[[], T | Awaitable[T]]) -> T:
        """Return the result of work that a person does, one after another, unless the run is stopped; the time they
        take counts in no budget. The function may be sync or async."""
        async with self._person:
            began = self.budget.paused = time.monotonic()
            try:
                async with self.until_stopped(timed=False):
                    made = work()
                    return await made if inspect.isawaitable(made) else made
            finally:
                self.budget.began += time.monotonic() - began
                self.budget.paused = None

    def until_stopped(self, *, timed: bool = True) -> EndsEarly:
        """A block that ends when the run is stopped, or when `timed` work uses up the budget's seconds: it raises the
        `Stop`."""
        seconds = self._find_seconds if timed and self.budget.seconds is not None else any_time
        return EndsEarly(seconds, self._run_out_of_time, self._reason, blocks=self._blocks)

    def _find_seconds(self) -> float | None:
        """Seconds that are left; while a person is asked, at least those until the next look."""
        left = self.budget.remaining_seconds()
        return left if left is None or self.budget.paused is None else max(left, AT_LEAST)

    def _run_out_of_time(self) -> Stop:
        self.stop(OutOfBudget(f"the budget of {self.budget.seconds:g} seconds is used up"))
        assert self._reason is not None  # noqa: S101 - stop() has set it
        return self._reason

    def longest_reply(self, config: RoleConfig, *, record: bool, closing: bool) -> int | None:
        """How many tokens the reply of a role may have, None for any number.

        What a model thinks is part of its reply, so that the turns of one that thinks have no shorter bounds.
        """
        if config.sampling.max_tokens or config.replies is None:
            return config.sampling.max_tokens
        stopped = isinstance(self._reason, Interrupted)
        if config.policy.model in self._thinking:
            return config.replies.for_turn(interrupted=stopped)
        return config.replies.for_turn(record=record, closing=closing, interrupted=stopped)

    def note_reasoning(self, config: RoleConfig, completion: Completion) -> None:
        """Remember what the reply shows of the model."""
        if completion.reasoning:
            self._thinking.add(config.policy.model)

    def note(self, text: str, *, important: bool = False, shown: bool = False) -> None:
        """Tell something that a person should know, once in a run; what was `shown` already is only remembered."""
        if text not in self._noted:
            self._noted.add(text)
            if not shown:
                self.events(Notice(text, important=important))

    def has_noted(self, text: str) -> bool:
        return text in self._noted
