"""Several models for one role: the next one speaks when the one before it is down."""

import asyncio
import time

from hira.core.dataclasses import dataclass, replace
from hira.core.errors import ContextOverflow, EndpointError, MediaRefused, ToolsRefused
from hira.core.policy import Completion, Policy, Request, Watch

# the request itself is at fault, and another model would be asked the same
_OF_THE_REQUEST = frozenset({400, 413, 422})


def names_of(model: str) -> list[str]:
    """The models of a setting such as "gpt-5, qwen3-32b", the first choice first.

    >>> names_of("gpt-5, qwen3-32b")
    ['gpt-5', 'qwen3-32b']
    """
    return [name.strip() for name in model.split(",") if name.strip()]


def place_of(name: str) -> tuple[str, str]:
    """Model and base URL of one entry of such a setting; the URL is empty where the entry has none.

    >>> place_of("qwen3-32b@http://127.0.0.1:8000/v1")
    ('qwen3-32b', 'http://127.0.0.1:8000/v1')
    """
    model, at, rest = name.partition("@http")
    return model, f"http{rest}" if at else ""


@dataclass(slots=True)
class Fallback:
    """Policies in order of preference, for one run: who has spoken up for another does so to the end of the run.

    Each reply of another than the first carries a note of why. `model` names them all, so that a run that is resumed
    asks the same. Where the time is limited, one that others stand behind may take half of what is left until it has
    replied once: a model that is silent would else use up what they need.
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
                completion = await self._asked(at, request, watch)
            except EndpointError as error:
                if request.seconds is not None:
                    request = replace(request, seconds=max(0.0, request.seconds - (time.monotonic() - began)))
                if at + 1 == len(self.policies) or not _down(error):
                    raise
                if self._at == at:
                    self._at = at + 1
                    told = f"{policy.model}: {error.what}; {self.policies[at + 1].model} is used from now on"
                    self._notes = (*self._notes, told)
            else:
                self._replied = max(self._replied, at)
                model = completion.model or policy.model
                return replace(completion, model=model, notes=(*self._notes, *completion.notes))

    async def _asked(self, at: int, request: Request, watch: Watch | None) -> Completion:
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
