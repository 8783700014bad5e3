"""A policy that is asked no more than so often at once, by all who ask it together."""

import asyncio
from dataclasses import dataclass, field, replace

from hira.agents.run_context import RoleConfig
from hira.core.errors import UsageError
from hira.core.policy import Completion, Policy, Request, Watch


@dataclass(slots=True)
class Gated:
    """`most` calls are under way, the others wait for their turn. A group of rollouts ends at one time, and each report
    is judged by twenty items: without a gate thousands of calls come at once, and late ones run out of their time."""

    policy: Policy
    most: int
    _gate: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        if self.most < 1:
            raise UsageError(f"`concurrency` must be at least 1, got {self.most}", fix="give 1 or more")
        self._gate = asyncio.Semaphore(self.most)

    @property
    def model(self) -> str:
        return self.policy.model

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        async with self._gate:
            return await self.policy.complete(request, watch)

    async def aclose(self) -> None:
        await self.policy.aclose()


def limit_calls(part: RoleConfig, most: int) -> RoleConfig:
    """The same part with a policy that takes `most` calls at once."""
    return replace(part, policy=Gated(part.policy, most))
