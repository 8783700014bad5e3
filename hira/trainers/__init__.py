"""Training of the roles: workflows become rollouts, rollouts rows, rows credit, credit an update of LoRA adapters.

Needs `pip install 'hira[train]'`. Rollouts, rows, credit and the plan are free of torch; TRL only scores tokens on
a GPU. The names below are for recipes of your own (docs/training.md); they are loaded when they are used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hira.evaluation.rewards.answers import RolloutScore
    from hira.trainers.credit import credit_by
    from hira.trainers.recipes import Recipe
    from hira.trainers.rewards import GainOver, Ranked, score_citations

__all__ = ["GainOver", "Ranked", "Recipe", "RolloutScore", "credit_by", "score_citations"]

_HOMES = {
    "GainOver": "hira.trainers.rewards",
    "Ranked": "hira.trainers.rewards",
    "Recipe": "hira.trainers.recipes",
    "RolloutScore": "hira.evaluation.rewards.answers",
    "credit_by": "hira.trainers.credit",
    "score_citations": "hira.trainers.rewards",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
