"""What a run may spend. Checked before each call; a reserve always pays for the answer."""

import time
from dataclasses import dataclass, field

from hira.errors import OutOfBudget
from hira.policy import Usage

RESERVE = 0.1


@dataclass(slots=True)
class Budget:
    """Limits of one run: total `tokens`, `cost` in US dollars, `seconds` of wall time, policy `calls`. None: no limit.

    `admit` refuses a call once the limit less the reserve (a tenth) is spent; the call that writes the answer is
    admitted as long as the limit itself is not.
    """

    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    calls: int | None = None
    spent: Usage = field(default=Usage(), init=False)
    began: float = field(default_factory=time.monotonic, init=False)

    def admit(self, *, last: bool = False) -> None:
        """Raise `OutOfBudget` if another call may not be made; `last` is the call that writes the answer."""
        share = 1.0 if last else 1.0 - RESERVE
        elapsed = time.monotonic() - self.began
        for name, limit, spent in (
            ("tokens", self.tokens, self.spent.tokens),
            ("US dollars", self.cost, self.spent.cost or 0.0),
            ("seconds", self.seconds, elapsed),
        ):
            if limit is not None and spent >= limit * share:
                raise OutOfBudget(f"the budget of {limit:g} {name} is used up ({spent:.4g} spent)")
        if self.calls is not None and self.spent.calls >= (self.calls if last else self.calls - 1):
            raise OutOfBudget(f"the budget of {self.calls} calls is used up")

    def charge(self, usage: Usage) -> None:
        self.spent += usage

    def remaining_seconds(self, *, last: bool = False) -> float | None:
        """Wall seconds a call may still take, None without a limit; never negative."""
        if self.seconds is None:
            return None
        share = 1.0 if last else 1.0 - RESERVE
        return max(0.0, self.began + self.seconds * share - time.monotonic())
