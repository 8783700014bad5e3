"""Retries, in one place: what may succeed later is asked again, with growing waits."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hira.errors import BadReply, EndpointError
from hira.policies.reply import EmptyReply, again
from hira.policy import Completion, Policy, Request, Watch

LONGEST_WAIT = 60.0
SHORTEST_WAIT = 0.1
FIRST_WAIT = 0.5
GROWN_WAIT = 8.0
BAD_REPLIES = 3
LEAST_ROOM = 1024
LEAST_LEFT = 100
"""Tokens of a budget for which it is not worth to ask again."""
TOLD_WAIT = 1.0
"""Seconds from which on a first wait is told to the person who waits."""


@dataclass(slots=True)
class Retrying:
    """A policy that asks again; see `retrying`. `answered` once it has."""

    policy: Policy
    attempts: int
    sleep: Callable[[float], Awaitable[None]]
    jitter: Callable[[], float]
    answered: bool = False

    @property
    def model(self) -> str:
        return self.policy.model

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        empty: Completion | None = None
        attempt = 0
        while True:
            attempt += 1
            try:
                completion = await self.policy.complete(request, watch)
                self.answered = True
                return again(empty, completion) if empty else completion
            except EmptyReply as reply:
                if empty:
                    return again(empty, reply.completion)
                empty = reply.completion
                left = None if request.left is None else request.left - empty.usage.tokens - empty.usage.prompt_tokens
                if left is not None and left < LEAST_LEFT:
                    return empty
                request = roomier(request, empty, left)
            except EndpointError as error:
                usual = BAD_REPLIES if isinstance(error, BadReply) else self.attempts
                limit = min(error.tries if error.tries and not self.answered else usual, self.attempts)
                if not error.retryable:
                    raise
                if attempt >= limit:
                    error.fix = error.fix or "try again later"
                    error.what = f"{error.what}; asked {attempt} times"
                    raise
                wait = self._wait(error, attempt)
                if request.tell and (wait >= TOLD_WAIT or attempt > 1):
                    request.tell(f"{error.what}; trying again in {max(1, round(wait))} s ({attempt + 1} of {limit})")
                await self.sleep(wait)

    async def aclose(self) -> None:
        await self.policy.aclose()

    def _wait(self, error: EndpointError, attempt: int) -> float:
        """Seconds until the next attempt: what the server asks for, else a random share of a doubling limit."""
        if error.retry_after is None:
            limit = min(GROWN_WAIT, FIRST_WAIT * 2.0 ** (attempt - 1))
            return max(SHORTEST_WAIT, limit * self.jitter())
        if error.retry_after > LONGEST_WAIT:
            until = datetime.now().astimezone() + timedelta(seconds=error.retry_after)
            error.what = f"{error.what}; the endpoint wants no requests until {until:%Y-%m-%d %H:%M %Z}"
            raise error
        return error.retry_after + SHORTEST_WAIT * self.jitter()


def roomier(request: Request, reply: Completion, left: int | None = None) -> Request:
    """The request, allowing twice the tokens if the reply was nothing but thought, and never more than are `left`."""
    if not reply.reasoning or (request.sampling.max_tokens is None and reply.finish != "length"):
        return request
    allowed = max(2 * (request.sampling.max_tokens or reply.usage.completion_tokens), LEAST_ROOM)
    allowed = allowed if left is None else min(allowed, left)
    return replace(request, sampling=replace(request.sampling, max_tokens=allowed))


def retrying(
    policy: Policy,
    *,
    attempts: int = 5,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    jitter: Callable[[], float] = random.random,
) -> Policy:
    """The policy, with retryable failures of its endpoint tried again, `attempts` times in all.

    Waits grow by full jitter up to 8 s. A server's Retry-After is obeyed; one of more than 60 s fails at once and
    says until when. Replies that are no completion are asked for three times at most, and a port of this machine where
    nothing has ever answered twice. A reply that says nothing is asked for once more, and allowed more tokens if it was
    nothing but thought; after that it is handed on as it is. A streamed reply that breaks off is asked for anew: the
    watcher is then told the new reply from its beginning.

    `sleep` and `jitter` (a number from 0 to 1) are arguments so that a test can do without waiting.
    """
    return Retrying(policy, attempts, sleep, jitter)
