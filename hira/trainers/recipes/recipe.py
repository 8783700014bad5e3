"""What a recipe is."""

from collections.abc import Callable
from dataclasses import dataclass

from hira.rewards.reward import Reward
from hira.trainers.group import Credited


@dataclass(frozen=True, slots=True)
class Recipe:
    """`workflow` is run unless another is named; `roles` are trained, None for all; `paid` makes of a reward for right
    answers the one of the recipe; `credit` divides it among the rows, with options of its own."""

    name: str
    workflow: str
    credit: Callable[..., Credited]
    paid: Callable[[Reward], Reward]
    roles: frozenset[str] | None = None
