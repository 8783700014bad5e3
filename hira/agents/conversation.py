"""A conversation: the messages that one role has exchanged, and the only way to its policy."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from hira.agents.hooks import REPLIES, HookedTurn, change_prompt, change_reply, refuse_turn
from hira.agents.role import RoleConfig
from hira.agents.trajectory import Trajectory, Turn
from hira.core.budget import INTERRUPTED_SECONDS, CallNeed, size
from hira.core.errors import EndpointError, Interrupted, OutOfBudget, RoleBudgetExceeded, Stop, UsageError, Withheld
from hira.core.events import Notice, TurnEnded, TurnStarted, TurnText
from hira.core.messages import Message, assistant
from hira.core.policy import Choose, Completion, Delta, Request, Usage
from hira.core.tokens import clip, count
from hira.policies.dialects import FALLBACKS, Call, rewrite_messages
from hira.policies.dialects.quoted import IsQuoted
from hira.policies.dialects.text_calls import HeldText, holds_more
from hira.policies.facts import DIALECT
from hira.tools import Tool

if TYPE_CHECKING:
    from hira.agents.run_context import RunContext
    from hira.core.policy import Watch

T = TypeVar("T")
LONGEST_QUOTE = 160
_CUT_SHARE = 0.9
"""Of the seconds that the last call may take, after which its reply is taken as far as it has come."""
DEPARTED = (
    "the run differs from its record from here on, as it can when settings, prompts or documents have changed; "
    "calls that the record lacks are made again"
)


@dataclass(slots=True)
class Conversation:
    """The messages one role has exchanged, and the only way to its policy. Every turn is recorded.

    `tools` are offered to the role. `unmade` are calls of stateful tools whose results came from the journal, by the
    tool's name. `closes` says whose answer is written by the last call, for which a reserve is kept: nobody's, the
    role's own, or the run's. `callable` are the tools whose calls are kept back from who watches the text, unless they
    are quoted (`is_quoted`); `fell_back` says that the dialect is another than the conversation began in. `latest_call`
    is set when the tool call that began last has ended, `has_result` says that some call had a result.
    """

    context: "RunContext"
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

    def say(self, *messages: Message) -> None:
        """Add the messages. The first of the user's also tells the `instructions` of whoever runs hira."""
        if self.instructions and not any(one.role == "user" for one in self.messages):
            first = next((at for at, one in enumerate(messages) if one.role == "user"), None)
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
        while tokens > 0 and (turns := [at for at, one in enumerate(self.messages) if one.role == "assistant"]):
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

    def otherwise(self, tools: Sequence[Tool], why: str = "") -> bool:
        """Switch to the next dialect, as if the conversation had begun in it. Return False if none is left. Without a
        `why`, the endpoint refused the calls of these tools."""
        old, new = self.config.dialect, self.config.otherwise
        if new is None:
            return False
        self.go_back(rewrite_messages(self.messages, tools, old, new, self.callable))
        self.config = replace(self.config, dialect=new, otherwise=FALLBACKS.get(new.name))
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
        self,
        *,
        stop: tuple[str, ...] = (),
        tools: tuple[Mapping[str, Any], ...] = (),
        schema: Mapping[str, Any] | None = None,
        last: bool = False,
        closing: bool = False,
        choose: Choose = "auto",
        several: int = 0,
    ) -> Completion:
        """One policy call. `last` is the call that writes the answer: the reserve pays for it and no stop prevents it.
        `closing` is the call with which a role ends its part; it may use up the reserve of its role. Of the calls in
        the reply only the first `several` are read, 0 for all that is said.

        The reply is recorded but not appended: what enters the conversation is for the dialect to say.
        """
        context, config = self.context, self.config
        if context.stopped and not last:
            raise context.stopped
        request = Request(
            tuple(self.messages),
            config.sampling,
            stop,
            tools,
            schema,
            continues=bool(self.messages) and self.messages[-1].role == "assistant",
            conversation=self.name,
            run=context.rollout.run,
            choose=choose,
            is_enough=self._is_enough(several) if several and self.callable else None,
        )
        if context.hooks.before_turn:
            request = await change_prompt(self._hooked(last=last), request)
        completion = await self._get_reply(request, last=last, closing=closing)
        if context.hooks.after_turn:
            completion = await self._apply_hook(request, completion, last=last, closing=closing)
        return completion

    def _is_enough(self, several: int) -> Callable[[str], bool]:
        return partial(holds_more, tools=self.callable, several=several, is_quoted=self.is_quoted)

    def _hooked(self, *, last: bool) -> HookedTurn:
        """The turn as its hooks see it."""
        context = self.context
        record = partial(context.call_recorded, within=self.within(last=last))
        return HookedTurn(context.hooks, self.trajectory.role, self.name, context.handed, record)

    async def _apply_hook(self, request: Request, completion: Completion, *, last: bool, closing: bool) -> Completion:
        """The reply as the hook `after_turn` takes it; one that it refuses is asked for again."""
        for again in reversed(range(REPLIES)):
            changed = await change_reply(self._hooked(last=last), request, completion)
            if isinstance(changed, Completion):
                return changed
            if again:
                request = changed
                completion = await self._get_reply(request, last=last, closing=closing)
        raise refuse_turn(self.trajectory.role)

    async def _get_reply(self, request: Request, *, last: bool, closing: bool) -> Completion:
        """The reply to a request, paid for and recorded."""
        context, config, tools = self.context, self.config, request.tools
        longest = context.longest_reply(config, record=request.schema is not None, closing=closing or last)
        wanted = self._describe_need(tools, longest, last=last, closing=closing)
        with self._ending_the_run():
            room = context.budget.admit(wanted)
        context.events(TurnStarted(self.name, self.trajectory.role, self.tokens(tools) if context.stream else 0))
        completion = await self._charge_call(request, wanted, room)
        self.trajectory.turns.append(Turn(request, completion))
        context.saw(config, completion)
        context.events(TurnEnded(self.name, self.trajectory.role, completion.text, completion.usage))
        for note in completion.notes:
            context.note(note, shown=note in self._shown_notes)
        if completion.finish == "filtered":
            raise self._withheld(completion)
        return completion

    def _withheld(self, completion: Completion) -> Withheld:
        """The error for a refusal or a filtered reply, because neither is an answer."""
        said = " ".join(completion.text.split())[:LONGEST_QUOTE]
        return Withheld(
            "the model refused, or a content filter kept its reply back" + (f": {said!r}" if said else ""),
            where=f"role {self.trajectory.role!r}, model {completion.model or self.config.policy.model!r}",
            fix="ask differently, or let another model speak for this role",
        )

    async def reply(self, *messages: Message, last: bool = False) -> str:
        """Say the messages, take one turn without tools, keep the reply, and return its text."""
        self.say(*messages)
        completion = await self.turn(last=last)
        self.say(assistant(completion.text))
        return completion.text

    def _describe_need(
        self, tools: tuple[Mapping[str, Any], ...], longest: int | None, *, last: bool, closing: bool
    ) -> CallNeed:
        role = self.trajectory.role
        prompt = self.tokens(tools) if self.context.budget.counts(role) else 0
        answers = self.closes == "run"
        config, closes = self.config, bool(self.closes)
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

    async def _charge_call(self, request: Request, wanted: CallNeed, room: int | None) -> Completion:
        """Return the reply of the policy or of the journal, and charge the budget: with the endpoint's own count, or
        with our estimate if the reply broke off. Only a reply that the policy was asked for now is paid for."""
        log, policy = self.context.log, self.config.policy
        within, bounds = self.within(last=wanted.last), self._bounds(request, wanted, room)
        usage, paid = Usage(), False

        def ask() -> Awaitable[Completion]:
            nonlocal paid
            paid = True
            return self._ask_policy(request, wanted, bounds)

        self._streamed.clear()
        try:
            with self._ending_the_run():
                completion = await (log.policy(policy.model, request, ask, within) if log else within(ask()))
            usage = completion.usage
        except EndpointError as error:
            usage = self._count_lost(Usage(1, error.prompt_tokens, error.completion_tokens))
            raise
        except (Stop, asyncio.CancelledError):
            usage = self._count_lost(Usage(1, size(self.messages), count("".join(self._streamed))))
            raise
        finally:
            self.context.budget.charge(wanted, usage, paid=paid)
        if log and log.departed:
            self.context.note(DEPARTED)
        if usage.prompt_tokens:
            self._sized = (*self._sized[:2], usage.prompt_tokens // max(1, usage.calls))
        return completion

    @contextmanager
    def _ending_the_run(self) -> Iterator[None]:
        """A budget that is used up ends the run, be it the run's own or that of the role that answers for it."""
        try:
            yield
        except OutOfBudget as spent:
            if self.closes == "run" or not isinstance(spent, RoleBudgetExceeded):
                self.context.stop(spent)
            raise

    async def _ask_policy(self, request: Request, wanted: CallNeed, bounds: Mapping[str, Any]) -> Completion:
        """Ask the policy within these bounds of its reply, which are not recorded, because a resumed run may have
        others."""
        policy, budget = self.config.policy, self.context.budget
        began = time.monotonic()
        seconds = budget.role_seconds(wanted.role, closing=wanted.closing)
        whole = budget.remaining_seconds(last=wanted.last)
        least = min((one for one in (seconds, whole) if one is not None), default=None)
        held = HeldText(self._show, self.callable, self.is_quoted) if self.context.stream else None
        cut = _CUT_SHARE * limit if wanted.last and (limit := self._closing_seconds()) is not None else None
        asked = replace(request, **bounds, seconds=least, cut_after=cut)
        call = policy.complete(asked, held and self._watch(held))
        if seconds is not None:
            call = self._in_roles_time(call, wanted.role, seconds)
        completion: object = await call
        if held:
            held.end()
        if not isinstance(completion, Completion):
            what = f"policy {policy.model!r} must return a Completion, got {completion!r}"
            raise UsageError(what, fix="return hira.core.policy.Completion(text): docs/policies.md")
        return self._add_price(completion, time.monotonic() - began)

    def _bounds(self, request: Request, wanted: CallNeed, room: int | None) -> dict[str, Any]:
        """Fields to set in the request: the bounds of its reply, from the role and from the `room` that the budget
        leaves, and those that only a policy which is a program reads."""
        least = min((one for one in (room, wanted.reply) if one is not None), default=None)
        again = None
        if self.config.replies and not request.sampling.max_tokens:
            again = min(self.config.replies.again, room or self.config.replies.again)
        sampling = request.sampling if least is None else replace(request.sampling, max_tokens=least)
        return {
            "sampling": sampling,
            "again": again,
            "left": self.context.budget.count_remaining(wanted),
            "tell": self._tell,
            "callable_tools": tuple(tool.spec for tool in self.tools),
            "write_call": self._write_call,
        }

    def _add_price(self, completion: Completion, seconds: float) -> Completion:
        """With the seconds it took, and its cost where the policy does not know it and a price is known."""
        usage = completion.usage
        known = usage.cost is not None
        price = None if known else self.config.prices.of(completion.model) or self.config.price
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

    def within(self, *, last: bool) -> Callable[[Awaitable[T]], Awaitable[T]]:
        """Awaits what belongs to a turn as long as the turn may take."""
        return self._in_time if last else self.context.unless_stopped

    async def _in_time(self, call: Awaitable[T]) -> T:
        """The call that writes the answer may use up the budget's seconds, and not one more."""
        seconds = self._closing_seconds()
        try:
            async with asyncio.timeout(seconds):
                return await call
        except TimeoutError:
            if isinstance(self.context.stopped, Interrupted):
                raise Interrupted(f"interrupted; there was no answer within {seconds:.3g} seconds") from None
            raise OutOfBudget(f"the budget of {self.context.budget.seconds:g} seconds is used up") from None

    async def _in_roles_time(self, call: Awaitable[Completion], role: str, seconds: float) -> Completion:
        """A call may use up its role's seconds, and not one more."""
        try:
            async with asyncio.timeout(seconds):
                return await call
        except TimeoutError:
            raise RoleBudgetExceeded(f"the seconds of role {role!r} are used up") from None

    def _tell(self, text: str) -> None:
        """Tell at once what a reply may bring as a note later."""
        if not self.context.has_noted(text):
            self._shown_notes.add(text)
            self.context.events(Notice(f"{self.trajectory.role}: {text}"))

    def _write_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        tool = next(one for one in self.tools if one.name == name)
        return self.config.dialect.write(Call(name, arguments), tool)

    def _watch(self, held: HeldText) -> "Watch":
        def watch(delta: Delta) -> None:
            self._streamed.append(delta.text)
            held(delta)

        return watch

    def _show(self, delta: Delta) -> None:
        self.context.events(TurnText(self.name, delta.text, delta.reasoning))
