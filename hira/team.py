"""A team casts roles with policies, gives out conversations, and keeps the record of a run."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from hira.budget import Budget
from hira.dialects import NATIVE, Call, Dialect
from hira.errors import Interrupted, OutOfBudget, Stop
from hira.events import Events, SourceRead, TurnEnded, TurnStarted, TurnText
from hira.evidence import Source
from hira.journal import Log
from hira.messages import Message, assistant
from hira.policy import Completion, Delta, Policy, Request, Sampling
from hira.tools import Toolbox
from hira.trajectory import Rollout, Trajectory, Turn

if TYPE_CHECKING:
    from hira.policy import Watch

T = TypeVar("T")
Continuation = Literal["turns", "chain"]


@dataclass(frozen=True, slots=True)
class Part:
    """How one role is cast: who speaks, how it samples, how it writes calls, and how its reasoning goes on.

    `turns` puts a tool's result into the next chat message and works everywhere; `chain` carries one reasoning chain
    on, as the HiRA paper does, and needs an endpoint that continues a message.
    """

    policy: Policy
    sampling: Sampling = Sampling()
    dialect: Dialect = NATIVE
    continuation: Continuation = "turns"


@dataclass(slots=True)
class _Shared:
    """A call that several wait for; the last one to give up ends it."""

    result: asyncio.Future[Any]
    waiting: int = 0


@dataclass(slots=True)
class Team:
    """Everything one run works with. Made for each run; a workflow receives it.

    `cast` maps a role to its part; the entry `*` stands for every role that is not named. No tool is ever given an
    argument that holds one of the `secrets`.
    """

    cast: Mapping[str, Part]
    rollout: Rollout = field(default_factory=lambda: Rollout("", "", ""))
    events: Events = field(default_factory=Events)
    budget: Budget = field(default_factory=Budget)
    tools: Toolbox = field(default_factory=Toolbox)
    files: tuple[Path, ...] = ()
    stream: bool = False
    secrets: frozenset[str] = frozenset()
    log: Log | None = None
    _stopped: asyncio.Event = field(default_factory=asyncio.Event)
    _reason: Stop | None = None
    _made: dict[str, _Shared] = field(default_factory=dict)

    def part(self, role: str) -> Part:
        return self.cast.get(role) or self.cast["*"]

    def conversation(self, role: str, under: str = "") -> "Conversation":
        """A new, empty conversation of the role; `under` names the subtask it serves, so that names never race."""
        stem = name = f"{under}/{role}" if under else role
        again = 1
        while name in self.rollout.trajectories:
            again += 1
            name = f"{stem}.{again}"
        trajectory = self.rollout.trajectories[name] = Trajectory(name, role)
        return Conversation(self, trajectory, self.part(role))

    def read(self, source: Source) -> Source:
        """Enter a source into the run's record and return it with its id."""
        before = len(self.rollout.sources)
        source = self.rollout.sources.add(source)
        if self.log:
            self.log.read(source.location, source.id)
        if len(self.rollout.sources) > before:
            self.events(SourceRead(source.id, source.kind, source.title, source.location))
        return source

    def stop(self, why: Stop | None = None) -> None:
        """End the run soon: calls in flight are dropped and the planner answers from what is known."""
        if self._reason is None:
            self._reason = why or Interrupted("interrupted; answering from what is known")
            self._stopped.set()

    async def once(self, key: str, call: Callable[[], Awaitable[T]]) -> T:
        """The result of the call; calls under one key are made once, also while the first is under way.

        Failures are not kept, and an empty key keeps nothing.
        """
        if not key:
            return await call()
        if key not in self._made:
            made = self._made[key] = _Shared(asyncio.ensure_future(call()))
            made.result.add_done_callback(lambda done: self._forget(key, done))
        made = self._made[key]
        made.waiting += 1
        try:
            result: T = await asyncio.shield(made.result)
            return result
        finally:
            made.waiting -= 1
            if not made.waiting and not made.result.done():
                made.result.cancel()

    def _forget(self, key: str, done: asyncio.Future[Any]) -> None:
        if done.cancelled() or done.exception():
            self._made.pop(key, None)

    @property
    def stopped(self) -> Stop | None:
        return self._reason

    async def unless_stopped(self, work: Awaitable[T]) -> T:
        """The result of the work; if the run is stopped first, the work is cancelled and the `Stop` raised."""
        task = asyncio.ensure_future(work)
        bell = asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait(
                (task, bell), timeout=self.budget.remaining_seconds(), return_when=asyncio.FIRST_COMPLETED
            )
            if task.done():
                return task.result()
            if self._reason is None:
                self.stop(OutOfBudget(f"the budget of {self.budget.seconds:g} seconds is used up"))
            assert self._reason is not None  # noqa: S101 - stop() has set it
            raise self._reason
        finally:
            bell.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))


