"""Rewards by rubrics: of a report, and the hybrid reward of a rubric generator (rubrics paper, sections 3.3, 3.4)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from hira.agents.run_context import RoleConfig, RunContext
from hira.agents.trajectory import Rollout
from hira.core.concurrency import SingleFlight
from hira.core.errors import DialectError, EndpointError, Stop, UsageError
from hira.evaluation.rewards.answers import RolloutScore, collect_notices
from hira.evaluation.rewards.report_judge import quality, score, score_pair
from hira.policies.dialects.record import read_record
from hira.workflows.mams.rubrics import WRITER, Rubric, RubricItem, WrittenRubric, generate

Rubrics = Callable[[str], Awaitable[Rubric | None]]
"""Returns the rubric for a query; None if there is no usable one."""


GENERAL_RUBRICS = "general"
"""The generator's name for the rubrics below, the same for every query (rubrics paper, Table 2)."""
GENERAL = Rubric(
    (
        RubricItem("Comprehensiveness", "Key Criterion: The report covers every part of what was asked.", 5),
        RubricItem("Depth", "Key Criterion: The report explains causes and consequences rather than listing facts.", 5),
        RubricItem("Evidence", "Important Criterion: Statements rest on sources that are named.", 4),
        RubricItem(
            "Instructions", "Important Criterion: The report keeps to scope, form and language that were asked for.", 4
        ),
        RubricItem("Reasoning", "Important Criterion: Its conclusions follow from what it reports.", 3),
        RubricItem(
            "Structure", "Important Criterion: Sections follow one another in an order that helps the reader.", 3
        ),
        RubricItem("Readability", "Optional Criterion: Sentences are clear, and terms are explained.", 2),
        RubricItem("Error", "Error Criterion: The report contradicts itself or repeats itself.", -2),
    )
)
"""Rubrics for any report, in original words, along the dimensions of DeepResearch Bench."""


async def write_general(query: str) -> Rubric:
    del query
    return GENERAL


@dataclass(slots=True)
class Generated:
    """Rubrics that a generator, any policy, writes: one per query, however many rollouts it has, because rollouts that
    are compared with one another need the same measure."""

    config: RoleConfig
    _once: SingleFlight = field(default_factory=SingleFlight)

    async def __call__(self, query: str) -> Rubric | None:
        async def write() -> Rubric | None:
            try:
                return await generate(RunContext({"*": self.config}).conversation("rubric"), query)
            except (DialectError, EndpointError, Stop):
                return None

        return await self._once(query, write, lambda rubric: rubric is not None)


@dataclass(frozen=True, slots=True)
class ByRubric:
    """A report's score by the rubric of its query, from 0 to 1 (eq. 2, for any weights): one for the whole rollout, so
    that Search, State and Report agents share it. A missing report earns 0. A judge or a generator that fails leaves
    the rollout without a reward."""

    config: RoleConfig
    rubrics: Rubrics

    async def __call__(self, rollout: Rollout, references: tuple[str, ...]) -> RolloutScore:
        del references  # a report has no known answer
        report = rollout.answer.strip()
        if not report:
            return RolloutScore(0.0, {"rubric": 0.0}, why="there is no report")
        rubric = await self.rubrics(rollout.question)
        if rubric is None:
            return RolloutScore(None, why="no rubric could be written for the query")
        try:
            scores = await score(RunContext({"*": self.config}), rubric, rollout.question, report)
        except Stop as stop:
            return RolloutScore(None, why=stop.what)
        value = scores.normalised
        if value is None:
            failed = scores.ratings.count(None)
            return RolloutScore(None, why=f"the judge failed on {failed} of {len(scores.ratings)} items")
        items, words = float(len(rubric.items)), float(len(report.split()))
        return RolloutScore(value, {"rubric": value, "items": items, "words": words})

    async def aclose(self) -> None:
        await self.config.policy.aclose()
        if isinstance(self.rubrics, Generated):
            await self.rubrics.config.policy.aclose()


BEST = 4.0
"""The best R_llm: the judge's quality is from 0 to 4."""


@dataclass(frozen=True, slots=True)
class RewardWeights:
    """λ_pref and λ_llm of eq. 1, 1 and 1 in the paper. With these the judge's range of 4 outweighs the 2 between a
    right and a wrong order; `judge_scale` 0.25 gives it a range of 1, which is safer if its taste differs from
    people's."""

    preference: float = 1.0
    quality: float = 1.0
    judge_scale: float = 1.0

    def __post_init__(self) -> None:
        if min(self.preference, self.quality, self.judge_scale) < 0 or not self.preference + self.quality:
            raise UsageError("the weights of a reward must be at least 0, and not all 0", fix="the paper's are 1 and 1")


