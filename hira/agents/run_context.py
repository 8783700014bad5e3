"""The context of a run, which configures roles and keeps the record, and their conversations with their policies."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hira.agents.receiver import ReadableCalls, Receiver
from hira.agents.role import Approve, Continuation, RoleConfig, RunOptions, Verify
from hira.agents.stopping import Stopping
from hira.agents.trajectory import Finding, Rollout, Trajectory, Turn
from hira.core.budget import CLOSING, INTERRUPTED_TOKENS, RECORD, Budget, CallNeed, Spending, size
from hira.core.concurrency import SingleFlight
from hira.core.errors import EndpointError, Interrupted, OutOfBudget, RoleBudgetExceeded, Stop, ToolsRefused, Withheld
from hira.core.events import Events, Notice, SourceRead, SubtaskDone, TurnEnded, TurnStarted
from hira.core.messages import Filled, Message, assistant
from hira.core.policy import VERIFIER, CallOptions, Completion, Request, Usage
from hira.core.prompts import Prompt
from hira.core.sanitize import redact, sanitize
from hira.core.tokens import count
from hira.core.tool import Context
from hira.evidence import Source
from hira.journal import Log
from hira.policies.dialects import DIALECTS, FALLBACKS, Call, Explained
from hira.policies.dialects.protocol import write_examples
from hira.policies.dialects.text_calls import HeldText, holds_more
from hira.tools import Tool, Toolbox

if TYPE_CHECKING:
    from hira.agents.history import Messages
    from hira.agents.hooks import HookedTurn

__all__ = ["Approve", "Continuation", "Conversation", "RoleConfig", "RunContext", "RunOptions", "Verify"]

INSTRUCTIONS = Prompt(__file__, "shared", "instructions")
ATTACHED = Prompt(__file__, "shared", "attached")
UNINSTRUCTED = frozenset({"coordinator", "evidence", "look", "output", "reader", "state", "system1", "verifier"})
"""Roles that only read, choose or check for those that plan and answer."""
LONGEST_QUOTE = 160
_CUT_SHARE = 0.9
"""Of the seconds that the last call may take, after which its reply is taken as far as it has come."""
DEPARTED = (
    "the run differs from its record from here on, as it can when settings, prompts or documents have changed; "
    "calls that the record lacks are made again"
)


@dataclass(slots=True)
class RunState:
    """Counters and marks that all roles of a run share; the record does not contain them."""

    called: int = 0
    """The number of tool calls."""
    calling: dict[int, str] = field(default_factory=dict)
    """The names of the tools whose calls are in progress, by the number of the call."""
    silent: int = 0
    """The number of empty replies in a row."""
    offered: dict[str, Tool] = field(default_factory=dict)
    """The tools that some role was offered, by name: their calls are no part of the answer."""
    unmade: dict[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """By subtask, the Python calls whose results came from the journal: their files do not exist."""
    noted: set[str] = field(default_factory=set)
    """The notices that were shown: each is shown once."""
    thinking: set[str] = field(default_factory=set)
    """The models that have shown reasoning."""
    _folded: dict[str, str] = field(default_factory=dict)

    def fold(self, text: str) -> str:
        """Fold a text that was read, once for all roles."""
        if text not in self._folded:
            from hira.policies.dialects.folding import fold

            self._folded[text] = fold(text)
        return self._folded[text]


@dataclass(slots=True)
class RunContext:
    """Everything that one run works with. Each run has a new one, and its workflow receives it."""

    roles: Mapping[str, RoleConfig]
    """The configuration of each role; the entry `*` is for all other roles."""
    rollout: Rollout = field(default_factory=lambda: Rollout("", "", ""))
    """The record of the run."""
    events: Events = field(default_factory=Events)
    budget: Budget = field(default_factory=Budget)
    tools: Toolbox = field(default_factory=Toolbox)
    files: tuple[Path, ...] = ()
    """The files that the question is about."""
    log: Log = field(default_factory=Log)
    """The record in the journal; by default, one that is not kept."""
    options: RunOptions = field(default_factory=RunOptions)
    """The settings that stay the same to the end of the run."""
    earlier: "Messages" = ()
    """The messages that a follow-up question continues."""
    once: SingleFlight = field(default_factory=SingleFlight)
    """Keeps results of calls by key."""
    state: RunState = field(default_factory=RunState)
    stopping: Stopping = field(init=False)

    def __post_init__(self) -> None:
        self.stopping = Stopping(self.budget)

    @property
    def deps(self) -> Any:
        """The program's own object."""
        return self.options.deps

    @property
    def handed(self) -> Context[Any]:
        """The context that the program's own tools and hooks get."""
        return Context(self.deps, self.rollout.run, self.rollout.question)

    def config_of(self, role: str) -> RoleConfig:
        return self.roles.get(role) or self.roles["*"]

    def conversation(
        self, role: str, under: str = "", *, reply: int | None = None, temperature: float | None = None
    ) -> "Conversation":
        """Open a new, empty conversation of the role; `under` names its subtask, so that names never race. A `reply`
        has at most this many tokens; None leaves this, and the `temperature`, to the role's configuration."""
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
        if temperature is not None:
            config = replace(config, sampling=replace(config.sampling, temperature=temperature))
        text = INSTRUCTIONS.fill(instructions=sanitize(self.options.instructions)) if self.options.instructions else ""
        return Conversation(self, trajectory, config, instructions="" if role in UNINSTRUCTED else text)

    def read(self, source: Source) -> Source:
        """Enter a source into the run's record and return it with its id."""
        before = len(self.rollout.sources)
        source = self.rollout.sources.add(source)
        self.log.read(source.location, source.id)
        if len(self.rollout.sources) > before:
            self.events(SourceRead(source.id, source.kind, source.title, source.location))
        return source

    def announce(self, finding: Finding) -> Finding:
        """Say that a subtask is done."""
        self.events(SubtaskDone(finding.subtask.id, finding.expert, finding.conclusion, finding.ok))
        return finding

    @property
    def stopped(self) -> Stop | None:
        """Why the run stops, None while it continues."""
        return self.stopping.reason

    def stop(self, why: Stop | None = None) -> None:
        """End the run soon: calls in flight are dropped and the planner answers from the results so far."""
        self.stopping.stop(why or Interrupted("interrupted; answering from the results so far"))

    def redact(self, value: Any) -> Any:
        """Mask the run's secrets in the texts of a JSON value."""
        return redact(value, self.events.secrets)

    def note(self, text: str, *, important: bool = False, shown: bool = False) -> None:
        """Tell something that a person should know, once in a run; what was `shown` already is only remembered."""
        if text not in self.state.noted:
            self.state.noted.add(text)
            if not shown:
                self.events(Notice(text, important=important))


