"""MarsRL: Solver, Verifier and Corrector are each paid for their own part, in groups that share their input.

Paper, section 4.1: 128 prompts, 8 outputs each, replies of 64k tokens in up to 4 segments, inputs of up to 32k. It
samples at temperature 0.85; here roles are sampled from the distribution that is trained.
"""

from hira.evaluation.rewards.reward import Reward
from hira.trainers.credit import marsrl
from hira.trainers.recipes.recipe import Recipe


def _as_it_is(accuracy: Reward) -> Reward:
    """Of solutions; verdicts are paid by whether they are true of them (`hira.evaluation.rewards.verdict`)."""
    return accuracy


ROLES = frozenset({"solver", "verifier", "corrector"})
RECIPE = Recipe("marsrl", "marsrl", marsrl, _as_it_is, ROLES, staged=True)
