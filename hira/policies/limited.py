"""The limits of one endpoint, shared by all its callers: parallel calls, none during a pause, few while it is down.

Calls begin unlimited. A rate limit shrinks the number of calls in flight (`SHRINK`), and rounds that use the limit
widen it (`GROWTH`); a Retry-After pauses everyone. Calls that were in flight together shrink it only once, and a stray
refusal among many replies only after `COOL_DOWN_SECONDS`. After consecutive `FAILURES` of connections or of the server,
hira leaves the endpoint alone for `SHUT_SECONDS`; then one call tries whether it is back.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from weakref import WeakKeyDictionary

from hira.core.errors import BadReply, ContextOverflow, EndpointError, MediaRefused, RateLimited, ToolsRefused
from hira.core.policy import Request, Tell
from hira.policies.waiting import FAILURES, GIVE_UP_BEYOND, PATIENCE_SECONDS, REPORTED_WAIT, SHUT_SECONDS

SHRINK = 0.8
GROWTH = 0.05
USED = 0.8
LEAST = 4.0
COOL_DOWN_SECONDS = 15.0
OFTEN, OFTEN_SHARE = 3, 0.2
CROWDED = 10
SERVER_FAULT = 500


class Down(EndpointError):
    """The endpoint has failed so often that it is not asked for a while."""


class RateLimiter:
    """The state of one endpoint in one event loop. Every caller that enters must leave, and report the outcome in
    between. `limit` is the most calls in flight, `flying` their number, `served` the number of replies. `clock` and
    `sleep` are arguments so that a test need not wait."""

    def __init__(
        self,
        endpoint: str = "",
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.endpoint = endpoint
        self.clock = clock
        self.sleep = sleep
        self.limit = math.inf
        self.flying = 0
        self.served = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._shrunk = -math.inf
        self._peak = 0
        self._refused = 0
        self._served_then = 0
        self._paused_until = 0.0
        self._failures = 0
        self._down_since: float | None = None
        self._shut_until = 0.0
        self._last = ""
        self._trial: asyncio.Future[None] | None = None

    async def enter(self, where: str, *, patient: bool, tell: Tell | None = None) -> bool:
        """Wait until a call may be made; True if it is the one that tries whether the endpoint is back. Raises `Down`
        while the endpoint is left alone, at once or, if `patient`, after `PATIENCE_SECONDS`, and `RateLimited` during a
        pause that is too long to wait for."""
        trial = self._down_since is not None and await self._may_try(where, patient=patient, tell=tell)
        try:
            await self._slot()
        except asyncio.CancelledError:
            self._end(trial=trial)
            raise
        try:
            while self._paused_until and (wait := self._paused_until - self.clock()) > 0:
                if wait > GIVE_UP_BEYOND:
                    raise RateLimited("too many requests", where=where, retryable=True, retry_after=wait)
                self._tell_wait(tell, "the endpoint asks for a pause", wait)
                await self.sleep(wait)
        except BaseException:
            self.leave(trial=trial)
            raise
        return trial

    def leave(self, *, trial: bool) -> None:
        self.flying -= 1
        self._admit()
        self._end(trial=trial)

    def record_success(self) -> None:
        """Record a reply: the endpoint is up, and may get a few more parallel calls."""
        self.served += 1
        self._failures, self._down_since = 0, None
        if self.flying >= USED * self.limit:
            self.limit += max(GROWTH, 1 / self.limit)  # over a round: 5 %, or one more

    def record_failure(self, error: EndpointError, request: Request, began: float) -> None:
        """Record that the call failed; `began` is its start."""
        now = self.clock()
        if error.retry_after:
            self._paused_until = max(self._paused_until, now + error.retry_after)
        if isinstance(error, RateLimited) and error.retryable and began > self._shrunk:
            self._refused += 1
            others = self.served - self._served_then
            often = self._refused >= OFTEN and self._refused > OFTEN_SHARE * (self._refused + others)
            if often or now - self._shrunk > COOL_DOWN_SECONDS:
                self.limit = max(LEAST, SHRINK * min(self.limit, self._peak))
                self._shrunk, self._peak, self._refused, self._served_then = now, self.flying, 0, self.served
        of_the_request = isinstance(error, BadReply | ContextOverflow | RateLimited | ToolsRefused | MediaRefused)
        if request.schema is not None and error.status == SERVER_FAULT:
            of_the_request = True  # llama.cpp's failure if a model does not complete the schema
        if of_the_request or 0 < error.status < SERVER_FAULT:
            self._failures, self._down_since = 0, None
            return
        self._failures += 1
        if self._failures >= FAILURES:
            self._down_since = now if self._down_since is None else self._down_since
            self._shut_until = now + SHUT_SECONDS
            self._last = error.what

    async def _may_try(self, where: str, *, patient: bool, tell: Tell | None) -> bool:
        """Wait until the endpoint is back (False) or it is this call's turn to find out (True)."""
        while self._down_since is not None:
            now = self.clock()
            wait = self._shut_until - now
            if wait <= 0 and self._trial is None:
                self._trial = asyncio.get_running_loop().create_future()
                return True
            if not patient or now - self._down_since >= PATIENCE_SECONDS:
                text = f"the endpoint has failed {self._failures} times in a row; requests are paused: {self._last}"
                raise Down(text, where=where, fix="check that it runs, then try again")
            if self._trial is not None:
                await asyncio.wait((self._trial,))
            else:
                self._tell_wait(tell, f"the endpoint has failed {self._failures} times in a row: {self._last}", wait)
                await self.sleep(wait)
        return False

    def _tell_wait(self, tell: Tell | None, what: str, wait: float) -> None:
        if tell and wait >= REPORTED_WAIT:
            tell(f"{what}; continuing in {round(wait)} s", self.endpoint)

    def _end(self, *, trial: bool) -> None:
        if trial and self._trial is not None:
            self._trial.set_result(None)
            self._trial = None

    async def _slot(self) -> None:
        if self.flying < self.limit and not self._queue:
            self._take()
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with suppress(ValueError):  # `_admit` has removed it
                    self._queue.remove(turn)
            else:  # admitted and cancelled at the same moment
                self.flying -= 1
            self._admit()
            raise

    def _admit(self) -> None:
        while self._queue and self.flying < self.limit:
            turn = self._queue.popleft()
            if not turn.done():
                self._take()
                turn.set_result(None)

    def _take(self) -> None:
        self.flying += 1
        self._peak = max(self._peak, self.flying)


_GATES: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, RateLimiter]] = WeakKeyDictionary()
"""One table for the process, because all callers of an endpoint share its limit; event loops come and go."""


def gate_at(base_url: str) -> RateLimiter:
    """The gate of the endpoint in the running event loop, shared by all its callers there."""
    gates = _GATES.setdefault(asyncio.get_running_loop(), {})
    return gates.get(base_url) or gates.setdefault(base_url, RateLimiter(base_url))