@dataclass(slots=True)
class Conversation:
    """The messages one role has exchanged, and the only way to its policy. Every turn is recorded.

    `unmade` are calls of stateful tools whose results came from the journal, by the tool's name.
    """

    team: Team
    trajectory: Trajectory
    part: Part
    messages: list[Message] = field(default_factory=list)
    unmade: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.trajectory.conversation

    def say(self, *messages: Message) -> None:
        self.messages += messages

    def carry_on(self, text: str, results: Sequence[tuple[Call, str]] = ()) -> None:
        """Lengthen the assistant's last message, which the next turn continues (`chain`).

        The message remembers the `results` that were written into it, as a message of results does.
        """
        if not self.messages or self.messages[-1].role != "assistant":
            self.say(assistant(""))
        last = self.messages[-1]
        known = {"results": [*last.values.get("results", ()), *results]}
        self.messages[-1] = replace(last, text=last.text + text, prompt="result", values=known)

    async def turn(
        self,
        *,
        stop: tuple[str, ...] = (),
        tools: tuple[Mapping[str, Any], ...] = (),
        schema: Mapping[str, Any] | None = None,
        last: bool = False,
    ) -> Completion:
        """One policy call. `last` is the call that writes the answer: the reserve pays for it and no stop prevents it.

        The reply is recorded but not appended: what enters the conversation is for the dialect to say.
        """
        team, part = self.team, self.part
        if team.stopped and not last:
            raise team.stopped
        try:
            team.budget.admit(last=last)
        except OutOfBudget as spent:
            team.stop(spent)
            raise
        request = Request(
            tuple(self.messages),
            part.sampling,
            stop,
            tools,
            schema,
            continues=bool(self.messages) and self.messages[-1].role == "assistant",
            conversation=self.name,
        )
        team.events(TurnStarted(self.name, self.trajectory.role))
        completion = await self._asked(request, last=last)
        team.budget.charge(completion.usage)
        self.trajectory.turns.append(Turn(request, completion))
        team.events(TurnEnded(self.name, self.trajectory.role, completion.text, completion.usage))
        return completion

    async def reply(self, *messages: Message, last: bool = False) -> str:
        """Say the messages, take one turn without tools, keep the reply, and return its text."""
        self.say(*messages)
        completion = await self.turn(last=last)
        self.say(assistant(completion.text))
        return completion.text

    async def _asked(self, request: Request, *, last: bool) -> Completion:
        """What the policy says, or what the journal holds of it."""
        policy = self.part.policy

        async def ask() -> Completion:
            began = time.monotonic()
            call = policy.complete(request, self._watch())
            completion = await (self._in_time(call) if last else self.team.unless_stopped(call))
            return replace(completion, usage=replace(completion.usage, seconds=time.monotonic() - began))

        return await (self.team.log.policy(policy.model, request, ask) if self.team.log else ask())

    async def _in_time(self, call: Awaitable[Completion]) -> Completion:
        """The call that writes the answer may use up the budget's seconds, and not one more."""
        try:
            async with asyncio.timeout(self.team.budget.remaining_seconds(last=True)):
                return await call
        except TimeoutError:
            raise OutOfBudget(f"the budget of {self.team.budget.seconds:g} seconds is used up") from None

    def _watch(self) -> "Watch | None":
        if not self.team.stream:
            return None

        def watch(delta: Delta) -> None:
            self.team.events(TurnText(self.name, delta.text, delta.reasoning))

        return watch
