"""`hira-train doctor`: what is known to go wrong in training agents, looked for in a configuration and in a run.

Each rule is one function over what was `Seen` (no torch, no network), and says what it saw and what to do.
"""

from collections.abc import Sequence

from hira.trainers.doctor.after import DURING
from hira.trainers.doctor.before import BEFORE
from hira.trainers.doctor.seen import Finding, Rule, Seen

RULES: tuple[Rule, ...] = (*BEFORE, *DURING)


def examined(seen: Seen) -> list[Finding]:
    """What every rule has to say, in a fixed order."""
    return [rule(seen) for rule in RULES]


def worst(found: Sequence[Finding]) -> str:
    verdicts = {one.verdict for one in found}
    return next((one for one in ("fault", "warning") if one in verdicts), "ok")
