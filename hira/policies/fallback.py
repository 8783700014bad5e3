"""Several models for one role: the next one is asked when one is down."""

import asyncio
import time
from dataclasses import dataclass, replace

from hira.core.errors import ContextOverflow, EndpointError, MediaRefused, ToolsRefused
from hira.core.policy import CallOptions, Completion, Policy, Request, Watch

# the request itself is at fault, and another model would be asked the same
_OF_THE_REQUEST = frozenset({400, 413, 422})


@dataclass(slots=True)
class Fallback:
    """Policies in order of preference, for one run: a policy that has replaced another does so to the end of the run,
    and its replies carry a note of why. `model` names them all, so that a resumed run makes the same requests. If the
    time is limited, a policy with others after it may take half of the remaining time until it has replied once."""

    policies: tuple[Policy, ...]
    _at: int = 0
    _notes: tuple[str, ...] = ()
    _replied: int = -1

    @property
    def model(self) -> str:
        return ",".join(policy.model for policy in self.policies)

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        call = CallOptions.of(watch)
        while True:
            index = self._at
            policy = self.policies[index]
            began = time.monotonic()
            try:
                completion = await self._ask(index, request, call)
            except EndpointError as error:
                if call.seconds is not None:
                    call = replace(call, seconds=max(0.0, call.seconds - (time.monotonic() - began)))
                of_the_request = isinstance(error, ContextOverflow | MediaRefused | ToolsRefused)
                of_the_request = of_the_request or error.status in _OF_THE_REQUEST
                if index + 1 == len(self.policies) or of_the_request:
                    raise
                if self._at == index:
                    self._at = index + 1
                    text = f"{policy.model}: {error.what}; {self.policies[index + 1].model} is used from now on"
                    self._notes = (*self._notes, text)
            else:
                self._replied = max(self._replied, index)
                model = completion.model or policy.model
                return replace(completion, model=model, notes=(*self._notes, *completion.notes))

    async def _ask(self, index: int, request: Request, call: CallOptions) -> Completion:
        if call.seconds is None or index + 1 == len(self.policies) or index == self._replied:
            return await self.policies[index].complete(request, call)
        share = call.seconds / 2
        try:
            async with asyncio.timeout(share) as limit:
                return await self.policies[index].complete(request, replace(call, seconds=share))
        except TimeoutError:
            if not limit.expired():
                raise
            raise EndpointError(f"no reply within {share:.3g} s, half of the time that was left") from None

    async def aclose(self) -> None:
        for policy in self.policies:
            await policy.aclose()

    def for_run(self) -> "Fallback":
        """The same policies, beginning with the first; their owner closes them."""
        return Fallback(self.policies)
