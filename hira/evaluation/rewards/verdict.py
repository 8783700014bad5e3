"""MarsRL's rewards: each role is paid for what it did itself, not for what came of it later (2511.11373, section 3.2).

A Verifier that calls a right solution wrong is paid nothing, also where the Corrector then writes another right one.
"""

RIGHT = 0.5
"""A solution counts as right from this reward on, where a reward is a share."""


def of_solution(accuracy: float | None, *, complete: bool) -> float | None:
    """Solver and Corrector: what the reference says of the solution, 0 for one that was cut off. None stays None: it
    could not be judged."""
    return accuracy if complete else 0.0


def of_verdict(*, accepts: bool | None, right: bool) -> float:
    """Verifier: 1 if the verdict is true of that solution, 0 if it is not or cannot be read (`accepts` None).

    >>> of_verdict(accepts=False, right=False), of_verdict(accepts=None, right=True)
    (1.0, 0.0)
    """
    return float(accepts is not None and accepts == right)
