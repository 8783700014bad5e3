"""MaMs (rubrics paper, section 3.4): Search, State and Report agents share what their report is worth by the rubric of
its query; that credit is MATPO's broadcast, over all rows of a rollout.

Paper, Table 4: 8 queries, 8 reports each, lr 1e-6 for all weights, no KL, clip 0.2; 10 turns of 5 calls.
"""

from collections.abc import Sequence

from hira.evaluation.rewards.report import ByRubric, Generated
from hira.evaluation.rewards.reward import Reward
from hira.trainers.credit import matpo
from hira.trainers.credit.matpo import Norm
from hira.trainers.credit.normal import FLOOR, Scale
from hira.trainers.group import Credited, Group
from hira.trainers.recipes.recipe import Judges, Recipe

ROLES = frozenset({"search", "state", "report"})


def broadcast(
    groups: Sequence[Group], *, norm: Norm = "rollout_mean", scale: Scale = "group", floor: float = FLOOR
) -> Credited:
    """One advantage for every row of a rollout, normalised over the reports of a query. The paper says that the reward
    is the report's and not how its rows are weighed: `norm` chooses, as with MATPO."""
    return matpo(groups, planner="search", norm=norm, scale=scale, floor=floor)


def by_rubric(judges: Judges) -> Reward:
    judge = judges.named("mams")
    return ByRubric(judge, Generated(judges.generator or judge))


def _as_it_is(accuracy: Reward) -> Reward:
    return accuracy


RECIPE = Recipe("mams", "mams", broadcast, _as_it_is, ROLES, judged=by_rubric, data="queries")
