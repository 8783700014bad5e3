"""How long an endpoint is waited for, what is asked again, and which model is asked next when one is down."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache

from hira.core.errors import BadReply, ContextOverflow, EndpointError, MediaRefused, TimedOut, ToolsRefused
from hira.core.policy import Completion, Policy, Request, Usage, Watch
from hira.policies.limited import FIRST_WAIT, GROWN_WAIT, LONGEST_WAIT, REPORTED_WAIT, RateLimiter

PATIENCE = 3.0
"""The factor by which an endpoint may exceed its measured times."""
SLOW = 20.0
"""Tokens a second below which an endpoint is asked for streams: a whole reply shows nothing until it is there."""
_ENOUGH_READ, _ENOUGH_WRITTEN, _ENOUGH_WHOLE = 200, 8, 100
_BETWEEN = 20


@dataclass(frozen=True, slots=True)
class Timeout:
    """Seconds: to connect, until a stream's first token, between two tokens, and for a whole reply.

    All but the first grow with the endpoint's measured times (`Pace`): a slow one may take three times as long as
    before. A flowing stream may take as long as its tokens need, because their number is bounded.
    """

    connect: float = 10.0
    first_token: float = 300.0
    between_tokens: float = 120.0
    reply: float = 900.0


USUAL = Timeout()


@dataclass(slots=True)
class Pace:
    """How fast a model at an endpoint was seen to read and to write, in tokens a second; 0 while unknown. `runs_on`
    says whether it was seen to write on when it had written enough."""

    reads: float = 0.0
    writes: float = 0.0
    runs_on: bool = False

    @property
    def slow(self) -> bool:
        return 0.0 < self.writes < SLOW

    def saw_reading(self, tokens: int, seconds: float) -> None:
        if tokens >= _ENOUGH_READ:
            self.reads = _blend(self.reads, tokens / max(seconds, 1e-6))

    def saw_writing(self, tokens: int, seconds: float) -> None:
        if tokens >= _ENOUGH_WRITTEN:
            self.writes = _blend(self.writes, tokens / max(seconds, 1e-6))

    def saw_whole(self, tokens: int, seconds: float) -> None:
        """A reply that came at once in the end: how long it was read for is not known, so only a long one says much."""
        if tokens >= _ENOUGH_WHOLE:
            self.saw_writing(tokens, seconds)

    def saw_nothing(self) -> None:
        """No whole reply came in time: from now on it is asked for as a stream."""
        self.writes = min(self.writes or 1.0, SLOW / 2)

    def first_token(self, timeout: Timeout, prompt: int) -> float:
        """Return the seconds that the first token of a reply to a prompt of this many tokens may take."""
        return max(timeout.first_token, PATIENCE * prompt / self.reads if self.reads else 0.0)

    def between_tokens(self, timeout: Timeout) -> float:
        return max(timeout.between_tokens, PATIENCE * _BETWEEN / self.writes if self.writes else 0.0)

    def reply(self, timeout: Timeout, prompt: int, tokens: int | None) -> float:
        """Return the seconds that a whole reply of at most this many tokens may take."""
        if not (self.writes and tokens):
            return timeout.reply
        reading = prompt / self.reads if self.reads else 0.0
        return max(timeout.reply, PATIENCE * (reading + tokens / self.writes))


@cache
def pace_at(base_url: str, model: str) -> Pace:
    """Return the measured times of this model at this endpoint, shared by all callers in this process."""
    del base_url, model
    return Pace()


def _blend(known: float, seen: float) -> float:
    return (known + seen) / 2 if known else seen


NOTHING = Usage()
SHORTEST_WAIT = 0.1
BAD_REPLIES = 3
SILENCES = 2
"""Attempts where each of them may wait for minutes in vain."""
LEAST_ROOM = 1024
LEAST_LEFT = 100
"""Tokens of a budget for which it is not worth to ask again."""


class EmptyReply(BadReply):
    """A reply without text and without calls. `completion` is the reply, for callers that can use it."""

    def __init__(self, completion: Completion, *, where: str) -> None:
        super().__init__("the model's reply is empty", where=where, retryable=True)
        self.completion = completion


@dataclass(slots=True)
class Retrying:
    """A policy that is asked through the gate of its endpoint, if there is one (`RateLimiter.ask`), and of which
    retryable failures are tried again, `attempts` times in all.

    Waits grow by full jitter up to 8 s. A server's Retry-After is obeyed; one of more than 60 s fails at once and names
    the time. Replies that are not completions are requested three times at most; late ones twice, and so is a port of
    this machine where nothing has ever answered. An empty reply is requested once more, with more tokens if it was
    nothing but reasoning; after that it is returned unchanged. A streamed reply that breaks off is requested again; the
    watcher then gets the new reply from its beginning.

    `sleep` and `jitter` (a number from 0 to 1) are arguments so that a test need not wait. `answered` says whether the
    endpoint has ever replied.
    """

    policy: Policy
    gate: "Callable[[], RateLimiter] | None" = None
    where: str = ""
    patient: bool = True
    attempts: int = 5
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random
    answered: bool = False

    @property
    def model(self) -> str:
        return self.policy.model

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        lost = NOTHING
        empty = False
        attempt = 0
        while True:
            attempt += 1
            try:
                if self.gate:
                    completion = await self.gate().ask(self.policy, request, watch, self.where, patient=self.patient)
                else:
                    completion = await self.policy.complete(request, watch)
                self.answered = True
                return replace(completion, usage=lost + completion.usage) if lost != NOTHING else completion
            except EmptyReply as reply:
                said = reply.completion
                lost += said.usage
                left = None if request.left is None else request.left - lost.tokens - said.usage.prompt_tokens
                more = roomier(request, said, left)
                if empty or more is None or (left is not None and left < LEAST_LEFT):
                    return replace(said, usage=lost)
                empty, request = True, more
            except EndpointError as error:
                lost += Usage(int(error.completion_tokens > 0), error.prompt_tokens, error.completion_tokens)
                limit = self._attempts(error)
                if not error.retryable or attempt >= limit:
                    error.prompt_tokens, error.completion_tokens = lost.prompt_tokens, lost.completion_tokens
                    if error.retryable:
                        error.fix = error.fix or "try again later"
                        error.what = f"{error.what}; asked {attempt} times"
                    raise
                wait = self._wait(error, attempt)
                if request.tell and (wait >= REPORTED_WAIT or attempt > 1 or isinstance(error, TimedOut)):
                    request.tell(f"{error.what}; trying again in {max(1, round(wait))} s ({attempt + 1} of {limit})")
                await self.sleep(wait)

    def _attempts(self, error: EndpointError) -> int:
        """How often what failed so is asked in all."""
        usual = self.attempts
        if isinstance(error, BadReply | TimedOut):
            usual = BAD_REPLIES if isinstance(error, BadReply) else SILENCES
        return min(error.tries if error.tries and not self.answered else usual, self.attempts)

    async def aclose(self) -> None:
        await self.policy.aclose()

    def _wait(self, error: EndpointError, attempt: int) -> float:
        """Seconds until the next attempt: what the server asks for, else a random share of a doubling limit."""
        if error.retry_after is None:
            limit = min(GROWN_WAIT, FIRST_WAIT * 2.0 ** (attempt - 1))
            return max(SHORTEST_WAIT, limit * self.jitter())
        if error.retry_after > LONGEST_WAIT:
            until = datetime.now().astimezone() + timedelta(seconds=error.retry_after)
            error.what = f"{error.what}; the endpoint accepts no requests until {until:%Y-%m-%d %H:%M %Z}"
            raise error
        return error.retry_after + SHORTEST_WAIT * self.jitter()


def roomier(request: Request, reply: Completion, left: int | None = None) -> Request | None:
    """The request for who said nothing, once more; None if it would come to the same.

    Where the reply was nothing but thought it is allowed more: what the request says (`again`), else twice as much, and
    never more than are `left`.
    """
    asked = request.sampling.max_tokens
    thought = bool(reply.reasoning) or reply.finish == "length"
    if not thought or (asked is None and reply.finish != "length"):
        return request
    allowed = request.again or max(2 * (asked or reply.usage.completion_tokens), LEAST_ROOM)
    if reply.finish == "length" and allowed <= (asked or 0):
        return None
    allowed = max(allowed, asked or 0)
    allowed = allowed if left is None else min(allowed, left)
    return replace(request, sampling=replace(request.sampling, max_tokens=allowed))


# the request itself is at fault, and another model would be asked the same
_OF_THE_REQUEST = frozenset({400, 413, 422})


@dataclass(slots=True)
class Fallback:
    """Policies in order of preference, for one run: a policy that has replaced another does so to the end of the run.

    Each reply of a policy other than the first carries a note of why. `model` names them all, so that a resumed run
    makes the same requests. If the time is limited, a policy with others after it may take half of the remaining time
    until it has replied once: a silent model would otherwise use up their time.
    """

    policies: tuple[Policy, ...]
    _at: int = 0
    _notes: tuple[str, ...] = ()
    _replied: int = -1

    @property
    def model(self) -> str:
        return ",".join(policy.model for policy in self.policies)

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        while True:
            at = self._at
            policy = self.policies[at]
            began = time.monotonic()
            try:
                completion = await self._ask(at, request, watch)
            except EndpointError as error:
                if request.seconds is not None:
                    request = replace(request, seconds=max(0.0, request.seconds - (time.monotonic() - began)))
                if at + 1 == len(self.policies) or not _down(error):
                    raise
                if self._at == at:
                    self._at = at + 1
                    text = f"{policy.model}: {error.what}; {self.policies[at + 1].model} is used from now on"
                    self._notes = (*self._notes, text)
            else:
                self._replied = max(self._replied, at)
                model = completion.model or policy.model
                return replace(completion, model=model, notes=(*self._notes, *completion.notes))

    async def _ask(self, at: int, request: Request, watch: Watch | None) -> Completion:
        if request.seconds is None or at + 1 == len(self.policies) or at == self._replied:
            return await self.policies[at].complete(request, watch)
        share = request.seconds / 2
        try:
            async with asyncio.timeout(share) as limit:
                return await self.policies[at].complete(replace(request, seconds=share), watch)
        except TimeoutError:
            if not limit.expired():
                raise
            raise EndpointError(f"no reply within {share:.3g} s, half of the time that was left") from None

    async def aclose(self) -> None:
        for policy in self.policies:
            await policy.aclose()

    def for_run(self) -> "Fallback":
        """The same policies, the first one speaking; they are shared and closed by their owner."""
        return Fallback(self.policies)


def _down(error: EndpointError) -> bool:
    of_the_request = isinstance(error, ContextOverflow | MediaRefused | ToolsRefused)
    return not of_the_request and error.status not in _OF_THE_REQUEST
