"""Budgets of a run and of each of its roles, checked before each call; a reserve always pays for the answer."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from hira.core.errors import BudgetTooSmall, OutOfBudget, RoleBudgetExceeded
from hira.core.messages import Message
from hira.core.policy import VERIFIER, Usage
from hira.core.prices import Price
from hira.core.tokens import count

REPLY = 4096  # tokens of a reply if no other bound is set
CLOSING = 2048  # tokens of the answer with which a role has to close
RECORD = 2048  # tokens of a reply that is one JSON record: an assignment, a distillation, a rubric
INTERRUPTED_TOKENS, INTERRUPTED_SECONDS = 1024, 60.0  # of the closing answer after Ctrl-C


@dataclass(frozen=True, slots=True)
class ReplyBound:
    """Tokens of one reply. One with only reasoning is requested again with `again` tokens, if that is more."""

    tokens: int = REPLY
    again: int = 2 * REPLY


# The share of every limit that is kept for the answer; at least the cost of the answering call.
RESERVE = 0.1
# Tokens: of the last reports and the answer; the least that is worth a call; the longest reply that every endpoint
# accepts in a request, so that a higher limit is not sent; of a picture, sound or video.
ANSWER = 1000
ROOM = 100
LONGEST_ASKED = 4096
MEDIA = 1000
AGAIN = "try again when they have ended"  # the fix if only calls in progress prevent a call
_FRAME = 4


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one role in a run: total `tokens`, `cost` in US dollars, `seconds` summed over its calls, policy
    `calls`, and `subtasks` assigned to it as an expert. None: no limit."""

    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    calls: int | None = None
    subtasks: int | None = None


@dataclass(frozen=True, slots=True)
class CallNeed:
    """A call that asks for admission: its role, the approximate tokens of its prompt, its price, and the most tokens of
    its `reply`, if known.

    `answers` marks the calls of the role that writes the run's answer, `last` the very call that writes it; `closes`
    means that the budget keeps enough for a closing call of this conversation, `closing` that this is the closing call.
    The only call of a role without tools is `alone`: it leaves the reserve if it can, and otherwise takes it. One that
    is `recorded` was charged when the run was resumed.
    """

    role: str
    prompt: int = 0
    price: Price | None = None
    answers: bool = False
    last: bool = False
    closes: bool = False
    closing: bool = False
    alone: bool = False
    reply: int | None = None
    recorded: bool = False

    def usage(self, completion: int = 0) -> Usage:
        used = Usage(1, self.prompt, completion)
        return replace(used, cost=self.price.of(used)) if self.price else used


@dataclass(slots=True)
class Ledger:
    """Limits and the usage `spent` of them; `held` is the least that calls in progress will take. `whose` is for
    messages, and `spends` is the error to raise if nothing is left."""

    limits: Limits
    whose: str = ""
    spends: type[OutOfBudget] = OutOfBudget
    spent: Usage = Usage()
    held: Usage = Usage()

    def check(self, call: CallNeed, reserve: Usage | None) -> int | None:
        """Return the most tokens of the reply, None if no bound is needed.

        Raises `OutOfBudget` if the call would leave less than the `reserve`, `BudgetTooSmall` if it is the run's first.
        Without a reserve (the call is the one that it is kept for) any rest is enough, once a call has been paid for.
        """
        if self.limits == Limits():
            return None
        used = self.spent + self.held
        if call.alone and self._short(call, used, reserve):
            reserve = Usage()
        if short := self._short(call, used, reserve):
            limit, name, needed = short
            text = f"the budget of {limit:,} {name.removesuffix('s') if limit == 1 else name}{self.whose}"
            if self._short(call, self.spent, reserve) is None:
                raise self.spends(f"{text} is held by other calls under way", fix=AGAIN)
            if self.spent.calls or name == "calls":
                raise self.spends(f"{text} is used up")
            amount = f"{needed:,.0f}" if needed >= 100 else f"{needed:.2g}"
            make = BudgetTooSmall if self.spends is OutOfBudget else self.spends
            raise make(f"{text} is too small: a call and the answer need about {amount}", fix="raise or remove it")
        left = self.count_remaining(used + (reserve or Usage()) + call.usage(), call.price)
        room = LONGEST_ASKED if left is None else max(ANSWER if reserve is None else ROOM, left)
        return room if room < LONGEST_ASKED else None

    def count_remaining(self, taken: Usage, price: Price | None) -> int | None:
        """Return the tokens of a reply that are left when so much is taken, None without a limit."""
        rooms = []
        if self.limits.tokens is not None:
            rooms.append(self.limits.tokens - taken.tokens)
        if self.limits.cost is not None and price and price.output:
            rooms.append(int((self.limits.cost - (taken.cost or 0.0)) / price.output * 1e6))
        return min(rooms, default=None)

    def _short(self, call: CallNeed, used: Usage, reserve: Usage | None) -> tuple[float, str, float] | None:
        """Return the limit that the call would break, its name, and the amount needed; None if it breaks no limit."""
        limits = {"tokens": self.limits.tokens, "US dollars": self.limits.cost, "calls": self.limits.calls}
        before, after, rest = map(_measure, (used, used + call.usage(ROOM), reserve or Usage()))
        begins = reserve is not None or not self.spent.calls
        for name, limit in limits.items():
            if limit is not None and (before[name] >= limit or (begins and after[name] > limit - rest[name])):
                return limit, name, after[name] + rest[name]
        return None


