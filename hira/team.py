"""A team casts roles with policies, gives out conversations, and keeps the record of a run."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from hira.budget import Budget, Wanted, size
from hira.dialects import NATIVE, Call, Dialect
from hira.errors import Interrupted, OutOfBudget, RoleSpent, Stop, Withheld
from hira.events import Events, Notice, SourceRead, TurnEnded, TurnStarted, TurnText
from hira.evidence import Source
from hira.journal import Log
from hira.messages import Message, assistant
from hira.policy import Choose, Completion, Delta, Policy, Request, Sampling, Usage
from hira.prices import NO_PRICES, Price, Prices
from hira.tokens import count
from hira.tools import Toolbox
from hira.trajectory import Rollout, Trajectory, Turn

if TYPE_CHECKING:
    from hira.policy import Watch

T = TypeVar("T")


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


LONGEST_QUOTE = 160
Continuation = Literal["turns", "chain"]


@dataclass(frozen=True, slots=True)
class Part:
    """How one role is cast: who speaks, how it samples, how it writes calls, how its reasoning goes on, what it costs.

    `turns` puts a tool's result into the next chat message and works everywhere; `chain` carries one reasoning chain
    on, as the HiRA paper does, and needs an endpoint that continues a message.
    """

    policy: Policy
    sampling: Sampling = Sampling()
    dialect: Dialect = NATIVE
    continuation: Continuation = "turns"
    prices: Prices = NO_PRICES

    @property
    def price(self) -> Price | None:
        """What it costs; of several models that may speak, the first whose price is known."""
        return self.prices.of(*self.policy.model.split(","))


@dataclass(slots=True)
class _Shared:
    """A call that several wait for; the last one to give up ends it."""

    result: asyncio.Future[Any] | None = None
    waiting: int = 0


@dataclass(slots=True)
class Team:
    """Everything one run works with. Made for each run; a workflow receives it.

    `cast` maps a role to its part; the entry `*` stands for every role that is not named. No tool is ever given an
    argument that holds one of the `secrets`. `called` counts the calls of tools.
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
    called: int = 0
    _bell: asyncio.Future[None] | None = None
    _reason: Stop | None = None
    _made: dict[str, _Shared] = field(default_factory=dict)
    _noted: set[str] = field(default_factory=set)

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
            if self._bell:
                self._bell.set_result(None)

    async def once(self, key: str, call: Callable[[], Awaitable[T]], good: Callable[[T], bool] = lambda _: True) -> T:
        """The result of the call; calls under one key are made once, also while the first is under way.

        What raises and what is not `good` is not kept, and an empty key keeps nothing.
        """
        if not key:
            return await call()
        made = self._made.setdefault(key, _Shared())
        if made.result is None:
            made.result = asyncio.ensure_future(call())
        made.waiting += 1
        kept = False
        try:
            result: T = await asyncio.shield(made.result)
            kept = good(result)
            return result
        finally:
            made.waiting -= 1
            if not kept and self._made.get(key) is made and (made.result.done() or not made.waiting):
                del self._made[key]
            if not made.result.done() and not made.waiting:
                made.result.cancel()
                await asyncio.wait((made.result,))

    @property
    def stopped(self) -> Stop | None:
        return self._reason

    async def unless_stopped(self, work: Awaitable[T]) -> T:
        """The result of the work; if the run is stopped first, the work is cancelled and the `Stop` raised."""
        task = asyncio.ensure_future(work)
        bell = self._rung()
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
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))

    def _rung(self) -> asyncio.Future[None]:
        """One future for all who wait: done when the run is stopped."""
        if self._bell is None:
            self._bell = asyncio.get_running_loop().create_future()
            if self._reason:
                self._bell.set_result(None)
        return self._bell

    def note(self, text: str) -> None:
        """Tell something that a person should know, once in a run."""
        if text not in self._noted:
            self._noted.add(text)
            self.events(Notice(text))


