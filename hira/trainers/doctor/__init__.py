"""`hira-train doctor`: what is known to go wrong in training agents, looked for in a configuration and in a run.

All rules are rows of one table (`hira.trainers.doctor.rules`) over what was `Seen`, without torch or network.
"""

from collections.abc import Sequence

from hira.trainers.doctor.rules import RULES, examine
from hira.trainers.doctor.seen import Finding

__all__ = ["RULES", "examine", "worst"]


def worst(found: Sequence[Finding]) -> str:
    verdicts = {one.verdict for one in found}
    return next((one for one in ("fault", "warning") if one in verdicts), "ok")
