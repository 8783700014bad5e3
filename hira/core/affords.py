"""A check that a budget pays for optional calls."""

from contextlib import ExitStack

from hira.core.budget import Budget, CallNeed, Spending
from hira.core.errors import OutOfBudget


def affords(budget: Budget, *calls: CallNeed) -> bool:
    """Return whether the budget pays for all of these calls and leaves its reserve."""
    with ExitStack() as held:
        try:
            for call in calls:
                held.enter_context(Spending(budget, call))
        except OutOfBudget:
            return False
    return True