@dataclass(slots=True)
class Conversation:
    """The messages one role has exchanged, and the only way to its policy. Every turn is recorded.

    `unmade` are calls of stateful tools whose results came from the journal, by the tool's name. `closes` says whose
    answer is written by the last call, for which a reserve is kept: nobody's, the role's own, or the run's.
    """

    team: Team
    trajectory: Trajectory
    part: Part
    messages: list[Message] = field(default_factory=list)
    unmade: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    closes: Literal["", "role", "run"] = ""
    _sized: tuple[int, Message | None, int] = (0, None, 0)

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
        closing: bool = False,
        choose: Choose = "auto",
    ) -> Completion:
        """One policy call. `last` is the call that writes the answer: the reserve pays for it and no stop prevents it.
        `closing` is the call with which a role ends its part; it may use up the reserve of its role.

        The reply is recorded but not appended: what enters the conversation is for the dialect to say.
        """
        team, part = self.team, self.part
        if team.stopped and not last:
            raise team.stopped
        wanted = self._wanted(tools, last=last, closing=closing)
        with self._ending_the_run():
            room = team.budget.admit(wanted)
        request = Request(
            tuple(self.messages),
            part.sampling,
            stop,
            tools,
            schema,
            continues=bool(self.messages) and self.messages[-1].role == "assistant",
            conversation=self.name,
            choose=choose,
        )
        team.events(TurnStarted(self.name, self.trajectory.role))
        completion = await self._charged(self._asked(request, wanted, room), wanted)
        self.trajectory.turns.append(Turn(request, completion))
        team.events(TurnEnded(self.name, self.trajectory.role, completion.text, completion.usage))
        for note in completion.notes:
            team.note(note)
        if completion.finish == "filtered":
            raise self._withheld(completion)
        return completion

    def _withheld(self, completion: Completion) -> Withheld:
        """What a filter left of a reply, and a refusal, are no answer."""
        said = " ".join(completion.text.split())[:LONGEST_QUOTE]
        return Withheld(
            "the model refused, or a content filter kept its reply back" + (f": {said!r}" if said else ""),
            where=f"role {self.trajectory.role!r}, model {completion.model or self.part.policy.model!r}",
            fix="ask differently, or let another model speak for this role",
        )

    async def reply(self, *messages: Message, last: bool = False) -> str:
        """Say the messages, take one turn without tools, keep the reply, and return its text."""
        self.say(*messages)
        completion = await self.turn(last=last)
        self.say(assistant(completion.text))
        return completion.text

    def _wanted(self, tools: tuple[Mapping[str, Any], ...], *, last: bool, closing: bool) -> Wanted:
        role = self.trajectory.role
        prompt = self._size(tools) if self.team.budget.counts(role) else 0
        answers = self.closes == "run"
        return Wanted(role, prompt, self.part.price, answers, last, bool(self.closes), closing or last)

    def _size(self, tools: tuple[Mapping[str, Any], ...]) -> int:
        """About how many tokens the next prompt is. What is new is counted, on top of what is known of the rest."""
        counted, last, total = self._sized
        if not counted:
            total = count(str(tools)) if tools else 0
        elif (now := self.messages[counted - 1]) is not last and last is not None:
            total += count(now.text[len(last.text) :])  # it was carried on
        total += size(self.messages[counted:])
        self._sized = (len(self.messages), self.messages[-1] if self.messages else None, total)
        return total

    async def _charged(self, call: Awaitable[Completion], wanted: Wanted) -> Completion:
        """The call, with the budget charged for it. What the endpoint counted is a better size than our estimate."""
        usage = Usage()
        try:
            with self._ending_the_run():
                completion = await call
            usage = completion.usage
        finally:
            self.team.budget.charge(wanted, usage)
        if usage.prompt_tokens:
            self._sized = (*self._sized[:2], usage.prompt_tokens // max(1, usage.calls))
        return completion

    @contextmanager
    def _ending_the_run(self) -> Iterator[None]:
        """A budget that is used up ends the run, be it the run's own or that of the role that answers for it."""
        try:
            yield
        except OutOfBudget as spent:
            if self.closes == "run" or not isinstance(spent, RoleSpent):
                self.team.stop(spent)
            raise

    async def _asked(self, request: Request, wanted: Wanted, room: int | None) -> Completion:
        """What the policy says, or what the journal holds of it. `room` bounds the reply, but is no part of the record:
        what is left of a budget may be another when the run is resumed."""
        policy = self.part.policy
        bounded = request
        if room is not None:
            least = min(room, request.sampling.max_tokens or room)
            bounded = replace(request, sampling=replace(request.sampling, max_tokens=least))

        async def ask() -> Completion:
            began = time.monotonic()
            call = policy.complete(bounded, self._watch())
            if (seconds := self.team.budget.role_seconds(wanted.role, closing=wanted.closing)) is not None:
                call = self._in_roles_time(call, wanted.role, seconds)
            completion = await (self._in_time(call) if wanted.last else self.team.unless_stopped(call))
            return self._priced(completion, time.monotonic() - began)

        return await (self.team.log.policy(policy.model, request, ask) if self.team.log else ask())

    def _priced(self, completion: Completion, seconds: float) -> Completion:
        """With the seconds it took, and its cost where the policy does not know it and a price is known."""
        usage = replace(completion.usage, seconds=seconds)
        if usage.cost is None and (price := self.part.prices.of(completion.model) or self.part.price):
            usage = replace(usage, cost=price.of(usage))
        return replace(completion, usage=usage)

    async def _in_time(self, call: Awaitable[Completion]) -> Completion:
        """The call that writes the answer may use up the budget's seconds, and not one more."""
        try:
            async with asyncio.timeout(self.team.budget.remaining_seconds(last=True)):
                return await call
        except TimeoutError:
            raise OutOfBudget(f"the budget of {self.team.budget.seconds:g} seconds is used up") from None

    async def _in_roles_time(self, call: Awaitable[Completion], role: str, seconds: float) -> Completion:
        """A call may use up its role's seconds, and not one more."""
        try:
            async with asyncio.timeout(seconds):
                return await call
        except TimeoutError:
            raise RoleSpent(f"the seconds of role {role!r} are used up") from None

    def _watch(self) -> "Watch | None":
        if not self.team.stream:
            return None

        def watch(delta: Delta) -> None:
            self.team.events(TurnText(self.name, delta.text, delta.reasoning))

        return watch
