"""Recipes: the trained workflow, the reward of its rollouts, and the roles' shares in it."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal

from hira.agents.run_context import RoleConfig
from hira.core.errors import UsageError, did_you_mean
from hira.core.loading import load_object
from hira.evaluation.rewards.answers import Reward
from hira.evaluation.rewards.rubrics import GENERAL_RUBRICS, ByRubric, Generated, Hybrid, RewardWeights, write_general
from hira.trainers.configuration import RewardConfig
from hira.trainers.credit import grpo, mars, marsrl, matpo
from hira.trainers.credit.grpo import FLOOR, Scale
from hira.trainers.credit.matpo import Norm
from hira.trainers.rewards import Ranked, ScoreFunction
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
    """How a workflow is trained. A recipe of yours is an object of a module: `recipe = "module:object"`.

    >>> Recipe("rag", reward=lambda rollout, references: float(references[0] in rollout.answer))
    """

    workflow: str
    """The workflow that runs unless the configuration names another: a name, or `module:Object`."""
    reward: ScoreFunction | None = None
    """Scores a rollout (`hira.trainers.rewards`). None is the reward for right answers, which `[reward]` configures."""
    credit: Callable[..., Credited] = grpo
    """Divides the rewards among the rows. Its keyword-only parameters are the keys of `[credit]`."""
    _: KW_ONLY
    name: str = ""
    roles: frozenset[str] | None = None
    """The trained roles, None for all."""
    format: float = 0.0
    """The share of the reward for calls that succeed."""
    judged: Callable[[Judges], Reward] | None = None
    """Makes the reward from the models of `[reward]`, in place of `reward`."""
    make: Callable[[], BuiltIn] | None = None
    """Makes a workflow that only the trainer runs."""
    data: Data = "answers"
    """The training data: questions with answers, pairs of reports, or queries whose answers nobody needs to know."""
    criteria: str = "hira"
    """The paper's criteria, which a judge of answers applies."""
    staged: bool = False
    """Groups consist of the outputs of each step (`hira.trainers.agentic`)."""


GRPO = Recipe("react", name="grpo")
"""Every role is compared with itself, over conversations with the same first messages."""

MATPO = Recipe("matpo", credit=matpo, name="matpo", format=0.1, criteria="simpleqa")
"""MATPO (2510.04678): planner and workers are one policy, and all get the reward of the planner's answer."""

MARS = Recipe("mars", credit=mars, name="mars", roles=frozenset({"system1", "system2"}), criteria="hle")
"""MARS (2510.04935): System 2 reasons, System 1 reads for it. Each is compared with itself; their objectives are added.
Only right answers are rewarded."""

MARSRL = Recipe(
    "marsrl", credit=marsrl, name="marsrl", roles=frozenset({"solver", "verifier", "corrector"}), staged=True
)
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
    "direct", name="rubric", roles=frozenset({WRITER}), judged=hybrid_reward, make=RubricWriting, data="pairs"
)
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
    "mams",
    credit=broadcast,
    name="mams",
    roles=frozenset({"search", "state", "report"}),
    judged=rubric_reward,
    data="queries",
)
"""MaMs (rubrics paper, section 3.4): Search, State and Report agents share the score of their report; that credit is
MATPO's broadcast over all rows of a rollout.

Paper, Table 4: 8 queries, 8 reports each, lr 1e-6 for all weights, no KL, clip 0.2; 10 turns of 5 calls.
"""

REPORT = Recipe("react-report", name="report", roles=frozenset({"report"}), judged=rubric_reward, data="queries")
"""The ReAct workflow trained by rubrics, with which the paper compares MaMs (rubrics paper, Table 2)."""

RANKED = Recipe("react", name="ranked", judged=lambda judges: Ranked(judges.require("ranked")), data="queries")
"""No labels: a judge ranks the answers of a group, and a rollout earns its place (`hira.trainers.rewards`)."""

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe for recipe in (GRPO, MATPO, MARS, MARSRL, RUBRIC, MAMS, REPORT, RANKED)
}


def find_recipe(name: str) -> Recipe:
    """Return a recipe by its name, or load it as `module:object`. Raises `UsageError` for an unknown one."""
    if ":" not in name:
        if name not in RECIPES:
            raise UsageError(f"unknown recipe {name!r}", fix=did_you_mean(name, RECIPES))
        return RECIPES[name]
    recipe = load_object(name)
    if not isinstance(recipe, Recipe):
        what = f"{name!r} is not a recipe but {type(recipe).__name__}"
        raise UsageError(what, fix='make one: recipe = Recipe("rag", reward=function), from hira.trainers')
    return replace(recipe, name=name)
