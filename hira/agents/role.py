"""The configuration of a role."""

from dataclasses import dataclass, field
from typing import Literal

from hira.core.budget import ReplyBound
from hira.core.policy import Policy, Sampling
from hira.core.prices import NO_PRICES, Price, Prices
from hira.policies.dialects import NATIVE, Dialect
from hira.policies.facts import ModelFacts
from hira.policies.names import names_of

Continuation = Literal["turns", "chain"]
VERIFIER = "verifier"
EVIDENCE = "evidence"
OUTPUT = "output"
"""The role that writes a value of the output type; the run's model speaks for it unless another is named."""


@dataclass(frozen=True, slots=True)
class RoleConfig:
    """The configuration of one role."""

    policy: Policy
    sampling: Sampling = Sampling()
    dialect: Dialect = NATIVE
    """How tool calls are written."""
    continuation: Continuation = "turns"
    """`turns` puts a tool's result into the next chat message and works everywhere; `chain` continues one chain of
    reasoning, as the HiRA paper does, and needs an endpoint that continues a message."""
    prices: Prices = NO_PRICES
    otherwise: str = ""
    """The next dialect if the endpoint refuses the tool calls of `dialect`, or if the model writes none that can be
    read; without one, a dialect that somebody chose is kept."""
    replies: ReplyBound | None = None
    """Bounds each reply for which the sampling has no bound; None leaves it to the policy."""
    place: tuple[str, str] = ("", "")
    """Where hira remembers facts about the model: its base URL and its name, empty if nowhere."""
    facts: ModelFacts = field(default_factory=ModelFacts)
    """The facts about the model."""

    @property
    def price(self) -> Price | None:
        """The price of the policy; of several models, that of the first with a known price."""
        return self.prices.of(*names_of(self.policy.model))
