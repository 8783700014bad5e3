"""`LivePolicy`: the weights in training behind the policy seam, so that the workflows users run become rollouts.

A rollout needs nothing else to become training rows: the completion of every turn carries its token ids, and a turn
whose prompt begins with the ids of the turn before it belongs to the same row.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from hira.core.policy import Completion, Request, Watch, role_of
from hira.policies.local.engine import Engine
from hira.policies.local.policy import SECONDS, LocalPolicy
from hira.policies.local.template import Template

Adapters = Mapping[str, str | None] | str | None


class LivePolicy:
    """One engine and one base for all roles. `adapter` names the LoRA adapter of all roles, or of each by its role,
    with `*` for those that are not named; None is the base alone.

    The `model` of a completion tells who spoke: name, adapter, and how often the weights had been updated by then,
    such as `policy:planner@3`. Pass it as the policy of all roles, or `of(role)` for one of them.
    """

    def __init__(
        self, name: str, tokenizer: Any, engine: Engine, adapter: Adapters = None, *, seconds: float = SECONDS
    ) -> None:
        self.engine = engine
        self.template = Template(tokenizer, where=f"model {name!r}")
        self._name = name
        self._adapters: Mapping[str, str | None] = adapter if isinstance(adapter, Mapping) else {"*": adapter}
        self._policies = {
            one: LocalPolicy(
                f"{name}:{one}" if one else name, self.template, engine, one, seconds=seconds, versioned=True
            )
            for one in dict.fromkeys(self._adapters.values())
        }

    @property
    def model(self) -> str:
        return self._name

    @property
    def counts(self) -> Counter[str]:
        """Turns, rows begun, and rows begun because the run-time prompt no longer began with what was sampled."""
        return sum((policy.conversations.counts for policy in self._policies.values()), Counter())

    @property
    def notices(self) -> tuple[str, ...]:
        """What the chat template will do to rows and calls, one line each."""
        return self.template.notices

    def adapter_of(self, role: str) -> str | None:
        return self._adapters[role] if role in self._adapters else self._adapters["*"]

    def of(self, role: str) -> LocalPolicy:
        """The policy of a role; roles with one adapter share it."""
        return self._policies[self.adapter_of(role)]

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        return await self.of(role_of(request.conversation)).complete(request, watch)

    def count(self, text: str) -> int:
        """Tokens of a text, by the one tokenizer of all roles."""
        return next(iter(self._policies.values())).count(text)

    async def aclose(self) -> None:
        await self.engine.aclose()
