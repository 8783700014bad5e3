"""Credit: groups of attempts become rows with advantages and weights. Pure functions, one file per scheme.

Each takes the groups of one update and returns `Credited`: weighted rows and their normaliser Z, in the common form of
`hira.trainers.rows.Weighted`. A paper's normalisation is a choice of weights and of Z.
"""

from collections.abc import Callable, Sequence

from hira.trainers.credit.checks import credit_by
from hira.trainers.credit.grpo import grpo
from hira.trainers.credit.mars import mars
from hira.trainers.credit.marsrl import marsrl
from hira.trainers.credit.matpo import matpo
from hira.trainers.rows import Credited, Group

Credit = Callable[[Sequence[Group]], Credited]

__all__ = ["Credit", "credit_by", "grpo", "mars", "marsrl", "matpo"]