@dataclass(slots=True)
class CallState:
    """The tool calls of a conversation, as far as its next ones depend on them."""

    unmade: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    """Calls of stateful tools whose results came from the journal, by the tool's name."""
    latest: asyncio.Event | None = None
    """Set when the call that began last has ended."""
    has_result: bool = False
    """Some call had a result."""
    counted: Counter[str] = field(default_factory=Counter)
    """How often each call was asked for."""


@dataclass(slots=True, weakref_slot=True)
class Conversation:
    """The messages one role has exchanged, and the only way to its policy. Every turn is recorded."""

    context: RunContext
    trajectory: Trajectory
    config: RoleConfig
    messages: list[Message] = field(default_factory=list)
    tools: Sequence[Tool] = ()
    """The tools that the role is offered."""
    readable: ReadableCalls = field(default_factory=ReadableCalls)
    """Its calls are read in the replies."""
    closes: Literal["", "role", "run"] = ""
    """Whose answer the last call writes, for which a reserve is kept: nobody's, the role's own, or the run's."""
    instructions: str = ""
    """Of whoever runs hira; they follow the first message of the user's."""
    calls: CallState = field(default_factory=CallState)
    _sized: tuple[int, Message | None, int] = (0, None, 0)
    """The number of messages whose tokens are counted, the last of them, and the sum."""

    @property
    def name(self) -> str:
        return self.trajectory.conversation

    def explain(self, tools: Sequence[Tool], *, brief: bool = False) -> Filled:
        """The part of a prompt that says how to call these tools, if `brief` only by examples."""
        dialect = self.config.dialect
        explained = Explained(write_examples(dialect, tools) if brief else dialect.instructions(tools))
        explained.dialect, explained.tools = dialect, tuple(tools)
        return explained

    def say(self, *messages: Message) -> None:
        """Add the messages. The first user message also holds the `instructions` of the person who runs hira."""
        if self.instructions and not any(message.role == "user" for message in self.messages):
            first = next((index for index, message in enumerate(messages) if message.role == "user"), None)
            if first is not None:
                extended = replace(messages[first], text=f"{messages[first].text}\n\n{self.instructions}")
                messages = (*messages[:first], extended, *messages[first + 1 :])
        self.messages += messages

    def carry_on(self, text: str, results: Sequence[tuple[Call, str]] = ()) -> None:
        """Lengthen the assistant's last message, which the next turn continues (`chain`). The message remembers the
        `results` that were written into it, as a message of results does."""
        if not self.messages or self.messages[-1].role != "assistant":
            self.say(assistant(""))
        last = self.messages[-1]
        known = {"results": [*last.values.get("results", ()), *results]}
        self.messages[-1] = replace(last, text=last.text + text, prompt="result", values=known)

    def go_back(self, messages: Sequence[Message]) -> None:
        """Make these all that has been said."""
        self.messages[:] = messages
        self._sized = (0, None, 0)

    def switch_dialect(self, why: str = "") -> bool:
        """Switch to the next dialect, as if the conversation had begun in it. Return False if none is left. Without a
        `why`, the endpoint refused the calls of the tools."""
        if not self.config.otherwise:
            return False
        from hira.policies.dialects.switching import rewrite_messages  # most models write the first one

        old, new = self.config.dialect, DIALECTS[self.config.otherwise]
        self.go_back(rewrite_messages(self.messages, self.tools, old, new, self.readable.tools))
        self.config = replace(self.config, dialect=new, otherwise=FALLBACKS.get(new.name, ""))
        model = self.config.policy.model
        self.context.note(
            f"{model}: {why} in the dialect {old.name}; calls are written in the dialect {new.name}"
            if why
            else f"{model} takes no tool calls: they are written as text (dialect {new.name})"
        )
        return True

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
        request, refused = None, 0
        model, forced = self.config.policy.model, context.stopped is not None
        while True:
            if request is None:
                request = self._write_request(several, schema, closing=closing)
                if context.options.hooks.before_turn:
                    from hira.agents.hooks import change_prompt  # few runs have hooks

                    request = await change_prompt(self._hooked(last=last), request)
            need = self._describe_need(request, last=last, closing=closing)
            within = context.stopping.bound_turn(need, heard := list[str]())
            receiver = Receiver(self.trajectory, self.config, context.events, within, context.state.noted, heard)
            if context.options.stream:
                receiver.held = HeldText(receiver.show, *self.readable)
            try:
                with self._spend(need, receiver) as spending:
                    context.events(
                        TurnStarted(self.name, need.role, self.tokens(request.tools) if receiver.held else 0)
                    )
                    ask = partial(self._ask, request, spending, receiver, several)
                    completion = await context.log.policy(
                        model, request, ask, receiver.within, receiver.finish, forced=forced
                    )
                    spending.usage = completion.usage
            except ToolsRefused:
                if not ((several or closing) and self.switch_dialect()):
                    raise
                request = None
                continue
            self._keep_turn(request, completion, receiver.told)
            if not context.options.hooks.after_turn:
                return completion
            from hira.agents.hooks import change_reply  # few runs have hooks

            changed = await change_reply(self._hooked(last=last), request, completion, refused)
            if isinstance(changed, Completion):
                return changed
            request, refused = changed, refused + 1

    def _hooked(self, *, last: bool) -> "HookedTurn":
        from hira.agents.hooks import HookedTurn  # few runs have hooks

        context, role = self.context, self.trajectory.role
        record = partial(context.log.call, within=context.stopping.bound_turn(CallNeed(role, last=last)))
        return HookedTurn(context.options.hooks, role, self.name, context.handed, record)

    def _write_request(self, several: int, schema: Mapping[str, Any] | None, *, closing: bool) -> Request:
        """The request for a turn. In a closing turn no tools may be called, and they are shown only if the model has
        replied before and may have called them."""
        dialect = self.config.dialect
        shown = bool(several) or (closing and any(message.role == "assistant" for message in self.messages))
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

    def _keep_turn(self, request: Request, completion: Completion, told: set[str]) -> None:
        """Enter a turn into the record; `told` notes were shown before. Raises `Withheld` for a refusal."""
        context = self.context
        if context.log.departed:
            context.note(DEPARTED)
        if (usage := completion.usage).prompt_tokens:
            self._sized = (*self._sized[:2], usage.prompt_tokens // max(1, usage.calls))
        self.trajectory.turns.append(Turn(request, completion))
        if completion.reasoning:
            context.state.thinking.add(self.config.policy.model)
        context.events(TurnEnded(self.name, self.trajectory.role, completion.text, usage))
        for note in completion.notes:
            context.note(note, shown=note in told)
        if completion.finish == "filtered":  # neither a refusal nor a filtered reply is an answer
            quote = " ".join(completion.text.split())[:LONGEST_QUOTE]
            model = completion.model or self.config.policy.model
            raise Withheld(
                "the model refused, or a content filter kept its reply back" + (f": {quote!r}" if quote else ""),
                where=f"role {self.trajectory.role!r}, model {model!r}",
                fix="ask differently, or let another model speak for this role",
            )

    async def reply(self, *messages: Message) -> str:
        """Say the messages, take one turn without tools, keep the reply, and return its text."""
        self.say(*messages)
        completion = await self.turn()
        self.say(assistant(completion.text))
        return completion.text

    def _describe_need(self, request: Request, *, last: bool, closing: bool) -> CallNeed:
        """Describe the call to the budget. A model that thinks has no shorter bounds: thoughts are part of a reply."""
        context, role, config = self.context, self.trajectory.role, self.config
        longest = config.sampling.max_tokens
        if config.replies and not longest:
            bounds = [config.replies.tokens]
            if isinstance(context.stopped, Interrupted):
                bounds.append(INTERRUPTED_TOKENS)
            if config.policy.model not in context.state.thinking:
                bounds += [RECORD] if request.schema is not None else []
                bounds += [CLOSING] if closing or last else []
            longest = min(bounds)
        answers, closes = self.closes == "run", bool(self.closes)
        alone = answers and not last and not self.readable.tools
        forced = context.stopped is not None
        recorded = bool(context.log.known) and context.log.knows(config.policy.model, request, forced=forced)
        need = CallNeed(role, 0, None, answers, last, closes, closing or last, alone, longest, recorded)
        if not context.budget.counts(role):
            return need
        return replace(need, prompt=self.tokens(request.tools), price=config.price)

    def tokens(self, tools: tuple[Mapping[str, Any], ...]) -> int:
        """Estimate the tokens of the next prompt with these functions: those of new messages and the known rest."""
        counted, last, total = self._sized
        if not counted:
            total = count(str(tools)) if tools else 0
        elif (now := self.messages[counted - 1]) is not last and last is not None:
            total += count(now.text[len(last.text) :])  # the endpoint continued it
        total += size(self.messages[counted:])
        self._sized = (len(self.messages), self.messages[-1] if self.messages else None, total)
        return total

    @contextmanager
    def _spend(self, need: CallNeed, receiver: Receiver) -> Iterator[Spending]:
        """Charge a call: with the endpoint's own count, or with our estimate if the reply broke off. A budget that is
        used up ends the run, be it the run's own or that of the role that answers for it."""
        try:
            with Spending(self.context.budget, need) as spending:
                try:
                    yield spending
                except (EndpointError, Stop, asyncio.CancelledError) as error:
                    lost = Usage(1, size(self.messages), count("".join(receiver.streamed)))
                    if isinstance(error, EndpointError):
                        lost = Usage(1, error.prompt_tokens, error.completion_tokens)
                    spending.usage = receiver.count_lost(lost)
                    self.context.log.record_lost(self.name, self.config.policy.model, spending.usage)
                    raise
        except OutOfBudget as spent:
            unchecked = self.trajectory.role == VERIFIER and receiver.within.began is None  # the answer stays
            if not unchecked and (self.closes == "run" or not isinstance(spent, RoleBudgetExceeded)):
                self.context.stop(spent)
            raise

    def _ask(self, request: Request, spending: Spending, receiver: Receiver, several: int) -> Awaitable[Completion]:
        """Ask the policy now. The bounds of the reply are not recorded, because a resumed run may have others."""
        need, config, left = spending.need, self.config, receiver.within.seconds
        seconds, cut_at, again = left() if left else None, None, None
        if seconds is not None and (need.last or need.alone):
            has_reserve = need.alone and self.context.budget.role_seconds(need.role) is None  # after these seconds
            cut_at = asyncio.get_running_loop().time() + (1.0 if has_reserve else _CUT_SHARE) * seconds
        if config.replies and not request.sampling.max_tokens:
            again = min(config.replies.again, spending.room or config.replies.again)
        tools, is_quoted = self.readable
        call = CallOptions(
            receiver.watch if receiver.held or cut_at else None,
            receiver.tell,
            seconds,
            self.context.budget.count_remaining(need),
            again,
            cut_at,
            partial(holds_more, tools=tools, several=several, is_quoted=is_quoted) if several and tools else None,
            run=self.context.rollout.run,
        )
        if spending.longest is not None:
            request = replace(request, sampling=replace(request.sampling, max_tokens=spending.longest))
        return config.policy.complete(request, call)


def find_shortage(context: RunContext, conversation: str, *calls: CallNeed, seconds: float = 0.0) -> str:
    """Return why the budget does not pay for optional calls that take these seconds, and for its reserve. It is empty
    if the budget pays, or if the run's record holds their conversation."""
    if context.log.holds(conversation):
        return ""
    left = (context.budget.remaining_seconds(), context.budget.role_seconds(calls[0].role))
    if seconds and any(rest is not None and rest <= seconds for rest in left):
        return "too little time is left"
    with ExitStack() as held:
        try:
            for call in calls:
                held.enter_context(Spending(context.budget, call))
        except OutOfBudget as spent:
            return spent.what
    return ""


def format_files(files: Sequence[Path]) -> Filled:
    """Format the attached files as a paragraph of a prompt; empty without files."""
    return ATTACHED.fill(files=sanitize("\n".join(f"- {path}" for path in files)))
