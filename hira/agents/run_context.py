"""The context of a run, which configures the roles and keeps the record, and the conversations of the roles, the only
way to their policies."""

import asyncio
import inspect
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from hira.agents.hooks import REPLIES, HookedTurn, change_prompt, change_reply, refuse_turn
from hira.agents.role import Continuation, RoleConfig
from hira.agents.trajectory import Finding, Rejected, Rollout, Subtask, Trajectory, Turn
from hira.core.budget import INTERRUPTED_SECONDS, Budget, CallNeed, Spending, size
from hira.core.concurrency import EndsEarly, SingleFlight, any_time, count_down
from hira.core.errors import (
    EndpointError,
    Interrupted,
    OutOfBudget,
    RoleBudgetExceeded,
    Stop,
    ToolsRefused,
    UsageError,
    Withheld,
)
from hira.core.events import Events, Notice, SourceRead, SubtaskDone, TurnEnded, TurnStarted, TurnText
from hira.core.hooks import NO_HOOKS, ApproveTool, Hooks, Refusal
from hira.core.messages import Filled, Message, assistant
from hira.core.policy import CallOptions, Completion, Delta, Request, Usage, Watch
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.core.tokens import clip, count
from hira.core.tool import Context
from hira.evidence import Source, Verifier
from hira.journal import CallSpec, Log
from hira.journal.log import UNBOUNDED, UNRECORDED, Within
from hira.policies.dialects import DIALECTS, FALLBACKS, Call, Explained, rewrite_messages
from hira.policies.dialects.quoted import IsQuoted, fold
from hira.policies.dialects.text_calls import HeldText, holds_more
from hira.policies.facts import DIALECT
from hira.tools import Tool, Toolbox

if TYPE_CHECKING:
    from hira.agents.history import Messages
    from hira.agents.output_type import OutputType

__all__ = ["Approve", "Continuation", "Conversation", "RoleConfig", "RunContext", "Verify"]

T = TypeVar("T")
INSTRUCTIONS = Prompt(__file__, "shared", "instructions")
AT_LEAST = 1.0
"""Seconds between two looks at a budget whose seconds a person holds up."""
UNINSTRUCTED = frozenset({"coordinator", "evidence", "look", "output", "reader", "state", "system1", "verifier"})
"""Roles that only read, choose or check for those that plan and answer."""
LONGEST_QUOTE = 160
_CUT_SHARE = 0.9
"""Of the seconds that the last call may take, after which its reply is taken as far as it has come."""
DEPARTED = (
    "the run differs from its record from here on, as it can when settings, prompts or documents have changed; "
    "calls that the record lacks are made again"
)


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
    output: "OutputType | None" = None
    instructions: str = ""
    hooks: Hooks = NO_HOOKS
    approve_tool: ApproveTool | None = None
    deps: Any = None
    exam: bool = True
    evidence: int = 0
    rewrite: bool = False
    earlier: "Messages" = ()
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

    def conversation(self, role: str, under: str = "", *, reply: int | None = None) -> "Conversation":
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


class _Reply(NamedTuple):
    """How one reply is asked for and received: the call of the policy, its time, what completes it, and the text that
    is held back from who watches."""

    ask: Callable[[], Awaitable[Completion]]
    within: EndsEarly
    finish: Callable[[Completion], Completion]
    held: HeldText | None


