"""One endpoint as its callers use it: prompts trimmed to its window, calls within its limits, failures tried again."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from hira.core.errors import BadReply, ContextOverflow, EndpointError, RateLimited, TimedOut
from hira.core.events import log_notice
from hira.core.policy import CallOptions, Completion, Policy, Request, Usage, Watch
from hira.policies.failures import EmptyReply
from hira.policies.fitting import Window
from hira.policies.limited import CROWDED, RateLimiter
from hira.policies.probe import Describes
from hira.policies.waiting import ATTEMPTS, BAD_REPLIES, FIRST_WAIT, GIVE_UP_BEYOND, GROWN_WAIT, SHORTEST_WAIT, SILENCES

NOTHING = Usage()
SHORTENED = 2
"""How often a prompt that is too long is shortened for one reply."""
LEAST_ROOM = 1024
LEAST_LEFT = 100
"""With fewer tokens left in the budget, another request is not worthwhile."""
UNTAUGHT = "the model has no chat template: it is a base model, which only continues text"


@dataclass(slots=True)
class _Attempts:
    """The attempts at one reply so far: their number, what they cost, how often the prompt was shortened, and how often
    in a row the call was `refused` while the endpoint served nobody else."""

    number: int = 1
    lost: Usage = NOTHING
    shortened: int = 0
    refused: int = 0
    emptied: bool = False
    told: bool = False


@dataclass(slots=True)
class Endpoint:
    """A policy that is asked within the limits of its endpoint (`gate`) and its model's window, `attempts` times.
    Without a gate, each call has its own, which has no limit.

    Waits grow by full jitter; `waiting.py` has the numbers. hira waits as long as Retry-After says; if that is too
    long, the call fails at once, with the time. Late replies and replies that are not completions are requested fewer
    times, and so is a port of this machine that has never `answered`. An empty reply is requested once more, with more
    tokens if it was only reasoning; a second one is returned unchanged. A stream that breaks off is requested again
    from its beginning.

    A prompt that the endpoint finds too long is shortened and sent again, twice at most, and the limit is remembered; a
    nearby server is asked for its window before the first call. The conversation and its record stay whole; a notice
    and a note of the completion say that less is sent.

    `sleep` and `jitter` (a number from 0 to 1) are arguments so that a test need not wait.
    """

    policy: Policy
    gate: Callable[[], RateLimiter] = RateLimiter
    where: str = ""
    patient: bool = True
    attempts: int = ATTEMPTS
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random
    answered: bool = False
    window: Window = field(default_factory=Window)
    _described: bool = False

    @property
    def model(self) -> str:
        return self.policy.model

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        call, made, gate = CallOptions.of(watch), _Attempts(), self.gate()
        if not self._described:
            await self._learn()
        request = self.window.leave_room(request)
        while True:
            sent = self.window.fit(request)
            if sent is not request and call.tell and not made.told:
                call.tell(self._note)
                made.told = True
            served = gate.served
            trial = await gate.enter(self.where, patient=self.patient, tell=call.tell)
            began = gate.clock()
            try:
                completion = await self.policy.complete(sent, call)
            except EndpointError as error:
                gate.record_failure(error, request, began)
                made.refused = 0 if gate.served > served else made.refused + 1
                has_room = made.refused == 0 or (gate.flying > 1 and made.refused <= CROWDED)
                crowded = isinstance(error, RateLimited) and error.retryable and has_room
                failure = error
            else:
                gate.record_success()
                self.answered = True
                return self._add(completion, made, shortened=sent is not request)
            finally:
                gate.leave(trial=trial)
            if crowded:  # others are served: this call waits for its turn; a pause that was asked for is at the entry
                if failure.retry_after is None:
                    longest = min(GROWN_WAIT, FIRST_WAIT * 2.0**made.refused)
                    await gate.sleep(longest * random.uniform(0.5, 1.0))  # noqa: S311 - spreads calls over time
                continue
            made.refused = 0
            if isinstance(failure, EmptyReply):
                more = self._ask_for_more(failure.completion, request, call, made)
                if more is None:
                    return self._add(replace(failure.completion, usage=NOTHING), made, shortened=sent is not request)
                request = more
            else:
                await self._prepare_again(failure, sent, call, made, gate.endpoint or self.model)

    async def aclose(self) -> None:
        await self.policy.aclose()

    @property
    def _note(self) -> str:
        return f"{self.model}: the prompt is longer than the model's window; its oldest parts are removed"

    def _add(self, completion: Completion, made: _Attempts, *, shortened: bool) -> Completion:
        """The completion, with the cost of earlier attempts and a note if the prompt was shortened."""
        if shortened:
            completion = replace(completion, notes=(*completion.notes, self._note))
        return completion if made.lost == NOTHING else replace(completion, usage=made.lost + completion.usage)

    def _ask_for_more(self, reply: Completion, request: Request, call: CallOptions, made: _Attempts) -> Request | None:
        """The request to repeat after an empty reply; None if another would change nothing. If the reply was only
        reasoning, it may have more tokens: `call.again`, else twice as many, and never more than are left."""
        made.lost += reply.usage
        left = None if call.left is None else call.left - made.lost.tokens - reply.usage.prompt_tokens
        if made.emptied or (left is not None and left < LEAST_LEFT):
            return None
        made.emptied = True
        limit, cut = request.sampling.max_tokens, reply.finish == "length"
        if not (cut or (reply.reasoning and limit is not None)):
            return request
        allowed = call.again or max(2 * (limit or reply.usage.completion_tokens), LEAST_ROOM)
        if cut and allowed <= (limit or 0):
            return None
        allowed = max(allowed, limit or 0)
        allowed = allowed if left is None else min(allowed, left)
        return replace(request, sampling=replace(request.sampling, max_tokens=allowed))

    async def _prepare_again(
        self, error: EndpointError, sent: Request, call: CallOptions, made: _Attempts, endpoint: str
    ) -> None:
        """Shorten the prompts, or wait until the next attempt. Raises the error after the last one."""
        if isinstance(error, ContextOverflow):
            made.shortened += 1
            if made.shortened > SHORTENED or not self.window.narrow(sent, error):
                raise error
            return
        made.lost += Usage(int(error.completion_tokens > 0), error.prompt_tokens, error.completion_tokens)
        usual = self.attempts
        if isinstance(error, BadReply | TimedOut):
            usual = BAD_REPLIES if isinstance(error, BadReply) else SILENCES
        limit = min(error.tries if error.tries and not self.answered else usual, self.attempts)
        if not error.retryable or made.number >= limit:
            error.prompt_tokens, error.completion_tokens = made.lost.prompt_tokens, made.lost.completion_tokens
            if error.retryable:
                error.fix = error.fix or "try again later"
                error.what = f"{error.what}; asked {made.number} times"
            raise error
        if error.retry_after is None:  # a random share of a doubling limit
            longest = min(GROWN_WAIT, FIRST_WAIT * 2.0 ** (made.number - 1))
            wait = max(SHORTEST_WAIT, longest * self.jitter())
        elif error.retry_after > GIVE_UP_BEYOND:
            until = datetime.now().astimezone() + timedelta(seconds=error.retry_after)
            error.what = f"{error.what}; the endpoint accepts no requests until {until:%Y-%m-%d %H:%M %Z}"
            raise error
        else:
            wait = error.retry_after + SHORTEST_WAIT * self.jitter()
        made.number += 1
        what = f"{error.what}; trying again in {max(1, round(wait))} s ({made.number} of {limit})"
        if call.tell:
            call.tell(what, endpoint)
        else:
            log_notice(call.run, what)
        await self.sleep(wait)

    async def _learn(self) -> None:
        """Ask a server nearby, once, for its model's window. Raises `EndpointError` for a model that cannot chat."""
        self._described = True
        if not isinstance(self.policy, Describes):
            return
        told = await self.policy.describe_model()
        self.window.size = told.window
        if told.untaught:
            self._described = False
            fix = "serve its instruct version, or give the server a template (llama.cpp: --chat-template-file FILE)"
            raise EndpointError(UNTAUGHT, where=self.where or f"model {self.model!r}", fix=fix)