def _measure(usage: Usage) -> dict[str, float]:
    return {"tokens": usage.tokens, "US dollars": usage.cost or 0.0, "calls": usage.calls}


@dataclass(slots=True)
class Allowance:
    """A budget that several runs share. Each run reserves the cost of its answer, so that it can answer whatever the
    others spend; the room for a reply is held until the reply has been paid for."""

    ledger: Ledger
    _kept: dict[int, Usage] = field(default_factory=dict)
    _rooms: dict[int, Usage] = field(default_factory=dict)

    def admit(self, run: int, call: CallNeed, answer: Usage) -> int | None:
        """Return the most tokens of the reply, None if no bound is needed. Raises the ledger's error if the call would
        leave too little for the answers of the runs in progress; `answer` is the cost of this run's answer."""
        others = sum((kept for other, kept in self._kept.items() if other != run), Usage())
        self._kept[run] = Usage() if call.last else answer
        kept = others if call.last or call.alone else others + answer
        room = self.ledger.check(replace(call, alone=False), kept)
        longest = LONGEST_ASKED if room is None else room
        held = call.usage(min(longest, call.reply or longest))
        self._rooms[id(call)] = held
        self.ledger.held += held
        return room

    def charge(self, call: CallNeed, usage: Usage) -> None:
        """Replace the usage held for the call by its actual cost."""
        self.ledger.held -= self._rooms.pop(id(call))
        self.ledger.spent += usage

    def leave(self, run: int) -> None:
        """Release the reserve of a run that has ended."""
        self._kept.pop(run, None)


