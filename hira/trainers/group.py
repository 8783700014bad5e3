"""Groups: all attempts at one question, as credit is worked out from them. Plain data, without torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from hira.trainers.rows import Row

Status = Literal["ok", "agent_failed", "infra_failed"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One rollout, as credit sees it.

    `ok` and `agent_failed` (reward 0) count; `infra_failed` leaves the mean, the deviation and the loss, and so does
    an attempt whose judge failed (`reward` None). `rewards` are those of single conversations, where roles are paid
    for themselves.
    """

    number: int
    rows: tuple[Row, ...]
    reward: float | None
    status: Status = "ok"
    rewards: Mapping[str, float] = field(default_factory=dict)

    @property
    def counts(self) -> bool:
        return self.status != "infra_failed" and self.reward is not None

    def paid(self, conversation: str) -> float:
        """What the conversation earned: its own reward, else the rollout's."""
        assert self.reward is not None  # noqa: S101 - asked only of attempts that count
        return self.rewards.get(conversation, self.reward)


@dataclass(frozen=True, slots=True)
class Group:
    """All attempts at one question."""

    problem: str
    attempts: tuple[Attempt, ...]

    @property
    def counting(self) -> list[Attempt]:
        return [attempt for attempt in self.attempts if attempt.counts]


class Key(NamedTuple):
    """Who is compared with whom: the problem, the role, and what names the exact input ("" where inputs differ)."""

    problem: str
    role: str
    input: str = ""


@dataclass(frozen=True, slots=True)
class Weighted:
    """A row with its credit: `advantage` A and `weight` w of the loss

        L = -(1/Z) Σ_i Σ_t m_it · min(ρ_it w_i A_i, clip(ρ_it, 1-ε_low, 1+ε_high) w_i A_i)

    where m is the row's own mask. `group` says whom it was compared with.
    """

    row: Row
    group: Key
    reward: float
    advantage: float
    weight: float


@dataclass(frozen=True, slots=True)
class Credited:
    """The rows of an update with their normaliser Z, and what was left out.

    `sizes` are the sizes of all groups that were compared, `dead` those without a signal, `singletons` members that
    nobody could be compared with, `excluded` attempts that do not count, `told` what else is to be told.
    """

    rows: tuple[Weighted, ...]
    normaliser: float
    sizes: tuple[int, ...] = ()
    dead: int = 0
    singletons: int = 0
    excluded: int = 0
    told: Mapping[str, float] = field(default_factory=dict)
