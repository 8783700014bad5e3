"""What a report is worth by the rubric of its query: the reward that trains MaMs (rubrics paper, section 3.4)."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from hira.agents.rubrics.rubric import Item, Rubric, generate
from hira.agents.run_context import RoleConfig, RunContext
from hira.agents.trajectory import Rollout
from hira.core.errors import DialectError, EndpointError, Stop
from hira.evaluation.rewards.reward import Score
from hira.evaluation.rewards.rubric_judge import score
from hira.tools.once import Once

Rubrics = Callable[[str], Awaitable[Rubric | None]]
"""The rubric for a query; None where there is none to be had."""


GENERAL_RUBRICS = "general"
"""In place of a generator's model: the rubrics below, the same for every query (rubrics paper, Table 2)."""
GENERAL = Rubric(
    (
        Item("Comprehensiveness", "Key Criterion: The report covers every part of what was asked.", 5),
        Item("Depth", "Key Criterion: The report explains causes and consequences rather than listing facts.", 5),
        Item("Evidence", "Important Criterion: Statements rest on sources that are named.", 4),
        Item(
            "Instructions", "Important Criterion: The report keeps to scope, form and language that were asked for.", 4
        ),
        Item("Reasoning", "Important Criterion: Its conclusions follow from what it reports.", 3),
        Item("Structure", "Important Criterion: Sections follow one another in an order that helps the reader.", 3),
        Item("Readability", "Optional Criterion: Sentences are clear, and terms are explained.", 2),
        Item("Error", "Error Criterion: The report contradicts itself or repeats itself.", -2),
    )
)
"""Rubrics for any report, in our words, along what DeepResearch Bench rates."""


async def write_general(query: str) -> Rubric:
    del query
    return GENERAL


@dataclass(slots=True)
class Generated:
    """Rubrics that a generator, any policy, writes: one for each query, however many rollouts there are of it, because
    rollouts are compared with one another and have to be measured alike. `known` are rubrics that need not be written.
    """

    part: RoleConfig
    known: Mapping[str, Rubric] = field(default_factory=dict)
    _once: Once = field(default_factory=Once)

    async def __call__(self, query: str) -> Rubric | None:
        if query in self.known:
            return self.known[query]

        async def write() -> Rubric | None:
            try:
                return await generate(RunContext({"*": self.part}).conversation("rubric"), query)
            except (DialectError, EndpointError, Stop):
                return None

        return await self._once(query, write, lambda rubric: rubric is not None)


@dataclass(frozen=True, slots=True)
class ByRubric:
    """A report's score by the rubric of its query, from 0 to 1 (eq. 2, for any weights): one for the whole rollout, so
    that Search, State and Report agents share it.

    No report earns 0. A judge or a generator that fails leaves the rollout without a reward. How many calls of the
    judge are made at once is the part's own business (`hira.evaluation.rewards.gated`)."""

    part: RoleConfig
    rubrics: Rubrics

    async def __call__(self, rollout: Rollout, references: tuple[str, ...]) -> Score:
        del references  # a report has no known answer
        report = rollout.answer.strip()
        if not report:
            return Score(0.0, {"rubric": 0.0}, why="there is no report")
        rubric = await self.rubrics(rollout.question)
        if rubric is None:
            return Score(None, why="no rubric could be written for the query")
        try:
            scores = await score(RunContext({"*": self.part}), rubric, rollout.question, report)
        except Stop as stop:
            return Score(None, why=stop.what)
        value = scores.normalised
        if value is None:
            failed = scores.ratings.count(None)
            return Score(None, why=f"the judge failed on {failed} of {len(scores.ratings)} items")
        return Score(value, {"rubric": value, "items": float(len(rubric.items)), "words": float(len(report.split()))})

    async def aclose(self) -> None:
        await self.part.policy.aclose()
        if isinstance(self.rubrics, Generated):
            await self.rubrics.part.policy.aclose()
