"""The configuration of a role, and the options of a run."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from hira.agents.trajectory import Rejected, Subtask
from hira.core.budget import ReplyBound
from hira.core.hooks import NO_HOOKS, ApproveTool, Hooks, Refusal
from hira.core.policy import Policy, Sampling
from hira.core.prices import NO_PRICES, Price, Prices
from hira.evidence import Verifier
from hira.policies.dialects import NATIVE, Dialect
from hira.policies.facts import ModelFacts
from hira.policies.names import names_of

if TYPE_CHECKING:
    from hira.agents.output_type import OutputType

Continuation = Literal["turns", "chain"]
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
    facts: ModelFacts = field(default_factory=ModelFacts)
    """The facts about the model; those of a program's own policy are kept in no file."""

    @property
    def price(self) -> Price | None:
        """The price of the policy; of several models, that of the first with a known price."""
        return self.prices.of(*names_of(self.policy.model))


Verify = Literal["lexical", "model", "off"]
Decisions = Sequence[Subtask | Rejected | Refusal]
Approve = Callable[[list[Subtask]], Decisions | Awaitable[Decisions]]
"""Asks a person about subtasks that are to be handed out. One decision for each, in their order: the subtask as it is,
with another text, or a refusal."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The settings that stay the same throughout a run. A session has one object for all its runs."""

    verify: Verify = "lexical"
    """How the answer is checked."""
    verifier: Verifier | None = None
    """The program's own verifier, in place of `verify`."""
    exam: bool = True
    """The verdicts of a model count only if it has passed an exam."""
    evidence: int = 0
    """A model scores and condenses this many passages of each search; 0 leaves them as they are."""
    rewrite: bool = False
    """A model adds queries to each search."""
    instructions: str = ""
    """Additional instructions for the roles that plan and answer."""
    output: "OutputType | None" = None
    """The type of the answer's value."""
    stream: bool = False
    """The models' text is sent to the readers of the events as it arrives."""
    approve: Approve | None = None
    """Decides about every subtask before it is handed out; None approves all."""
    approve_tool: ApproveTool | None = None
    """Decides about each call of a tool that needs approval."""
    hooks: Hooks = NO_HOOKS
    """See tool calls and turns, and may change them."""
    deps: Any = None
    """The program's own object, for its tools and hooks."""
