"""The exam of the rubric demo: a rubric of a held-out query is tried on many pairs, not on the one it is paid for.

One pair says little of a rubric. Within a group, the verdict on the pair tells 7 % of how rubrics differ in the share
of pairs that they order rightly (a correlation of 0.27, of the teacher's valid rubrics); the rest is which aspects
happen to differ between two reports. In training that is all there is, as in the paper; an exam may ask for more.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hira.agents.rubrics.rubric import Rubric, Scores
from hira.agents.trajectory import Rollout
from hira.evaluation.rewards.hybrid import preference, read_rubric
from hira.evaluation.rewards.reward import Reward, Score
from hira.trainers.demo.rubric.judge import rating, subject
from hira.trainers.demo.rubric.world import ASPECTS, FLAWS, NAMES, World, asked

PAIRS = 100
"""Pairs on which a rubric is tried, of the same reader and kind of machine."""
Ratings = Mapping[str, int]
"""The rating of a report for an item about each aspect or flaw."""


@dataclass(frozen=True, slots=True)
class Tried:
    """The demo's reward, whose `ordered` is of a valid rubric the share of its query's `pairs` in the right order: the
    ratings of the report that was preferred, then of the other."""

    inner: Reward
    pairs: Mapping[str, Sequence[tuple[Ratings, Ratings]]]

    async def __call__(self, rollout: Rollout, references: tuple[str, ...]) -> Score:
        score = await self.inner(rollout, references)
        rubric = read_rubric(rollout)
        if rubric is None:
            return score
        return replace(score, parts={**score.parts, "ordered": ordered(rubric, self.pairs[rollout.question])})


def ordered(rubric: Rubric, pairs: Sequence[tuple[Ratings, Ratings]]) -> float:
    """The share of pairs in which the rubric gives the preferred report the higher score."""
    names = [subject(item.criterion) for item in rubric.items]

    def scored(report: Ratings) -> float | None:
        return Scores(rubric, tuple(report[name] for name in names)).normalised

    verdicts = [preference(scored(accepted), scored(rejected)) for accepted, rejected in pairs]
    return sum(one == 1.0 for one in verdicts) / len(verdicts)


def tried_on(world: World, many: int = PAIRS) -> dict[str, list[tuple[Ratings, Ratings]]]:
    """So many held-out pairs for each reader and kind of machine, under every query about them."""
    by: dict[tuple[str, str], list[tuple[Ratings, Ratings]]] = defaultdict(list)
    for one in world.problems(many, held_out=True):
        reader, machine, _ = one.id.split("-")
        accepted, rejected = (_ratings(report) for report in one.references)
        by[reader, machine].append((accepted, rejected))
    return {asked(*kind, name): pairs for kind, pairs in by.items() for name in NAMES}


def _ratings(report: str) -> Ratings:
    return {about: rating(about, report) for about in (*ASPECTS, *FLAWS, "")}
