"""Credit: groups of attempts become rows with advantages and weights. Pure functions, one file a scheme.

Each takes the groups of one update and returns `Credited`: weighted rows and their normaliser Z, in the one form of
`hira.trainers.rows.Weighted`. Whatever a paper normalises by is a choice of weights and of Z.
"""

from collections.abc import Callable, Sequence

from hira.trainers.credit.grpo import grpo
from hira.trainers.credit.mars import mars
from hira.trainers.credit.marsrl import marsrl
from hira.trainers.credit.matpo import matpo
from hira.trainers.rows import Credited, Group

Credit = Callable[[Sequence[Group]], Credited]

__all__ = ["Credit", "grpo", "mars", "marsrl", "matpo"]
