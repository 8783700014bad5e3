"""What every reward returns, and how it is asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from hira.agents.trajectory import Rollout


@dataclass(frozen=True, slots=True)
class Score:
    """What a rollout is worth. `value` is None where it could not be judged: then it counts for nothing, not for 0.

    `parts` are what it is made of, by name. `conversations` holds rewards of single conversations, where roles are paid
    for what they did themselves. `why` is for the person who looks at samples.
    """

    value: float | None
    parts: Mapping[str, float] = field(default_factory=dict)
    conversations: Mapping[str, float] = field(default_factory=dict)
    why: str = ""


class Reward(Protocol):
    """Scores a rollout against the reference answers of its question, any of which would do."""

    async def __call__(self, rollout: Rollout, references: tuple[str, ...]) -> Score: ...
