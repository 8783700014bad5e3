"""Recipes: the trained workflow, the reward of its rollouts, and the roles' shares in it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from hira.agents.run_context import RoleConfig
from hira.core.errors import UsageError
from hira.evaluation.rewards.answers import Reward
from hira.evaluation.rewards.rubrics import GENERAL_RUBRICS, ByRubric, Generated, Hybrid, RewardWeights, write_general
from hira.trainers.configuration import RewardConfig
from hira.trainers.credit import grpo, mars, marsrl, matpo
from hira.trainers.credit.grpo import FLOOR, Scale
from hira.trainers.credit.matpo import Norm
from hira.trainers.rows import Credited, Group
from hira.workflows import BuiltIn
from hira.workflows.mams import RubricWriting
from hira.workflows.mams.rubrics import WRITER

Data = Literal["answers", "pairs", "queries"]


@dataclass(frozen=True, slots=True)
class Judges:
    """The models that score answers, None if not configured, and the configuration of the reward."""

    part: RewardConfig
    judge: RoleConfig | None = None
    generator: RoleConfig | None = None

    def require(self, recipe: str) -> RoleConfig:
        """Return the judge. Raises `UsageError` without one."""
        if self.judge is None:
            fix = 'write judge = "MODEL" in [reward], and judge_url for an endpoint'
            raise UsageError(f"the recipe {recipe!r} needs a judge", fix=fix)
        return self.judge


@dataclass(frozen=True, slots=True)
class Recipe:
    """`workflow` runs unless another is named; `roles` are trained, None for all; `credit` divides a rollout's reward
    among its rows, with its own options.

    The reward is for right answers, with the share `format` for calls that succeed; a judge applies the paper's
    `criteria`. `judged` replaces that reward. `own` is a workflow that only the trainer runs. With `staged`, groups
    consist of the outputs of each step (`hira.trainers.agentic`). `data` is the kind of training data: questions with
    answers, preferences, or queries alone.
    """

    name: str
    workflow: str
    credit: Callable[..., Credited]
    roles: frozenset[str] | None = None
    format: float = 0.0
    judged: Callable[[Judges], Reward] | None = None
    own: Callable[[], BuiltIn] | None = None
    data: Data = "answers"
    criteria: str = "hira"
    staged: bool = False


GRPO = Recipe("grpo", "react", grpo)
"""Every role is compared with itself, over conversations with the same first messages."""

MATPO = Recipe("matpo", "matpo", matpo, format=0.1, criteria="simpleqa")
"""MATPO (2510.04678): planner and workers are one policy, and all get the reward of the planner's answer."""

MARS = Recipe("mars", "mars", mars, frozenset({"system1", "system2"}), criteria="hle")
"""MARS (2510.04935): System 2 reasons, System 1 reads for it. Each is compared with itself; their objectives are added.
Only right answers are rewarded."""

MARSRL = Recipe("marsrl", "marsrl", marsrl, frozenset({"solver", "verifier", "corrector"}), staged=True)
"""MarsRL (2511.11373): Solver, Verifier and Corrector are each rewarded for their own part, in groups that share their
input; verdicts by whether they are true (`hira.evaluation.rewards.answers`).

Paper, section 4.1: 128 prompts, 8 outputs each, replies of 64k tokens in up to 4 segments, inputs of up to 32k. It
samples at temperature 0.85; here roles are sampled from the distribution that is trained.
"""


def hybrid_reward(judges: Judges) -> Reward:
    """Return the reward R = R_pref + R_llm + R_fmt (rubrics paper, section 3.3)."""
    part = judges.part
    return Hybrid(judges.require("rubric"), RewardWeights(part.preference, part.quality, part.judge_scale))


RUBRIC = Recipe(
    "rubric", "direct", grpo, frozenset({WRITER}), judged=hybrid_reward, own=RubricWriting, data="pairs"
)  # fmt: skip
"""Rubric generators (rubrics paper, section 3.3): several rubrics for each query are compared with one another, and
rewarded for ordering two reports as people did, for their quality, and for being valid.

GSPO is the same with `train.ratio="sequence"` (section 4.4). Paper, Table 3: 32 queries, 8 rubrics each, lr 1e-6 for
all weights, no KL, clip 0.2, replies of 8,192 tokens.
"""


def broadcast(
    groups: Sequence[Group], *, norm: Norm = "rollout_mean", scale: Scale = "group", floor: float = FLOOR
) -> Credited:
    """Give every row of a rollout one advantage, normalised over the reports of a query. The paper gives the reward of
    the report and not the weights of its rows: `norm` chooses, as with MATPO."""
    return matpo(groups, planner="search", norm=norm, scale=scale, floor=floor)


def rubric_reward(judges: Judges) -> Reward:
    """Return the reward by the rubric of a query, or by general rubrics if the generator is "general" (Table 2)."""
    judge = judges.require("mams")
    general = judges.part.generator == GENERAL_RUBRICS
    return ByRubric(judge, write_general if general else Generated(judges.generator or judge))


MAMS = Recipe(
    "mams", "mams", broadcast, frozenset({"search", "state", "report"}), judged=rubric_reward, data="queries"
)  # fmt: skip
"""MaMs (rubrics paper, section 3.4): Search, State and Report agents share the score of their report; that credit is
MATPO's broadcast over all rows of a rollout.

Paper, Table 4: 8 queries, 8 reports each, lr 1e-6 for all weights, no KL, clip 0.2; 10 turns of 5 calls.
"""

REPORT = Recipe("report", "react-report", grpo, judged=rubric_reward, data="queries")
"""The ReAct workflow trained by rubrics, with which the paper compares MaMs (rubrics paper, Table 2)."""

RECIPES: dict[str, Recipe] = {one.name: one for one in (GRPO, MATPO, MARS, MARSRL, RUBRIC, MAMS, REPORT)}