@dataclass(frozen=True, slots=True)
class RewardParts:
    """The summands of eq. 1: `preference` is -1 or 1, `quality` 0 to 4, `form` 0 or -1. None if a judge failed."""

    preference: float | None
    quality: float | None
    form: float


INVALID = RewardParts(-1.0, 0.0, -1.0)
"""The parts of an unreadable rubric, which orders no reports and has no quality: with the paper's weights -2, the
minimum."""


def total(parts: RewardParts, weights: RewardWeights = RewardWeights()) -> float | None:
    """Return R = λ_pref R_pref + λ_llm R_llm + R_fmt (eq. 1); None if a part with a weight is unknown.

    >>> total(RewardParts(1.0, 4.0, 0.0)), total(INVALID), total(RewardParts(None, 2.5, 0.0))
    (5.0, -2.0, None)
    """
    value = parts.form
    for part, weight in (
        (parts.preference, weights.preference),
        (parts.quality, weights.quality * weights.judge_scale),
    ):
        if weight and part is None:
            return None
        value += weight * (part or 0.0)
    return value


def preference(accepted: float | None, rejected: float | None) -> float | None:
    """Return R_pref of eq. 3: 1 if the preferred report has the higher score, else -1, even for a tie; None if a report
    has no score."""
    if accepted is None or rejected is None:
        return None
    return 1.0 if accepted > rejected else -1.0


def read_rubric(rollout: Rollout) -> Rubric | None:
    """Return the rubric in the writer's last reply; None if it cannot be read."""
    written = [path for path in rollout.trajectories.values() if path.role == WRITER and path.turns]
    if not written:
        return None
    try:
        return Rubric.of(read_record(written[-1].turns[-1].completion, WrittenRubric).items)
    except (DialectError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class Hybrid:
    """Rewards a rollout of `hira.workflows.mams`. The references of its query are two reports: the preferred one,
    then the other. Parts with a weight of 0 make no calls. `formula` is eq. 2 ("paper"), for weights that add up to
    more than 0, or `normalised`, which orders alike and always exists."""

    config: RoleConfig
    weights: RewardWeights = RewardWeights()
    formula: Literal["normalised", "paper"] = "normalised"

    async def __call__(self, rollout: Rollout, references: tuple[str, ...]) -> RolloutScore:
        if len(references) != 2:
            fix = 'each line is {"query": "…", "accepted": "…", "rejected": "…"}'
            raise UsageError(f"a preference has two reports, not {len(references)}", fix=fix)
        rubric = read_rubric(rollout)
        if rubric is None:
            why = "the rubric cannot be read, or is not valid"
            return RolloutScore(total(INVALID, self.weights), _describe(INVALID), why=why)
        context = RunContext({"*": self.config})
        notices = collect_notices(context)
        scores: tuple[float | None, float | None] = (None, None)
        reward: float | None = None
        try:
            if self.weights.preference:
                first, other = await score_pair(context, rubric, rollout.question, references)
                scores = first.normalised, other.normalised
                if self.formula == "paper":
                    scores = first.weighted_mean, other.weighted_mean
            if self.weights.quality:
                judged = await quality(context.conversation("judge", "rubric"), rollout.question, rubric)
                reward = judged.reward if judged else None
        except Stop as stop:
            return RolloutScore(None, why=stop.what)
        accepted, rejected = scores
        parts = RewardParts(preference(accepted, rejected), reward, 0.0)
        record = _describe(parts)
        if accepted is not None and rejected is not None:
            record["margin"] = accepted - rejected
        return RolloutScore(total(parts, self.weights), {**record, "items": len(rubric.items)}, why="; ".join(notices))

    async def aclose(self) -> None:
        await self.config.policy.aclose()


def _describe(parts: RewardParts) -> dict[str, float]:
    known = {"preference": parts.preference, "quality": parts.quality, "format": parts.form}
    described = {name: value for name, value in known.items() if value is not None}
    if parts.preference is not None:
        described["accuracy"] = float(parts.preference > 0)  # for exams: the preference accuracy of eq. 6
    return described
