"""How a run ends before its work is done: somebody stops it, or its seconds are used up."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from hira.core.budget import INTERRUPTED_SECONDS, Budget, CallNeed
from hira.core.concurrency import EndsEarly, contain, count_down
from hira.core.errors import HiraError, HookError, Interrupted, RoleBudgetExceeded, Stop

T = TypeVar("T")
AT_LEAST = 1.0
"""Seconds between two looks at a budget whose seconds a person holds up."""


@dataclass(slots=True)
class Stopping:
    """Bounds everything that a run waits for. Work is awaited in a block, which raises the `Stop` that ends it."""

    budget: Budget
    reason: Stop | None = None
    """Why the run stops, None while it continues."""
    _blocks: set[EndsEarly] = field(default_factory=set)
    _person: asyncio.Lock = field(default_factory=asyncio.Lock)

    def stop(self, why: Stop) -> Stop:
        """End all blocks, and return the reason. Only the first one counts."""
        if self.reason is None:
            self.reason = why
            for block in tuple(self._blocks):
                block.end(why)
        return self.reason

    def bound(self, *, timed: bool = True, takes_all: Callable[[], bool] = lambda: False) -> EndsEarly:
        """A block that ends when the run is stopped, or when `timed` work uses up the budget's seconds, of which it
        gets the reserve only if it `takes_all`."""
        seconds = partial(self._find_seconds, takes_all) if timed and self.budget.seconds is not None else None
        return EndsEarly(seconds, lambda: self.stop(self.budget.make_late_error()), self.reason, blocks=self._blocks)

    def bound_turn(self, call: CallNeed, heard: Sequence[object] = ()) -> EndsEarly:
        """A block for what belongs to a turn of a role: it also ends when the seconds of the role are used up. The call
        that writes the answer, the `last` one, ends with the budget's seconds only, and so does one that is `alone`
        once something of its reply was `heard`: until then, the reserve is kept for another try."""
        block = self.bound(takes_all=lambda: call.alone and bool(heard))
        if call.last:
            seconds = self.closing_seconds()
            left_to_close = None if seconds is None else count_down(seconds)
            block = EndsEarly(left_to_close, partial(self._describe_late, seconds))
        left = block.seconds() if block.seconds else None
        of_role = self.budget.role_seconds(call.role, closing=call.closing)
        if of_role is not None and (left is None or of_role < left):
            late = RoleBudgetExceeded(f"the seconds of role {call.role!r} are used up")
            block.seconds, block.late = count_down(of_role), lambda: late
        return block

    def closing_seconds(self) -> float | None:
        """Seconds that the call that writes the answer may take, None for any number."""
        most = INTERRUPTED_SECONDS if isinstance(self.reason, Interrupted) else None
        bounds = (self.budget.remaining_seconds(last=True), most)
        return min((bound for bound in bounds if bound is not None), default=None)

    async def wait_for_person(self, what: str, work: Callable[[], T | Awaitable[T]]) -> T:
        """Return the result of work that a person does, one after another, unless the run is stopped; the time they
        take counts in no budget. `what` describes it in the `HookError` that is raised if it fails."""
        async with self._person:
            began = self.budget.paused = time.monotonic()
            try:
                async with self.bound(timed=False):
                    with contain("the function that approves"):
                        made = work()
                        return await made if inspect.isawaitable(made) else made
            except HiraError:
                raise
            except Exception as error:
                why = f"{type(error).__name__}: {error}".rstrip(": ")
                raise HookError(f"{what} failed: {why}", fix="correct it; to refuse, return Refusal(reason)") from error
            finally:
                self.budget.began += time.monotonic() - began
                self.budget.paused = None

    def _find_seconds(self, takes_all: Callable[[], bool]) -> float | None:
        """Seconds that are left; while a person is asked, at least those until the next look."""
        left = self.budget.remaining_seconds(last=takes_all())
        return left if left is None or self.budget.paused is None else max(left, AT_LEAST)

    def _describe_late(self, seconds: float | None) -> Stop:
        if isinstance(self.reason, Interrupted):
            return Interrupted(f"interrupted; there was no answer within {seconds:.3g} seconds")
        return self.budget.make_late_error()