@dataclass(slots=True)
class Budget:
    """Limits of one run: total `tokens`, `cost` in US dollars, `seconds` of wall time, policy `calls`. None: no limit.
    `roles` holds limits of single roles, `shared` the budget that this run shares with others.

    While it is `paused` (the time at which it was paused), no seconds pass. `admit` refuses a call that would not leave
    the reserve: a tenth of the limit, or the cost of the answering call if that is more. The call that writes the
    answer may use up the reserve. A call is refused, too, if the rest of the time is too short for it and the answer.
    """

    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    calls: int | None = None
    roles: Mapping[str, Limits] = field(default_factory=dict)
    shared: Allowance | None = None
    began: float = field(default_factory=time.monotonic, init=False)
    paused: float | None = field(default=None, init=False)
    _run: Ledger = field(init=False)
    _own: dict[str, Ledger] = field(init=False)
    _answer: Usage = field(default=Usage(), init=False)
    _paid: list[float] = field(default_factory=list, init=False)  # seconds of the calls that are in no record
    _answers: bool = field(default=False, init=False)  # some call is of a role that answers, and so closes the run
    _late: bool = field(default=False, init=False)  # a call was refused for lack of time: who answers closes, too
    _limited: bool = field(init=False)
    """False if no call can be refused, so that nothing has to be held or measured."""

    def __post_init__(self) -> None:
        self._run = Ledger(Limits(self.tokens, self.cost, None, self.calls))
        self._own = {
            role: Ledger(limits, f" of role {role!r}", RoleBudgetExceeded) for role, limits in self.roles.items()
        }
        self._limited = bool(self.shared or self.roles or self._run.limits != Limits())

    @property
    def spent(self) -> Usage:
        return self._run.spent

    def counts(self, role: str) -> bool:
        """Return whether the size of this role's prompts matters."""
        if not self._limited or (self.shared and self.shared.ledger.limits != Limits()):
            return self._limited
        return any(ledger.limits.tokens is not None or ledger.limits.cost is not None for ledger in self._of(role))

    def subtasks_of(self, role: str) -> int | None:
        """Return the most subtasks that may be assigned to the role as an expert, None for any number."""
        return self._own[role].limits.subtasks if role in self._own else None

    def admit(self, call: CallNeed) -> int | None:
        """Hold the budget of a call and return the most tokens of its reply, None if no bound is needed.

        Raises `OutOfBudget` if the run may not make the call, `RoleBudgetExceeded` if only its role may not. `charge`
        releases what is held.
        """
        self._answers = self._answers or call.answers
        if self.seconds is not None and not call.recorded:
            self._check_time(call)
        if not self._limited:
            return None
        closing = replace(call, prompt=call.prompt + ANSWER // 2).usage(ANSWER // 2)
        if call.answers:
            self._answer = closing
        if call.recorded:
            return None
        rooms = [self._run.check(call, None if call.last else self._reserve(self._run.limits, self._answer))]
        if ledger := self._own.get(call.role):
            if self.role_seconds(call.role, closing=call.closing) == 0.0:
                raise ledger.spends(f"the budget of {ledger.limits.seconds:,g} seconds{ledger.whose} is used up")
            kept = self._reserve(ledger.limits, closing) if call.closes else Usage()
            rooms.append(ledger.check(call, None if call.closing else kept))
        if self.shared:
            rooms.append(self.shared.admit(id(self), call, self._answer))
        for ledger in self._of(call.role):
            ledger.held += call.usage()
        return min((room for room in rooms if room is not None), default=None)

    def _check_time(self, call: CallNeed) -> None:
        if self.remaining_seconds(last=call.last) == 0.0:
            raise self.make_late_error()
        left, before = self.remaining_seconds(last=True), self._paid[1:]  # for the first, a server may load its model
        if left is not None and self._answers and not (call.last or call.alone or call.role == VERIFIER):
            self._late = self._late or (not call.answers and left * len(before) < 2 * sum(before))
            if self._late:
                raise RoleBudgetExceeded(f"the budget of {self.seconds:,g} seconds has no time left for another call")

    def count_remaining(self, call: CallNeed) -> int | None:
        """Return the tokens left besides the prompts of the calls in progress, None without a limit."""
        if not self._limited:
            return None
        ledgers = (*self._of(call.role), *([self.shared.ledger] if self.shared else []))
        rooms = [ledger.count_remaining(ledger.spent + ledger.held, call.price) for ledger in ledgers]
        return min((room for room in rooms if room is not None), default=None)

    def charge(self, call: CallNeed, usage: Usage) -> None:
        """Replace the usage held for the call by its actual cost."""
        if usage.seconds:
            self._paid.append(usage.seconds)
        if self.shared:
            self.shared.charge(call, usage)
        self.charge_role(call.role, usage)
        for ledger in self._of(call.role) if self._limited else ():
            ledger.held -= call.usage()

    def charge_role(self, role: str, usage: Usage) -> None:
        """Charge what the role has cost, now or before the run was resumed."""
        for ledger in self._of(role):
            ledger.spent += usage

    def remaining_seconds(self, *, last: bool = False) -> float | None:
        """Return the wall seconds that a call may still take, None without a limit; never negative."""
        if self.seconds is None:
            return None
        share = 1.0 if last else 1.0 - RESERVE
        now = time.monotonic() if self.paused is None else self.paused
        return max(0.0, self.began + self.seconds * share - now)

    def make_late_error(self) -> OutOfBudget:
        return OutOfBudget(f"the budget of {self.seconds:,g} seconds is used up")

    def role_seconds(self, role: str, *, closing: bool = False) -> float | None:
        """Return the seconds that a call may still take by the limit of its role, None without one; never negative."""
        limit = self._own[role].limits.seconds if role in self._own else None
        if limit is None:
            return None
        return max(0.0, limit * (1.0 if closing else 1.0 - RESERVE) - self._own[role].spent.seconds)

    def _of(self, role: str) -> Iterable[Ledger]:
        return (self._run, *([self._own[role]] if role in self._own else []))

    @staticmethod
    def _reserve(limits: Limits, answer: Usage) -> Usage:
        """Return a share of every limit, or the usage of the answering call if that is more."""
        tokens = max(int((limits.tokens or 0) * RESERVE), answer.tokens)
        return Usage(1, tokens, 0, cost=max((limits.cost or 0.0) * RESERVE, answer.cost or 0.0))


@dataclass(slots=True)
class Spending:
    """The budget of a call, held inside the context: its `need`, the `room` for its reply, the `longest` that the reply
    may be (None: any), and the `usage` to charge at the end, unless it is recorded. Raises what `Budget.admit` raises.
    """

    budget: Budget
    need: CallNeed
    room: int | None = None
    longest: int | None = None
    usage: Usage = Usage()

    def __enter__(self) -> Self:
        self.room = self.budget.admit(self.need)
        self.longest = min((bound for bound in (self.room, self.need.reply) if bound is not None), default=None)
        return self

    def __exit__(self, *error: object) -> None:
        if not self.need.recorded:
            self.budget.charge(self.need, self.usage)


def size(messages: Iterable[Message]) -> int:
    """Return about how many tokens the messages have as a prompt."""
    return sum(
        _FRAME + count(message.text) + MEDIA * len(message.media) + sum(count(call.arguments) for call in message.calls)
        for message in messages
    )