@dataclass(slots=True)
class Conversation:
    """The messages one role has exchanged, and the only way to its policy. Every turn is recorded.

    `tools` are offered to the role. `unmade` are calls of stateful tools whose results came from the journal, by the
    tool's name. `closes` says whose answer is written by the last call, for which a reserve is kept: nobody's, the
    role's own, or the run's. `callable` are the tools whose calls are kept back from who watches the text, unless they
    are quoted (`is_quoted`); `fell_back` says that the dialect is another than the conversation began in. `latest_call`
    is set when the tool call that began last has ended, `has_result` says that some call had a result.
    """

    context: RunContext
    trajectory: Trajectory
    config: RoleConfig
    messages: list[Message] = field(default_factory=list)
    tools: Sequence[Tool] = ()
    unmade: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    closes: Literal["", "role", "run"] = ""
    callable: tuple[Tool, ...] = ()
    is_quoted: IsQuoted | None = None
    fell_back: bool = False
    instructions: str = ""
    latest_call: asyncio.Event | None = None
    has_result: bool = False
    _sized: tuple[int, Message | None, int] = (0, None, 0)
    _streamed: list[str] = field(default_factory=list)
    _shown_notes: set[str] = field(default_factory=set)
    _counted: Counter[str] = field(default_factory=Counter)

    @property
    def name(self) -> str:
        return self.trajectory.conversation

    def explain(self, tools: Sequence[Tool]) -> Filled:
        """The part of a prompt that says how to call these tools."""
        return Explained.of(self.config.dialect, tools)

    def say(self, *messages: Message) -> None:
        """Add the messages. The first of the user's also tells the `instructions` of whoever runs hira."""
        if self.instructions and not any(message.role == "user" for message in self.messages):
            first = next((index for index, message in enumerate(messages) if message.role == "user"), None)
            if first is not None:
                extended = replace(messages[first], text=f"{messages[first].text}\n\n{self.instructions}")
                messages = (*messages[:first], extended, *messages[first + 1 :])
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

    def leave_out_latest(self, tokens: int) -> None:
        """Drop the role's latest turns, each with its results, until they amount to this many tokens. A chain, which is
        one message, loses its end."""
        while tokens > 0 and (
            turns := [index for index, message in enumerate(self.messages) if message.role == "assistant"]
        ):
            last, before = self.messages[turns[-1]], size(self.messages[turns[-1] :])
            del self.messages[turns[-1] :]
            if self.config.continuation == "chain" and before > tokens:
                self.say(replace(last, text=clip(last.text, before - tokens)))
            tokens -= before
        self._sized = (0, None, 0)

    def go_back(self, messages: Sequence[Message]) -> None:
        """Make these all that has been said."""
        self.messages[:] = messages
        self._sized = (0, None, 0)

    def switch_dialect(self, why: str = "") -> bool:
        """Switch to the next dialect, as if the conversation had begun in it. Return False if none is left. Without a
        `why`, the endpoint refused the calls of the tools."""
        if not self.config.otherwise:
            return False
        old, new = self.config.dialect, DIALECTS[self.config.otherwise]
        self.go_back(rewrite_messages(self.messages, self.tools, old, new, self.callable))
        self.config = replace(self.config, dialect=new, otherwise=FALLBACKS.get(new.name, ""))
        self.fell_back = True
        model = self.config.policy.model
        self.context.note(
            f"{model}: {why} in the dialect {old.name}; calls are written in the dialect {new.name}"
            if why
            else f"{model} takes no tool calls: they are written as text (dialect {new.name})"
        )
        return True

    def count_call(self, key: str) -> int:
        """How often this call has been asked for in this conversation, now included."""
        self._counted[key] += 1
        return self._counted[key]

    def keep_dialect(self) -> None:
        """A call was read: remember the dialect for this model, if the conversation fell back to it."""
        if self.fell_back:
            self.config.facts.keep(DIALECT, self.config.dialect.name)

    async def turn(
        self, *, several: int = 0, schema: Mapping[str, Any] | None = None, last: bool = False, closing: bool = False
    ) -> Completion:
        """One policy call. `last` is the call that writes the answer: the reserve pays for it and no stop prevents it.
        `closing` is the call with which a role ends its part; it may use up the reserve of its role. The role may call
        its tools in it `several` times, 0 for not at all; further calls in the reply are not read.

        The reply is recorded but not appended: what enters the conversation is for the dialect to say. If the endpoint
        refuses the tools, the turn is taken in the next dialect.
        """
        context = self.context
        if context.stopped and not last:
            raise context.stopped
        request, refusals = None, 0
        while True:
            if request is None:
                request = self._write_request(several, schema, closing=closing)
                if context.hooks.before_turn:
                    request = await change_prompt(self._hooked(last=last), request)
            need = self._describe_need(request, last=last, closing=closing)
            try:
                with self._spend(need) as spending, self._receive(request, spending, several) as reply:
                    context.events(TurnStarted(self.name, need.role, self.tokens(request.tools) if reply.held else 0))
                    recorder = context.log or UNRECORDED
                    completion = await recorder.policy(
                        self.config.policy.model, request, reply.ask, reply.within, reply.finish
                    )
                    spending.usage = completion.usage
            except ToolsRefused:
                if not ((several or closing) and self.switch_dialect()):
                    raise
                request = None
                continue
            self._keep_turn(request, completion)
            if not context.hooks.after_turn:
                return completion
            changed = await change_reply(self._hooked(last=last), request, completion)
            if isinstance(changed, Completion):
                return changed
            request, refusals = changed, refusals + 1
            if refusals == REPLIES:
                raise refuse_turn(self.trajectory.role)

    def _hooked(self, *, last: bool) -> HookedTurn:
        """The turn as its hooks see it."""
        context = self.context
        record = partial(context.call_recorded, within=self.within(last=last))
        return HookedTurn(context.hooks, self.trajectory.role, self.name, context.handed, record)

    def _write_request(self, several: int, schema: Mapping[str, Any] | None, *, closing: bool) -> Request:
        """The request for a turn. In a closing turn no tools may be called, and they are shown only if the history
        speaks of them."""
        dialect = self.config.dialect
        shown = bool(several) or (closing and len(self.messages) > 1)
        return Request(
            tuple(self.messages),
            self.config.sampling,
            dialect.stops(self.tools, several) if several else (),
            dialect.specs(self.tools) if shown else (),
            schema,
            continues=bool(self.messages) and self.messages[-1].role == "assistant",
            conversation=self.name,
            choose="none" if closing else "auto",
        )

    def _keep_turn(self, request: Request, completion: Completion) -> None:
        """Enter a turn into the record. Raises `Withheld` for a reply that is no answer."""
        context = self.context
        if context.log and context.log.departed:
            context.note(DEPARTED)
        if (usage := completion.usage).prompt_tokens:
            self._sized = (*self._sized[:2], usage.prompt_tokens // max(1, usage.calls))
        self.trajectory.turns.append(Turn(request, completion))
        context.note_reasoning(self.config, completion)
        context.events(TurnEnded(self.name, self.trajectory.role, completion.text, usage))
        for note in completion.notes:
            context.note(note, shown=note in self._shown_notes)
        if completion.finish == "filtered":
            raise self._withheld(completion)

    def _withheld(self, completion: Completion) -> Withheld:
        """The error for a refusal or a filtered reply, because neither is an answer."""
        quote = " ".join(completion.text.split())[:LONGEST_QUOTE]
        return Withheld(
            "the model refused, or a content filter kept its reply back" + (f": {quote!r}" if quote else ""),
            where=f"role {self.trajectory.role!r}, model {completion.model or self.config.policy.model!r}",
            fix="ask differently, or let another model speak for this role",
        )

    async def reply(self, *messages: Message, last: bool = False) -> str:
        """Say the messages, take one turn without tools, keep the reply, and return its text."""
        self.say(*messages)
        completion = await self.turn(last=last)
        self.say(assistant(completion.text))
        return completion.text

    def _describe_need(self, request: Request, *, last: bool, closing: bool) -> CallNeed:
        role, config = self.trajectory.role, self.config
        longest = self.context.longest_reply(config, record=request.schema is not None, closing=closing or last)
        prompt = self.tokens(request.tools) if self.context.budget.counts(role) else 0
        answers, closes = self.closes == "run", bool(self.closes)
        return CallNeed(role, prompt, config.price, answers, last, closes, closing or last, longest)

    def tokens(self, tools: tuple[Mapping[str, Any], ...]) -> int:
        """Estimate the tokens of the next prompt with these functions: count the new messages and add the known size of
        the others."""
        counted, last, total = self._sized
        if not counted:
            total = count(str(tools)) if tools else 0
        elif (now := self.messages[counted - 1]) is not last and last is not None:
            total += count(now.text[len(last.text) :])  # it was carried on
        total += size(self.messages[counted:])
        self._sized = (len(self.messages), self.messages[-1] if self.messages else None, total)
        return total

    @contextmanager
    def _spend(self, need: CallNeed) -> Iterator[Spending]:
        """Charge a call: with the endpoint's own count, or with our estimate if the reply broke off. A budget that is
        used up ends the run, be it the run's own or that of the role that answers for it."""
        self._streamed.clear()
        try:
            with self.context.budget.spend(need) as spending:
                try:
                    yield spending
                except EndpointError as error:
                    spending.usage = self._count_lost(Usage(1, error.prompt_tokens, error.completion_tokens))
                    raise
                except (Stop, asyncio.CancelledError):
                    streamed = count("".join(self._streamed))
                    spending.usage = self._count_lost(Usage(1, size(self.messages), streamed))
                    raise
        except OutOfBudget as spent:
            if self.closes == "run" or not isinstance(spent, RoleBudgetExceeded):
                self.context.stop(spent)
            raise

    @contextmanager
    def _receive(self, request: Request, spending: Spending, several: int) -> Iterator["_Reply"]:
        """Prepare how the reply to a request is asked for and received. Its bounds are not recorded, because a resumed
        run may have others. Only a reply that the policy was asked for now is paid for."""
        need, budget, config = spending.need, self.context.budget, self.config
        role_seconds = budget.role_seconds(need.role, closing=need.closing)
        within = self.within(last=need.last, role_seconds=role_seconds)
        held = HeldText(self._show, self.callable, self.is_quoted) if self.context.stream else None
        limit = self._closing_seconds() if need.last else None
        again = None
        if config.replies and not request.sampling.max_tokens:
            again = min(config.replies.again, spending.room or config.replies.again)
        call = CallOptions(
            held and self._watch(held),
            self._tell,
            min(
                (left for left in (role_seconds, budget.remaining_seconds(last=need.last)) if left is not None),
                default=None,
            ),
            budget.count_remaining(need),
            again,
            None if limit is None else _CUT_SHARE * limit,
            partial(holds_more, tools=self.callable, several=several, is_quoted=self.is_quoted)
            if several and self.callable
            else None,
            run=self.context.rollout.run,
        )
        if spending.longest is not None:
            request = replace(request, sampling=replace(request.sampling, max_tokens=spending.longest))
        try:
            yield _Reply(
                partial(config.policy.complete, request, call), within, partial(self._finish, within, held), held
            )
        finally:
            spending.paid = within.began is not None

    def _finish(self, within: EndsEarly, held: HeldText | None, completion: Completion) -> Completion:
        """Complete a new reply with the seconds it took, and with its cost if the policy does not know it and a price
        is known."""
        if held:
            held.end()
        if not isinstance(completion, Completion):
            what = f"policy {self.config.policy.model!r} must return a Completion, got {completion!r}"
            raise UsageError(what, fix="return hira.core.policy.Completion(text): docs/policies.md")
        usage = completion.usage
        known = usage.cost is not None
        price = None if known else self.config.prices.of(completion.model) or self.config.price
        seconds = asyncio.get_running_loop().time() - (within.began or 0.0)
        cost = price.of(usage) if price else usage.cost
        return replace(completion, usage=replace(usage, seconds=seconds, cost=cost))

    def _count_lost(self, usage: Usage) -> Usage:
        """Enter what a reply has cost that nobody got, because it broke off or the run had to end."""
        if not usage.completion_tokens:
            return Usage()
        if price := self.config.price:
            usage = replace(usage, cost=price.of(usage))
        self.trajectory.lost += usage
        return usage

    def _closing_seconds(self) -> float | None:
        """Seconds that the call that writes the answer may take, None for any number."""
        left = self.context.budget.remaining_seconds(last=True)
        if not isinstance(self.context.stopped, Interrupted):
            return left
        return INTERRUPTED_SECONDS if left is None else min(left, INTERRUPTED_SECONDS)

    def within(self, *, last: bool, role_seconds: float | None = None) -> EndsEarly:
        """A block for what belongs to a turn: it ends with the run, and the call that writes the answer with the
        budget's seconds; a call of a role also when the `role_seconds` are used up."""
        block = self.context.until_stopped()
        if last:
            seconds = self._closing_seconds()
            block = EndsEarly(count_down(seconds), partial(self._describe_late, seconds))
        left = block.seconds()
        if role_seconds is not None and (left is None or role_seconds < left):
            late = RoleBudgetExceeded(f"the seconds of role {self.trajectory.role!r} are used up")
            block.seconds, block.late = count_down(role_seconds), lambda: late
        return block

    def _describe_late(self, seconds: float | None) -> Stop:
        if isinstance(self.context.stopped, Interrupted):
            return Interrupted(f"interrupted; there was no answer within {seconds:.3g} seconds")
        return OutOfBudget(f"the budget of {self.context.budget.seconds:g} seconds is used up")

    def _tell(self, text: str) -> None:
        """Tell at once what a reply may bring as a note later."""
        if not self.context.has_noted(text):
            self._shown_notes.add(text)
            self.context.events(Notice(f"{self.trajectory.role}: {text}"))

    def _watch(self, held: HeldText) -> Watch:
        def watch(delta: Delta) -> None:
            self._streamed.append(delta.text)
            held(delta)

        return watch

    def _show(self, delta: Delta) -> None:
        self.context.events(TurnText(self.name, delta.text, delta.reasoning, self.trajectory.role))
